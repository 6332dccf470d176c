//! Certificates made for the test, and the files of a client.

use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use snapshot_prepare::tikv::Security;
use tempfile::TempDir;
use tonic::transport::{Certificate, Identity, ServerTlsConfig};

pub(crate) type Ca = CertifiedIssuer<'static, KeyPair>;

/// A certificate (with those between it and the root behind it) and its key.
pub(crate) struct Pair {
    pub(crate) chain: String,
    pub(crate) key: String,
}

pub(crate) fn ca_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

pub(crate) fn new_ca(name: &str) -> Ca {
    let key = KeyPair::generate().expect("a key");
    CertifiedIssuer::self_signed(ca_params(name), key).expect("a root")
}

pub(crate) fn issue(ca: &Ca, names: &[&str], between: &str) -> Pair {
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("sound names");
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    let key = KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&key, ca).expect("signed");
    Pair {
        chain: format!("{}{between}", certificate.pem()),
        key: key.serialize_pem(),
    }
}

pub(crate) const HERE: &[&str] = &["127.0.0.1", "localhost"];

/// The files of a client.
pub(crate) struct Files(TempDir);

impl Files {
    pub(crate) fn new(ca: &str, pair: &Pair) -> Self {
        let files = Self(tempfile::tempdir().expect("a directory"));
        files.write(ca, pair);
        files
    }

    pub(crate) fn write(&self, ca: &str, pair: &Pair) {
        for (name, text) in [("ca", ca), ("cert", &pair.chain), ("key", &pair.key)] {
            std::fs::write(self.path(name), text).expect("written");
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn security(&self) -> Security {
        let identity = (self.path("cert"), self.path("key"));
        Security::tls(self.path("ca"), Some(identity))
    }

    pub(crate) fn without_identity(&self) -> Security {
        Security::tls(self.path("ca"), None)
    }
}

/// A server's side: demands a certificate of `clients_ca`, as TiKV does.
pub(crate) fn server(pair: &Pair, clients_ca: &str) -> ServerTlsConfig {
    ServerTlsConfig::new()
        .identity(Identity::from_pem(&pair.chain, &pair.key))
        .client_ca_root(Certificate::from_pem(clients_ca))
}
