use crate::tikv::check_endpoint;

/// Checks one PD endpoint: `host:port`, with `http://` or `https://` before it
/// if one likes.
pub(crate) fn parse_endpoint(text: &str) -> Result<String, String> {
    let text = text.trim();
    let bare = ["http://", "https://"]
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme))
        .unwrap_or(text);
    let bare = bare.strip_suffix('/').unwrap_or(bare);
    if bare.is_empty() {
        return Err("the endpoint is empty; write it as host:port, such as 10.0.0.1:2379".into());
    }
    if bare.contains("://") || bare.contains(['/', '?', '#', '@', ' ']) {
        return Err("this is not host:port, such as 10.0.0.1:2379".into());
    }
    let (host, port) = bare
        .rsplit_once(':')
        .ok_or("the port is missing; PD listens on 2379 as a rule")?;
    if host.is_empty() {
        return Err("the host is missing".into());
    }
    if host.contains(':') && !(host.starts_with('[') && host.ends_with(']')) {
        return Err("write an IPv6 address in brackets, such as [::1]:2379".into());
    }
    match port.parse::<u16>() {
        Ok(1..) => {}
        _ => return Err(format!("`{port}` is not a port")),
    }
    // The client has the last word, so that nothing fails behind this.
    check_endpoint(text)?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_host_and_port() {
        for good in [
            "127.0.0.1:2379",
            "pd.example:2379",
            "http://pd:2379/",
            "https://pd:2379",
            "[::1]:2379",
        ] {
            assert_eq!(parse_endpoint(good), Ok(good.to_owned()));
        }
    }

    #[test]
    fn wrong_endpoints_say_what_is_wrong() {
        for (text, part) in [
            ("", "is empty"),
            ("http://", "is empty"),
            ("pd", "port is missing"),
            (":2379", "host is missing"),
            ("pd:0", "`0` is not a port"),
            ("pd:99999", "`99999` is not a port"),
            ("::1:2379", "in brackets"),
            ("etcd://pd:2379", "not host:port"),
            ("pd:2379/path", "not host:port"),
            ("p\u{fffd}d:2379", "not of the form host:port"),
        ] {
            let message = parse_endpoint(text).expect_err(text);
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
