//! TLS with certificates made for the test.

use rcgen::{CertifiedIssuer, KeyPair};
use snapshot_prepare::cluster::{
    Batches, ClusterClient, PrepareReceiver, PrepareSender, StreamRequest,
};
use snapshot_prepare::error::{Error, ErrorKind, Failure, FailureKind};
use snapshot_prepare::tikv::{Options, Security, TikvCluster};
use tonic::transport::{Identity, ServerTlsConfig};

use crate::certificates::{Files, HERE, ca_params, issue, new_ca, server};
use crate::fake_pd::FakePd;
use crate::fake_store::{FakeStore, claim};
use crate::support::{connect, soon, store_at};

pub(crate) async fn secure_pd(tls: ServerTlsConfig) -> FakePd {
    let pd = FakePd::start_with(Some(tls)).await;
    pd.script().leader = Some(format!("https://{}", pd.address));
    pd
}

pub(crate) async fn connect_to(pd: &FakePd, security: Security) -> Result<TikvCluster, Error> {
    let endpoints = [pd.address.to_string()];
    soon(TikvCluster::connect(
        endpoints,
        security,
        Options::default(),
    ))
    .await
}

/// Lists, and then opens a stream and leases.
async fn use_store(cluster: &TikvCluster, store: &FakeStore) -> Result<(), Failure> {
    soon(async {
        let at = store_at(store.address);
        let mut claims = cluster.list_claims(&at).await?;
        while let Some(batch) = claims.next().await {
            batch?;
        }
        let (mut sender, mut receiver) = cluster.open_stream(&at).await?;
        let _ = sender.send(StreamRequest::UpdateLease { seconds: 9 }).await;
        receiver.next().await.map(drop)
    })
    .await
}

/// The failure of the third attempt in a row.
async fn third_failure(cluster: &TikvCluster, store: &FakeStore) -> Failure {
    for _ in 0..2 {
        use_store(cluster, store).await.expect_err("refused");
    }
    use_store(cluster, store).await.expect_err("refused")
}

#[tokio::test]
async fn both_sides_know_each_other() {
    let ca = new_ca("root");
    let pair = issue(&ca, HERE, "");
    let files = Files::new(&ca.pem(), &issue(&ca, &["client"], ""));
    let pd = secure_pd(server(&pair, &ca.pem())).await;
    let store = FakeStore::start_with(server(&pair, &ca.pem())).await;
    store.script().claims = vec![claim(1)];
    for endpoint in [
        pd.address.to_string(),
        format!("https://{}", pd.address),
        format!("http://{}", pd.address),
        format!("localhost:{}", pd.address.port()),
    ] {
        let connected = TikvCluster::connect([endpoint], files.security(), Options::default());
        let cluster = soon(connected).await.expect("all is right");
        assert_eq!(cluster.cluster_id(), 7);
        soon(cluster.list_stores()).await.expect("PD answers");
        use_store(&cluster, &store)
            .await
            .expect("the store answers");
    }
}

#[tokio::test]
async fn certificates_of_an_intermediate_authority_are_sent_along() {
    let root = new_ca("root");
    let key = KeyPair::generate().expect("a key");
    let between = CertifiedIssuer::signed_by(ca_params("between"), key, &root).expect("signed");
    let pair = issue(&between, HERE, &between.pem());
    let files = Files::new(&root.pem(), &issue(&between, &["client"], &between.pem()));
    let pd = secure_pd(server(&pair, &root.pem())).await;
    let store = FakeStore::start_with(server(&pair, &root.pem())).await;
    let cluster = connect_to(&pd, files.security())
        .await
        .expect("all is right");
    use_store(&cluster, &store)
        .await
        .expect("the store answers");
}

#[tokio::test]
async fn several_authorities_in_one_file_are_all_trusted() {
    let (ours, other) = (new_ca("ours"), new_ca("other"));
    let bundle = format!("{}{}", other.pem(), ours.pem());
    let pair = issue(&ours, HERE, "");
    let files = Files::new(&bundle, &issue(&ours, &["client"], ""));
    let pd = secure_pd(server(&pair, &bundle)).await;
    connect_to(&pd, files.security())
        .await
        .expect("all is right");
}

#[tokio::test]
async fn a_server_of_another_authority_or_name_is_refused() {
    let (ca, other) = (new_ca("root"), new_ca("other"));
    let client = issue(&ca, &["client"], "");
    let rows = [
        (issue(&other, HERE, ""), "UnknownIssuer"),
        (issue(&ca, &["elsewhere"], ""), "not valid for name"),
    ];
    for (pair, words) in rows {
        let files = Files::new(&ca.pem(), &client);
        let pd = secure_pd(server(&pair, &ca.pem())).await;
        let error = connect_to(&pd, files.security()).await.expect_err(words);
        assert_eq!(error.kind(), ErrorKind::Tls, "{error}");
        assert!(error.message().contains(words), "{error}");
        assert!(error.message().contains(&pd.address.to_string()), "{error}");

        let store = FakeStore::start_with(server(&pair, &ca.pem())).await;
        let good = secure_pd(server(&issue(&ca, HERE, ""), &ca.pem())).await;
        let cluster = connect_to(&good, files.security())
            .await
            .expect("PD is good");
        let failure = use_store(&cluster, &store).await.expect_err(words);
        assert_eq!(failure.kind, FailureKind::Tls, "{failure}");
        let stream = soon(cluster.open_stream(&store_at(store.address))).await;
        assert_eq!(stream.map(drop).expect_err(words).kind, FailureKind::Tls);
    }
}

