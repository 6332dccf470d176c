use std::path::PathBuf;

use clap::Args;

use crate::sim::server::ServerCertificates;

/// The certificates of a simulated cluster.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "TLS of the simulated cluster")]
pub(crate) struct ServerTlsArgs {
    /// The authorities of which clients have to show a certificate, PEM; turns
    /// TLS on
    #[arg(long, value_name = "FILE", requires_all = ["cert", "key"])]
    ca: Option<PathBuf>,
    /// The certificate of PD and of all stores, PEM, with the intermediate ones
    /// after it; name the address of --listen in it
    #[arg(long, value_name = "FILE", requires_all = ["ca", "key"])]
    cert: Option<PathBuf>,
    /// The private key of --cert, PEM
    #[arg(long, value_name = "FILE", requires_all = ["ca", "cert"])]
    key: Option<PathBuf>,
}

impl ServerTlsArgs {
    /// Returns the certificates, `None` without TLS.
    ///
    /// # Errors
    /// Which file cannot be read or used, and why.
    pub(crate) fn certificates(&self) -> Result<Option<ServerCertificates>, String> {
        let (Some(ca), Some(cert), Some(key)) = (&self.ca, &self.cert, &self.key) else {
            return Ok(None);
        };
        let read = |option: &str, path: &PathBuf| {
            std::fs::read(path).map_err(|error| format!("{option} {}: {error}", path.display()))
        };
        let pem = [
            read("--ca", ca)?,
            read("--cert", cert)?,
            read("--key", key)?,
        ];
        ServerCertificates::new(&pem[0], &pem[1], &pem[2])
            .map(Some)
            .map_err(|error| {
                let (ca, cert, key) = (ca.display(), cert.display(), key.display());
                format!("--ca {ca}, --cert {cert} and --key {key} cannot be used: {error}")
            })
    }
}
