use std::io;

use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};

use crate::error::with_causes;

/// What a served cluster with TLS shows to its clients, and which clients it
/// lets in. All of PD and all stores use the same.
///
/// `Debug` shows none of it.
#[derive(Clone, Debug)]
pub struct ServerCertificates(ServerTlsConfig);

impl ServerCertificates {
    /// Takes PEM texts: the `certificate` (with intermediate ones after it) and
    /// its private `key` to show, and the authorities, `ca`, of which every client
    /// has to show a certificate, as TiKV and PD demand it.
    ///
    /// # Errors
    /// When they cannot be used; the error says why.
    pub fn new(ca: &[u8], certificate: &[u8], key: &[u8]) -> io::Result<Self> {
        let config = ServerTlsConfig::new()
            .identity(Identity::from_pem(certificate, key))
            .client_ca_root(Certificate::from_pem(ca));
        let certificates = Self(config);
        certificates.secure(Server::builder())?;
        Ok(certificates)
    }

    /// Returns the server with TLS.
    pub(super) fn secure(&self, server: Server) -> io::Result<Server> {
        server.tls_config(self.0.clone()).map_err(|error| {
            let words = with_causes(error.to_string(), &error);
            io::Error::new(io::ErrorKind::InvalidInput, words)
        })
    }
}