#[tokio::test]
async fn a_client_that_is_refused_is_told_so_at_the_third_time_at_the_latest() {
    let (ca, other) = (new_ca("root"), new_ca("other"));
    let pair = issue(&ca, HERE, "");
    let trusted = Files::new(&ca.pem(), &issue(&ca, &["client"], ""));
    let stranger = Files::new(&ca.pem(), &issue(&other, &["client"], ""));
    for refused in [trusted.without_identity(), stranger.security()] {
        let pd = secure_pd(server(&pair, &ca.pem())).await;
        let error = connect_to(&pd, refused.clone()).await.expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Tls, "{error}");

        // A PD that asks for nothing, before stores that do.
        let lax = ServerTlsConfig::new().identity(Identity::from_pem(&pair.chain, &pair.key));
        let pd = secure_pd(lax).await;
        let cluster = connect_to(&pd, refused).await.expect("PD is lax");
        let store = FakeStore::start_with(server(&pair, &ca.pem())).await;
        let failure = third_failure(&cluster, &store).await;
        assert_eq!(failure.kind, FailureKind::Tls, "{failure}");
        let store = FakeStore::start_with(server(&pair, &ca.pem())).await;
        let mut last = None;
        for _ in 0..3 {
            let at = store_at(store.address);
            last = soon(async {
                match cluster.open_stream(&at).await {
                    Ok((_sender, mut receiver)) => receiver.next().await.err(),
                    Err(failure) => Some(failure),
                }
            })
            .await;
        }
        let failure = last.expect("refused");
        assert_eq!(failure.kind, FailureKind::Tls, "{failure}");
    }
}

#[tokio::test]
async fn a_plain_server_is_no_tls_server() {
    let ca = new_ca("root");
    let files = Files::new(&ca.pem(), &issue(&ca, &["client"], ""));
    let pd = FakePd::start().await;
    let error = connect_to(&pd, files.security()).await.expect_err("plain");
    assert_eq!(error.kind(), ErrorKind::Tls, "{error}");
}

#[tokio::test]
async fn a_plain_client_is_told_that_tls_may_be_wanted() {
    let ca = new_ca("root");
    let pair = issue(&ca, HERE, "");
    let store = FakeStore::start_with(server(&pair, &ca.pem())).await;
    let cluster = connect(FakePd::start().await.url()).await;
    let failure = third_failure(&cluster, &store).await;
    assert_ne!(failure.kind, FailureKind::Tls);
    assert!(
        failure.message.contains("wants TLS") || failure.message.contains("may want TLS"),
        "{failure}"
    );
}

#[tokio::test]
async fn rotated_files_are_read_for_the_next_connection() {
    let (old, new) = (new_ca("old"), new_ca("new"));
    let files = Files::new(&old.pem(), &issue(&old, &["client"], ""));
    let pd = secure_pd(server(&issue(&old, HERE, ""), &old.pem())).await;
    let cluster = connect_to(&pd, files.security())
        .await
        .expect("all is right");
    let store = FakeStore::start_with(server(&issue(&old, HERE, ""), &old.pem())).await;
    use_store(&cluster, &store)
        .await
        .expect("the store answers");
    store.stop().await;
    let listener = tokio::net::TcpListener::bind(store.address).await;
    let rotated = server(&issue(&new, HERE, ""), &new.pem());
    let store = FakeStore::start_on(listener.expect("free again"), Some(rotated));
    files.write(&new.pem(), &issue(&new, &["client"], ""));
    use_store(&cluster, &store)
        .await
        .expect("the new files are used");
}

#[tokio::test]
async fn files_that_cannot_be_used_are_found_before_anything_is_dialled() {
    let ca = new_ca("root");
    let (one, other) = (issue(&ca, &["one"], ""), issue(&ca, &["other"], ""));
    let good = Files::new(&ca.pem(), &one);
    let write = |name: &str, text: &str| {
        let path = good.path(name);
        std::fs::write(&path, text).expect("written");
        path
    };
    let (cert, key) = (good.path("cert"), good.path("key"));
    let empty = write("empty", "");
    let garbage = write(
        "garbage",
        "-----BEGIN CERTIFICATE-----\n????\n-----END CERTIFICATE-----\n",
    );
    let other_key = write("other-key", &other.key);
    let missing = good.path("missing");
    let rows = [
        (missing.clone(), None, "missing"),
        (empty.clone(), None, "empty"),
        (garbage.clone(), None, "garbage"),
        (key.clone(), None, "key"),
        (
            good.path("ca"),
            Some((missing.clone(), key.clone())),
            "missing",
        ),
        (good.path("ca"), Some((empty.clone(), key.clone())), "empty"),
        (good.path("ca"), Some((cert.clone(), missing)), "missing"),
        (good.path("ca"), Some((cert.clone(), empty)), "empty"),
        (good.path("ca"), Some((cert.clone(), cert.clone())), "cert"),
        (good.path("ca"), Some((cert, other_key)), "other-key"),
    ];
    for (ca_path, identity, named) in rows {
        let security = Security::tls(ca_path, identity);
        let connected = TikvCluster::connect(["127.0.0.1:1"], security, Options::default());
        let error = soon(connected).await.expect_err(named);
        assert_eq!(error.kind(), ErrorKind::Config, "{named}: {error}");
        assert!(error.message().contains(named), "{named}: {error}");
        assert!(!error.message().contains("PRIVATE KEY"), "{error}");
    }
}
