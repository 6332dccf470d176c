//! The client against a server whose gRPC shares no code with ours: that of
//! grpcio, which TiKV uses too. The Python that has it is named by the variable
//! `SNAPSHOT_PREPARE_TEST_PYTHON`, which `scripts/test.sh` sets.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;

use snapshot_prepare::cluster::{
    Batches, ClusterClient, PrepareReceiver, PrepareSender, StreamAnswer, StreamRequest,
};
use snapshot_prepare::error::{ErrorKind, Failure, FailureKind};
use snapshot_prepare::region::{
    PeerId, ReadTarget, RegionEpoch, RegionErrorKind, RegionId, Store, WaitTarget,
};
use snapshot_prepare::tikv::{Options, Security, TikvCluster};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tonic::transport::{Identity, ServerTlsConfig};

use crate::certificates::{Files, HERE, issue, new_ca};
use crate::fake_pd::FakePd;
use crate::support::{connect, soon, store_at};
use crate::tls::{connect_to, secure_pd};

const PYTHON: &str = "SNAPSHOT_PREPARE_TEST_PYTHON";
const LEASE: StreamRequest = StreamRequest::UpdateLease { seconds: 60 };
const EPOCH: RegionEpoch = RegionEpoch {
    conf_ver: 1,
    version: 2,
};

/// The Python to use. Without one these tests do nothing, save in CI, where that
/// would go unnoticed.
fn python() -> Option<OsString> {
    let python = env::var_os(PYTHON);
    assert!(
        python.is_some() || env::var_os("CI").is_none(),
        "{PYTHON} is not set in CI"
    );
    if python.is_none() {
        eprintln!("skipped: {PYTHON} is not set; scripts/test.sh sets it");
    }
    python
}

/// A server that ends with the test.
struct Grpcio {
    store: Store,
    _process: Child,
}

impl Grpcio {
    async fn start(python: OsString, tls: Option<[&Path; 3]>) -> Self {
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tikv_client/grpcio_store.py");
        let mut process = Command::new(python)
            .arg(script)
            .args(tls.into_iter().flatten())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("Python starts");
        let output = process.stdout.take().expect("piped");
        let mut port = String::new();
        soon(BufReader::new(output).read_line(&mut port))
            .await
            .expect("it prints its port");
        Self {
            store: store_at(format!("127.0.0.1:{}", port.trim())),
            _process: process,
        }
    }
}

fn wait(id: u64) -> StreamRequest {
    let region_id = RegionId(id);
    let target = WaitTarget {
        region_id,
        epoch: EPOCH,
    };
    StreamRequest::WaitApply {
        regions: vec![target],
    }
}

/// Sends requests on a new stream, then waits for as many answers as are named,
/// and how it ended when that is fewer.
async fn converse(
    cluster: &TikvCluster,
    store: &Store,
    requests: Vec<StreamRequest>,
    count: usize,
) -> (Vec<StreamAnswer>, Option<Failure>) {
    soon(async {
        let mut answers = Vec::new();
        let opened = cluster.open_stream(store).await;
        let (mut sender, mut receiver) = match opened {
            Ok(halves) => halves,
            Err(failure) => return (answers, Some(failure)),
        };
        for request in requests {
            let _ = sender.send(request).await;
        }
        while answers.len() < count {
            match receiver.next().await {
                Ok(batch) => answers.extend(batch),
                Err(failure) => return (answers, Some(failure)),
            }
        }
        (answers, None)
    })
    .await
}

async fn count_claims(cluster: &TikvCluster, store: &Store) -> Result<usize, Failure> {
    soon(async {
        let mut claims = cluster.list_claims(store).await?;
        let mut count = 0;
        while let Some(batch) = claims.next().await {
            count += batch?.len();
        }
        Ok(count)
    })
    .await
}

