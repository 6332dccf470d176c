use std::fmt;

use http::uri::Authority;

/// Where a server listens.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Address {
    authority: String,
    host: String,
}

/// What stands before the address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Scheme {
    Absent,
    Http,
    Https,
}

impl Address {
    /// Reads `host:port`, with `http://` or `https://` before it or not. The
    /// error says what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<(Scheme, Self), &'static str> {
        let text = text.trim();
        let (scheme, rest) = if let Some(rest) = strip_prefix(text, "https://") {
            (Scheme::Https, rest)
        } else if let Some(rest) = strip_prefix(text, "http://") {
            (Scheme::Http, rest)
        } else {
            (Scheme::Absent, text)
        };
        if rest.contains("://") {
            return Err("its scheme is neither http nor https");
        }
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.is_empty() {
            return Err("it is empty");
        }
        if rest.contains('@') {
            return Err("it holds a user name");
        }
        let authority: Authority = rest
            .parse()
            .map_err(|_| "it is not of the form host:port")?;
        if authority.host().is_empty() {
            return Err("it names no host");
        }
        if authority.port_u16().is_none_or(|port| port == 0) {
            return Err("it names no valid port");
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let address = Self {
            authority: authority.as_str().to_owned(),
            host,
        };
        Ok((scheme, address))
    }

    /// Returns `host:port`, as a URL has it.
    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    /// Returns the host as a certificate names it: without brackets.
    pub(super) fn host(&self) -> &str {
        &self.host
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.authority)
    }
}

/// Checks that a client can dial this; the error says what is wrong with it.
#[cfg(feature = "cli")]
pub(crate) fn check_endpoint(text: &str) -> Result<(), &'static str> {
    Address::parse(text).map(drop)
}

fn strip_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix)
        .then(|| &text[prefix.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_with_and_without_scheme() {
        for (text, scheme, authority, host) in [
            (
                "127.0.0.1:2379",
                Scheme::Absent,
                "127.0.0.1:2379",
                "127.0.0.1",
            ),
            (" pd-0.pd:2379 ", Scheme::Absent, "pd-0.pd:2379", "pd-0.pd"),
            ("http://pd:2379/", Scheme::Http, "pd:2379", "pd"),
            ("HTTPS://pd:2379", Scheme::Https, "pd:2379", "pd"),
            ("https://[::1]:2379", Scheme::Https, "[::1]:2379", "::1"),
        ] {
            let (found, address) = Address::parse(text).expect(text);
            assert_eq!(
                (found, address.authority(), address.host()),
                (scheme, authority, host),
                "{text}"
            );
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "http://",
            "pd",
            "pd:",
            "pd:0",
            "pd:99999",
            ":2379",
            "etcd://pd:2379",
            "user:secret@pd:2379",
            "http://pd:2379/path",
            "a:1,b:2",
            "pd :2379",
            "é",
        ] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }
}
