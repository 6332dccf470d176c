//! The certificate files of connections with TLS, to a cluster or to an etcd.

use std::path::{Path, PathBuf};

use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use crate::error::with_causes;

/// Files with certificates and keys. They are read anew for every connection, so
/// that rotated ones are picked up.
#[derive(Clone)]
pub(crate) struct CertificateFiles {
    /// Of the authorities that are trusted.
    pub(crate) ca: PathBuf,
    /// The certificate and the private key that servers are shown who ask for it.
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
}

impl CertificateFiles {
    /// Reads the files. The error says which one is wrong and why, for people.
    pub(crate) async fn load(&self) -> Result<ClientTlsConfig, String> {
        let files = self.clone();
        // A file can lie on a network file system, so it is not read on a thread
        // that drives connections.
        match tokio::task::spawn_blocking(move || files.load_blocking()).await {
            Ok(loaded) => loaded,
            Err(_) => Err("reading the certificate files was interrupted".to_owned()),
        }
    }

    /// As [`CertificateFiles::load`], on this thread.
    pub(crate) fn load_blocking(&self) -> Result<ClientTlsConfig, String> {
        let ca = read_certificates(&self.ca, "CA certificate")?;
        let mut config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(ca));
        try_out(&config)
            .map_err(|wrong| format!("CA certificate file {}: {wrong}", self.ca.display()))?;
        if let Some((cert_path, key_path)) = &self.identity {
            let cert = read_certificates(cert_path, "client certificate")?;
            let key = read_key(key_path)?;
            config = config.identity(Identity::from_pem(cert, key));
            try_out(&config).map_err(|wrong| {
                let wrong = match wrong.contains("KeyMismatch") {
                    true => "the key is not that of the certificate".to_owned(),
                    false => wrong,
                };
                format!(
                    "client certificate {} and private key {}: {wrong}",
                    cert_path.display(),
                    key_path.display()
                )
            })?;
        }
        Ok(config)
    }
}

fn read(path: &Path, what: &str) -> Result<Vec<u8>, String> {
    std::fs::read(path)
        .map_err(|error| format!("cannot read the {what} file {}: {error}", path.display()))
}

/// Reads a PEM file that has to hold a private key. The TLS library tells one
/// that is encrypted from none at all as little as the kinds of keys that it takes.
fn read_key(path: &Path) -> Result<Vec<u8>, String> {
    let pem = read(path, "private key")?;
    let path = path.display();
    if !holds(&pem, b"PRIVATE KEY-----") {
        return Err(format!(
            "the private key file {path} holds no PEM private key"
        ));
    }
    if holds(&pem, b"ENCRYPTED") {
        return Err(format!(
            "the private key file {path} is encrypted; a key without a passphrase is needed"
        ));
    }
    Ok(pem)
}

fn holds(pem: &[u8], part: &[u8]) -> bool {
    pem.windows(part.len()).any(|window| window == part)
}

/// Reads a PEM file that has to hold a certificate. One without any would be
/// taken for an empty list and trust nobody, which shows much later.
fn read_certificates(path: &Path, what: &str) -> Result<Vec<u8>, String> {
    let pem = read(path, what)?;
    if holds(&pem, b"-----BEGIN CERTIFICATE-----") {
        return Ok(pem);
    }
    let path = path.display();
    Err(format!("the {what} file {path} holds no PEM certificate"))
}

/// Has the TLS library take the material, which is when it looks at it.
fn try_out(config: &ClientTlsConfig) -> Result<(), String> {
    Endpoint::from_static("https://localhost")
        .tls_config(config.clone())
        .map(drop)
        .map_err(|error| with_causes(error.to_string(), &error))
}