#[tokio::test]
async fn streams_listings_and_reads_work_with_another_grpc() {
    let Some(python) = python() else { return };
    let server = Grpcio::start(python, None).await;
    let (cluster, store) = (connect(FakePd::start().await.url()).await, &server.store);

    assert_eq!(count_claims(&cluster, store).await, Ok(2000));

    let lease = |last_lease_is_valid| StreamAnswer::LeaseUpdated {
        last_lease_is_valid,
    };
    let requests = vec![LEASE, LEASE, wait(5), StreamRequest::Finish];
    let (answers, failure) = converse(&cluster, store, requests, usize::MAX).await;
    assert_eq!(answers.len(), 4, "{failure:?}");
    assert_eq!((&answers[0], &answers[1]), (&lease(false), &lease(true)));
    assert!(
        matches!(&answers[2], StreamAnswer::WaitApplyDone(done)
            if done.result.is_ok() && done.target.is_some_and(|target| target.epoch == EPOCH)),
        "{answers:?}"
    );
    assert_eq!(answers[3], lease(true));
    assert_eq!(failure.map(|ended| ended.kind), Some(FailureKind::Finished));

    for (requests, kind) in [
        (vec![wait(1)], FailureKind::Superseded),
        (vec![LEASE, wait(1)], FailureKind::Superseded),
        (vec![wait(9)], FailureKind::LeaseLost),
        (vec![LEASE, wait(9)], FailureKind::LeaseLost),
    ] {
        let (_, failure) = converse(&cluster, store, requests.clone(), usize::MAX).await;
        let ended = failure.map(|ended| ended.kind);
        assert_eq!(ended, Some(kind), "{requests:?}");
    }

    let targets = (1..=100).map(|id| ReadTarget {
        region_id: RegionId(id),
        epoch: EPOCH,
        peer_id: PeerId(id),
    });
    let mut reads = soon(cluster.leader_reads(store, targets.collect()))
        .await
        .expect("it begins");
    let mut refused = Vec::new();
    let mut count = 0;
    while let Some(batch) = soon(reads.next()).await {
        for read in batch.expect("it reads") {
            count += 1;
            if let Err(error) = read.result {
                refused.push((read.region_id.0, error.kind));
            }
        }
    }
    assert_eq!(
        (count, refused),
        (100, vec![(7, RegionErrorKind::NotLeader)])
    );

    let endpoint = [store.address.clone()];
    let connected = TikvCluster::connect(endpoint, Security::none(), Options::default());
    let error = soon(connected).await.expect_err("a store");
    assert_eq!(error.kind(), ErrorKind::WrongService, "{error}");
}

#[tokio::test]
async fn a_stream_whose_sender_is_dropped_is_cancelled_by_another_grpc() {
    let Some(python) = python() else { return };
    let server = Grpcio::start(python, None).await;
    let cluster = connect(FakePd::start().await.url()).await;
    let (sender, mut receiver) = soon(cluster.open_stream(&server.store))
        .await
        .expect("it opens");
    drop(sender);
    let failure = soon(receiver.next()).await.expect_err("half-closed");
    assert_eq!(failure.kind, FailureKind::Cancelled, "{failure}");
}

#[tokio::test]
async fn certificates_are_judged_by_another_tls() {
    let Some(python) = python() else { return };
    let (ca, other) = (new_ca("root"), new_ca("other"));
    let pair = issue(&ca, HERE, "");
    let of_server = Files::new(&ca.pem(), &pair);
    let paths = ["ca", "cert", "key"].map(|name| of_server.path(name));
    let paths = paths.each_ref().map(|path| path.as_path());
    let server = Grpcio::start(python.clone(), Some(paths)).await;
    // PD asks for nothing here, so that the store is the one that refuses.
    let lax = ServerTlsConfig::new().identity(Identity::from_pem(&pair.chain, &pair.key));
    let pd = secure_pd(lax).await;

    let trusted = Files::new(&ca.pem(), &issue(&ca, &["client"], ""));
    let stranger = Files::new(&ca.pem(), &issue(&other, &["client"], ""));
    let cluster = connect_to(&pd, trusted.security())
        .await
        .expect("PD is lax");
    assert_eq!(count_claims(&cluster, &server.store).await, Ok(2000));
    let (answers, _) = converse(&cluster, &server.store, vec![LEASE], 1).await;
    assert_eq!(answers.len(), 1);

    for refused in [trusted.without_identity(), stranger.security()] {
        let cluster = connect_to(&pd, refused.clone()).await.expect("PD is lax");
        let mut last = None;
        for _ in 0..3 {
            last = count_claims(&cluster, &server.store).await.err();
        }
        let failure = last.expect("refused");
        assert_eq!(failure.kind, FailureKind::Tls, "{failure}");

        let cluster = connect_to(&pd, refused).await.expect("PD is lax");
        let mut last = None;
        for _ in 0..3 {
            last = converse(&cluster, &server.store, vec![LEASE], 1).await.1;
        }
        let failure = last.expect("refused");
        assert_eq!(failure.kind, FailureKind::Tls, "{failure}");
    }

    let plain = connect(FakePd::start().await.url()).await;
    let mut last = None;
    for _ in 0..3 {
        last = count_claims(&plain, &server.store).await.err();
    }
    let failure = last.expect("no TLS");
    assert!(failure.message.contains("TLS"), "{failure}");
    assert_ne!(failure.kind, FailureKind::Tls);

    let server = Grpcio::start(python, None).await;
    let failure = count_claims(&cluster, &server.store).await.err();
    let failure = failure.expect("a plain server");
    assert_eq!(failure.kind, FailureKind::Tls, "{failure}");
}
