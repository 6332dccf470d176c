//! TLS on both sides, with certificates that change.

use std::path::PathBuf;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use snapshot_prepare::lock::etcd::{EtcdConfig, EtcdLock};
use snapshot_prepare::lock::{LockErrorKind, RunLock};
use tempfile::TempDir;

use crate::server::{Etcd, TlsFiles};
use crate::support::{assert_clean, config_with, give_back, is_renewed, soon};

type Ca = CertifiedIssuer<'static, KeyPair>;

fn new_ca(name: &str) -> Ca {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("a root")
}

/// The files of one side: whom it trusts, and who it is.
struct Files(TempDir);

impl Files {
    fn new(ca: &Ca) -> Self {
        let files = Self(tempfile::tempdir().expect("a folder"));
        files.write(ca, ca);
        files
    }

    /// Trusts one authority and has a new certificate of another.
    fn write(&self, trusted: &Ca, issuer: &Ca) {
        let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        let mut params = CertificateParams::new(names).expect("sound names");
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, issuer).expect("signed");
        for (name, text) in [
            ("ca", trusted.pem()),
            ("cert", certificate.pem()),
            ("key", key.serialize_pem()),
        ] {
            std::fs::write(self.path(name), text).expect("written");
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn server(&self) -> TlsFiles {
        let path = |name| self.path(name).display().to_string();
        TlsFiles {
            ca: path("ca"),
            cert: path("cert"),
            key: path("key"),
        }
    }

    fn lock(&self, etcd: &Etcd, ttl: u64) -> EtcdLock {
        let identity = (self.path("cert"), self.path("key"));
        let target = EtcdConfig::new(&etcd.endpoints, "backup")
            .expect("well formed")
            .with_tls(self.path("ca"), Some(identity));
        let config = config_with(|config| config.ttl = Some(Duration::from_secs(ttl)));
        EtcdLock::new(target, config).expect("the files can be used")
    }
}

#[tokio::test]
async fn both_sides_have_to_know_each_other() {
    let (ca, other) = (new_ca("root"), new_ca("somebody"));
    let server = Files::new(&ca);
    let etcd = Etcd::start_tls(server.server());
    let client = Files::new(&ca);
    let lock = client.lock(&etcd, 6);
    assert!(
        lock.location().starts_with("etcds://"),
        "{}",
        lock.location()
    );

    // Whom etcd does not know, and who does not know etcd, stays outside.
    client.write(&ca, &other);
    let refused = soon("an error", lock.acquire(Duration::from_secs(600))).await;
    assert_eq!(
        refused.expect_err("unknown").kind(),
        LockErrorKind::Permission
    );
    client.write(&other, &ca);
    let refused = soon("an error", lock.acquire(Duration::from_secs(600))).await;
    assert_eq!(refused.expect_err("unknown").kind(), LockErrorKind::Config);

    // The same lock, with files that were put right.
    client.write(&ca, &ca);
    let guard = lock.acquire(Duration::ZERO).await.expect("free");
    give_back(guard).await;
    assert_clean(&etcd, "backup");
}

#[tokio::test]
async fn a_holder_goes_on_with_new_certificates() {
    let ca = new_ca("root");
    let (server, client) = (Files::new(&ca), Files::new(&ca));
    let mut etcd = Etcd::start_tls(server.server());
    let guard = client
        .lock(&etcd, 30)
        .acquire(Duration::ZERO)
        .await
        .expect("free");
    // Everything is exchanged, so nothing of before would be accepted.
    let next = new_ca("next root");
    server.write(&next, &next);
    client.write(&next, &next);
    etcd.restart();
    is_renewed(&guard).await;
    give_back(guard).await;
    assert_clean(&etcd, "backup");
}
