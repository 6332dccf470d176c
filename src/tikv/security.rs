use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use crate::error::{Error, ErrorKind};

/// Whether and how connections are secured.
///
/// The files are read anew for every connection, so that rotated certificates
/// are picked up. `Debug` shows neither paths nor contents.
#[derive(Clone, Default)]
pub struct Security(Option<Arc<Files>>);

struct Files {
    ca: PathBuf,
    identity: Option<(PathBuf, PathBuf)>,
}

impl Security {
    /// Plain text.
    pub const fn none() -> Self {
        Self(None)
    }

    /// TLS: trusts the authorities in the PEM file `ca`, and shows the
    /// certificate (with intermediate ones after it) and private key in the two
    /// PEM files of `identity` to servers that ask for it. TiKV always asks.
    pub fn tls(ca: impl Into<PathBuf>, identity: Option<(PathBuf, PathBuf)>) -> Self {
        Self(Some(Arc::new(Files {
            ca: ca.into(),
            identity,
        })))
    }

    /// Returns whether connections use TLS.
    pub const fn is_tls(&self) -> bool {
        self.0.is_some()
    }

    /// Reads the files, `None` without TLS. The error says which file is wrong
    /// and why, for people.
    pub(super) async fn load(&self) -> Result<Option<ClientTlsConfig>, String> {
        let Some(files) = self.0.clone() else {
            return Ok(None);
        };
        // A file can lie on a network file system, so it is not read on a thread
        // that drives connections.
        match tokio::task::spawn_blocking(move || files.load()).await {
            Ok(loaded) => loaded.map(Some),
            Err(_) => Err("reading the certificate files was interrupted".to_owned()),
        }
    }

    /// Reads the files once to find mistakes before anything is dialled.
    pub(super) async fn check(&self) -> Result<(), Error> {
        self.load()
            .await
            .map(drop)
            .map_err(|wrong| Error::new(ErrorKind::Config, wrong))
    }
}

impl fmt::Debug for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            None => "Security(none)",
            Some(files) if files.identity.is_none() => "Security(tls)",
            Some(_) => "Security(tls with client certificate)",
        })
    }
}

impl Files {
    fn load(&self) -> Result<ClientTlsConfig, String> {
        let ca = read_certificates(&self.ca, "CA certificate")?;
        let mut config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(ca));
        try_out(&config)
            .map_err(|wrong| format!("CA certificate file {}: {wrong}", self.ca.display()))?;
        if let Some((cert_path, key_path)) = &self.identity {
            let cert = read_certificates(cert_path, "client certificate")?;
            let key = read(key_path, "private key")?;
            config = config.identity(Identity::from_pem(cert, key));
            try_out(&config).map_err(|wrong| {
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

/// Reads a PEM file that has to hold a certificate. One without any would be
/// taken for an empty list and trust nobody, which shows much later.
fn read_certificates(path: &Path, what: &str) -> Result<Vec<u8>, String> {
    const HEAD: &[u8] = b"-----BEGIN CERTIFICATE-----";
    let pem = read(path, what)?;
    if pem.windows(HEAD.len()).any(|window| window == HEAD) {
        Ok(pem)
    } else {
        Err(format!(
            "the {what} file {} holds no PEM certificate",
            path.display()
        ))
    }
}

/// Has the TLS library take the material, which is when it looks at it.
fn try_out(config: &ClientTlsConfig) -> Result<(), String> {
    Endpoint::from_static("https://localhost")
        .tls_config(config.clone())
        .map(drop)
        .map_err(|error| super::status::chain(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_do_not_show() {
        let files = Security::tls("/secret/ca", Some(("/secret/c".into(), "/secret/k".into())));
        assert_eq!(
            format!("{files:?}"),
            "Security(tls with client certificate)"
        );
        assert_eq!(format!("{:?}", Security::none()), "Security(none)");
    }
}
