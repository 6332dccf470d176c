/// The name of a lock whose URL gives none.
const DEFAULT_NAME: &str = "snapshot-prepare.lock";

/// A URL, taken apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Parts {
    pub(super) is_tls: bool,
    pub(super) user: Option<String>,
    pub(super) endpoints: Vec<String>,
    pub(super) name: String,
}

/// Takes `etcd[s]://[user@]host:port[,host:port…]/name` apart. The error says
/// what is wrong, for people; it repeats nothing that may be a password.
pub(super) fn parse(url: &str) -> Result<Parts, String> {
    let (scheme, rest) = url
        .split_once("://")
        .ok_or("the lock's URL has no scheme")?;
    let is_tls = match scheme {
        "etcd" => false,
        "etcds" => true,
        _ => {
            return Err("a lock on etcd has a URL that begins with etcd:// or etcds://".to_owned());
        }
    };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, endpoints) = match authority.rsplit_once('@') {
        Some((user, endpoints)) => (Some(user), endpoints),
        None => (None, authority),
    };
    if user.is_some_and(|user| user.contains(':')) {
        return Err(
            "the lock's URL holds a password, which lists of processes and logs would show: \
             set ETCDCTL_PASSWORD instead"
                .to_owned(),
        );
    }
    if path.contains(['?', '#']) {
        return Err("the name of a lock on etcd has ? and # written as %3F and %23".to_owned());
    }
    let mut name = decode(path)?;
    if name.is_empty() || name.ends_with('/') {
        name.push_str(DEFAULT_NAME);
    }
    Ok(Parts {
        is_tls,
        user: user.map(decode).transpose()?,
        endpoints: endpoints.split(',').map(str::to_owned).collect(),
        name,
    })
}

/// Undoes percent-encoding.
fn decode(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, others)) = rest.split_first() {
        rest = others;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let hex = others
            .get(..2)
            .and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex
            .filter(|hex| hex.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|hex| u8::from_str_radix(hex, 16).ok())
            .ok_or("the lock's URL has a % without two hex digits behind it")?;
        bytes.push(byte);
        rest = &others[2..];
    }
    String::from_utf8(bytes).map_err(|_| "the lock's URL is not UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        for (url, is_tls, user, endpoints, name) in [
            ("etcd://h:1/name", false, None, vec!["h:1"], "name"),
            ("etcds://h/a/b", true, None, vec!["h"], "a/b"),
            (
                "etcd://a:1,b:2,[::1]:3//tidb/x",
                false,
                None,
                vec!["a:1", "b:2", "[::1]:3"],
                "/tidb/x",
            ),
            ("etcd://ann@h/n", false, Some("ann"), vec!["h"], "n"),
            ("etcd://a%40b@h/n", false, Some("a@b"), vec!["h"], "n"),
            ("etcd://h", false, None, vec!["h"], "snapshot-prepare.lock"),
            ("etcd://h/", false, None, vec!["h"], "snapshot-prepare.lock"),
            (
                "etcd://h/a/",
                false,
                None,
                vec!["h"],
                "a/snapshot-prepare.lock",
            ),
            (
                "etcd://h/a%20b%3f%2F",
                false,
                None,
                vec!["h"],
                "a b?/snapshot-prepare.lock",
            ),
            ("etcd://h/caf%C3%A9", false, None, vec!["h"], "café"),
        ] {
            let parts = parse(url).expect(url);
            assert_eq!(parts.is_tls, is_tls, "{url}");
            assert_eq!(parts.user.as_deref(), user, "{url}");
            assert_eq!(parts.endpoints, endpoints, "{url}");
            assert_eq!(parts.name, name, "{url}");
        }
    }

    #[test]
    fn other_texts_are_refused_and_no_password_is_repeated() {
        for url in [
            "",
            "etcd:/h/n",
            "http://h/secret",
            "etcd://ann:secret@h/n",
            "etcd://ann:se@cret@h/n",
            "etcd://h/n?secret=1",
            "etcd://h/n#secret",
            "etcd://h/secret%",
            "etcd://h/secret%+1",
            "etcd://h/secret%é",
            "etcd://h/secret%ff",
        ] {
            let error = parse(url).expect_err(url);
            assert!(!error.contains("secret"), "{url}: {error}");
        }
    }
}
