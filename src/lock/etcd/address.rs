use tonic::transport::Endpoint;

/// The port of an address that names none.
const PORT: u16 = 2379;

/// Where a member of etcd listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Address {
    authority: String,
    host: String,
    port: u16,
}

impl Address {
    /// Reads `host:port` or `host`. The error says what is wrong, for people; it
    /// does not repeat what may be a password.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.contains('@') {
            return Err("an endpoint of etcd holds a user name".to_owned());
        }
        let wrong = || format!("{text:?} is not an endpoint of etcd: host:port is");
        if text.is_empty() || text.contains(['/', '?', '#']) {
            return Err(wrong());
        }
        let endpoint = Endpoint::from_shared(format!("http://{text}")).map_err(|_| wrong())?;
        let host = endpoint.uri().host().unwrap_or_default();
        let port = match endpoint.uri().port() {
            None if text == host => PORT,
            // A number that is none.
            None => return Err(wrong()),
            Some(port) => port.as_u16(),
        };
        if host.is_empty() || port == 0 {
            return Err(wrong());
        }
        Ok(Self {
            authority: format!("{host}:{port}"),
            host: host.trim_matches(['[', ']']).to_owned(),
            port,
        })
    }

    /// Returns `host:port`, as a URL has it.
    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    /// Returns the host as a certificate and the system name it: without
    /// brackets.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) const fn port(&self) -> u16 {
        self.port
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        for (text, authority, host, port) in [
            ("127.0.0.1:2379", "127.0.0.1:2379", "127.0.0.1", 2379),
            (" pd-0.pd:1 ", "pd-0.pd:1", "pd-0.pd", 1),
            ("pd", "pd:2379", "pd", 2379),
            ("[::1]:2380", "[::1]:2380", "::1", 2380),
            ("[::1]", "[::1]:2379", "::1", 2379),
        ] {
            let address = Address::parse(text).expect(text);
            assert_eq!(address.authority(), authority);
            assert_eq!((address.host(), address.port()), (host, port));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            ":1",
            "pd:",
            "pd:0",
            "pd:99999",
            "pd:x",
            "a b",
            "http://pd:1",
            "pd/1",
        ] {
            assert!(Address::parse(text).is_err(), "{text:?}");
        }
        let error = Address::parse("ann:secret@pd:1").expect_err("a password");
        assert!(!error.contains("secret"), "{error}");
    }
}
