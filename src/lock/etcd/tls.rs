use std::path::{Path, PathBuf};

use etcd_client::{Certificate, Identity, TlsOptions};
use tonic::transport::Endpoint;

use super::failure::chain;

/// The files for TLS. They are read anew for every connection, so that rotated
/// certificates are picked up.
#[derive(Clone)]
pub(super) struct Tls {
    pub(super) ca: PathBuf,
    pub(super) identity: Option<(PathBuf, PathBuf)>,
}

impl Tls {
    /// Reads the files. The error says which one is wrong and why, for people.
    pub(super) async fn load(&self) -> Result<TlsOptions, String> {
        let tls = self.clone();
        // A file can lie on a network file system, so it is not read on a thread
        // that drives connections.
        match tokio::task::spawn_blocking(move || tls.load_blocking()).await {
            Ok(loaded) => loaded,
            Err(_) => Err("reading the certificate files was interrupted".to_owned()),
        }
    }

    /// As [`Tls::load`], on this thread.
    pub(super) fn load_blocking(&self) -> Result<TlsOptions, String> {
        let ca = read_certificates(&self.ca, "CA certificate")?;
        let mut options = TlsOptions::new().ca_certificate(Certificate::from_pem(ca));
        try_out(&options)
            .map_err(|wrong| format!("CA certificate file {}: {wrong}", self.ca.display()))?;
        if let Some((cert_path, key_path)) = &self.identity {
            let cert = read_certificates(cert_path, "client certificate")?;
            let key = read(key_path, "private key")?;
            options = options.identity(Identity::from_pem(cert, key));
            try_out(&options).map_err(|wrong| {
                format!(
                    "client certificate {} and private key {}: {wrong}",
                    cert_path.display(),
                    key_path.display()
                )
            })?;
        }
        Ok(options)
    }
}

fn read(path: &Path, what: &str) -> Result<Vec<u8>, String> {
    std::fs::read(path)
        .map_err(|error| format!("cannot read the {what} file {}: {error}", path.display()))
}

/// Reads a PEM file that has to hold a certificate: one without any would be
/// taken for an empty list and trust nobody.
fn read_certificates(path: &Path, what: &str) -> Result<Vec<u8>, String> {
    const HEAD: &[u8] = b"-----BEGIN CERTIFICATE-----";
    let pem = read(path, what)?;
    if pem.windows(HEAD.len()).any(|window| window == HEAD) {
        return Ok(pem);
    }
    let path = path.display();
    Err(format!("the {what} file {path} holds no PEM certificate"))
}

/// Has the TLS library take the material, which is when it looks at it.
fn try_out(options: &TlsOptions) -> Result<(), String> {
    Endpoint::from_static("https://localhost")
        .tls_config(options.clone())
        .map(drop)
        .map_err(|error| chain(&error))
}
