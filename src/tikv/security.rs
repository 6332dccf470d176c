use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use tonic::transport::ClientTlsConfig;

use crate::certificate::CertificateFiles;
use crate::error::{Error, ErrorKind};

/// Whether and how connections are secured.
///
/// The files are read anew for every connection, so that rotated certificates
/// are picked up. `Debug` shows neither paths nor contents.
#[derive(Clone, Default)]
pub struct Security(Option<Arc<CertificateFiles>>);

impl Security {
    /// Plain text.
    pub const fn none() -> Self {
        Self(None)
    }

    /// TLS: trusts the authorities in the PEM file `ca`, and shows the
    /// certificate (with intermediate ones after it) and private key in the two
    /// PEM files of `identity` to servers that ask for it. TiKV always asks.
    pub fn tls(ca: impl Into<PathBuf>, identity: Option<(PathBuf, PathBuf)>) -> Self {
        Self(Some(Arc::new(CertificateFiles {
            ca: ca.into(),
            identity,
        })))
    }

    /// Returns whether connections use TLS.
    pub const fn is_tls(&self) -> bool {
        self.0.is_some()
    }

    /// Returns whether servers that ask for a certificate are shown one.
    pub(super) fn has_identity(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|files| files.identity.is_some())
    }

    /// Reads the files, `None` without TLS. The error says which file is wrong
    /// and why, for people.
    pub(super) async fn load(&self) -> Result<Option<ClientTlsConfig>, String> {
        match &self.0 {
            Some(files) => files.load().await.map(Some),
            None => Ok(None),
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
