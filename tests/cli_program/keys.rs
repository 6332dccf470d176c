//! Keys are user data: whatever goes wrong, and whatever the servers say, they
//! are shown with `--show-keys` only.

use snapshot_prepare::pb::backup::CheckAdminResponse;
use snapshot_prepare::pb::errorpb::{self, EpochNotMatch, KeyNotInRegion};
use snapshot_prepare::pb::pdpb::{self, ErrorType};
use snapshot_prepare::pb::{backup, metapb};
use tokio::runtime::Runtime;
use tonic::Status;

use crate::servers::fake_pd::{FakePd, Script as PdScript, Turn};
use crate::servers::fake_store::{FakeStore, Script as StoreScript};
use crate::support::{Finished, Running, program};

/// Where the regions 1, 2 and 3 meet.
const ALICE: &[u8] = b"acct\xff\x00alice-4711";
const BOB: &[u8] = b"acct\xff\x00bob-4712";
/// What of them is to be found in no form.
const MARKS: [&str; 2] = ["alice-4711", "bob-4712"];

const STORE: u64 = 5;

fn peer(region: u64) -> metapb::Peer {
    metapb::Peer {
        id: region + 1000,
        store_id: STORE,
        ..metapb::Peer::default()
    }
}

fn region(id: u64) -> metapb::Region {
    let (start, end): (&[u8], &[u8]) = match id {
        1 => (b"", ALICE),
        2 => (ALICE, BOB),
        _ => (BOB, b""),
    };
    metapb::Region {
        id,
        start_key: start.to_vec(),
        end_key: end.to_vec(),
        region_epoch: Some(metapb::RegionEpoch {
            conf_ver: 1,
            version: 7,
        }),
        peers: vec![peer(id)],
    }
}

fn claims(ids: &[u64]) -> Vec<CheckAdminResponse> {
    ids.iter()
        .map(|&id| CheckAdminResponse {
            region: Some(region(id)),
            ..CheckAdminResponse::default()
        })
        .collect()
}

fn by_pd(id: u64) -> pdpb::Region {
    pdpb::Region {
        region: Some(region(id)),
        leader: Some(peer(id)),
        ..pdpb::Region::default()
    }
}

/// What a server may print into its words.
fn printed() -> String {
    let start = String::from_utf8_lossy(ALICE);
    format!("{:?}, start_key: {start}, key 616C696365", region(2))
}

/// A cluster of one store that is well, until somebody changes it.
struct Cluster {
    pd: FakePd,
    store: FakeStore,
    _runtime: Runtime,
}

impl Cluster {
    fn with(change: impl FnOnce(&mut PdScript, &mut StoreScript)) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let (pd, store) =
            runtime.block_on(async { (FakePd::start().await, FakeStore::start().await) });
        pd.script().stores = vec![metapb::Store {
            id: STORE,
            address: store.address.to_string(),
            version: "8.5.2".to_owned(),
            ..metapb::Store::default()
        }];
        pd.script().regions = [1, 2, 3].map(by_pd).to_vec();
        store.script().claims = claims(&[1, 2, 3]);
        change(&mut pd.script(), &mut store.script());
        Self {
            pd,
            store,
            _runtime: runtime,
        }
    }

    /// Runs `run` and `check`, as much as they can say, with `more` options.
    fn start(&self, more: &[&str]) -> [Running; 2] {
        let pd = self.pd.address.to_string();
        let run = ["run", "--prepare-timeout", "6s", "--pd", &pd];
        let check = ["check", "--timeout", "6s", "--pd", &pd];
        [(&run, &["--", "true"][..]), (&check, &[])].map(|(first, last)| {
            let mut command = program(&[first, more, last].concat());
            command.env("RUST_LOG", "trace");
            Running::start(command)
        })
    }

    /// Checks that nothing of the keys is to be found in what is said, in any
    /// format, and that the commands end with such codes. Returns what is said
    /// with `--show-keys`.
    fn assert_hidden(&self, codes: [i32; 2]) -> [Finished; 2] {
        let all = [
            self.start(&["--output", "json"]),
            self.start(&["--output", "text"]),
        ];
        let shown = self.start(&["--output", "json", "--show-keys"]);
        for format in all {
            for (running, code) in format.into_iter().zip(codes) {
                let finished = running.finish();
                assert_eq!(finished.code, Some(code), "{finished:#?}");
                assert!(finished.stderr.contains("TRACE"), "{finished:#?}");
                assert_no_keys(&finished);
            }
        }
        // The store was seen, so there was something to hide.
        assert!(self.store.script().listings > 0 || self.pd.script().always.is_some());
        shown.map(Running::finish)
    }
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02X}")).collect()
}

/// Looks for the marks as they are, as hex, and as a list of numbers.
fn assert_no_keys(finished: &Finished) {
    let said = format!("{}\n{}", finished.lines.join("\n"), finished.stderr);
    for mark in MARKS {
        let numbers: Vec<_> = mark.bytes().map(|byte| byte.to_string()).collect();
        let numbers = numbers.join(", ");
        let upper = hex(mark);
        let lower = upper.to_lowercase();
        for form in [mark, &upper, &lower, &numbers] {
            if let Some(at) = said.find(form) {
                let line = said[..at].rfind('\n').map_or(0, |end| end + 1);
                panic!("{form} in {}", said[line..].lines().next().expect("there"));
            }
        }
    }
}

/// Checks that the result has the keys of region 2.
fn assert_shown(finished: &Finished) {
    let result = finished.result();
    let message = result["message"].as_str().expect("a message");
    for mark in MARKS {
        assert!(message.contains(&hex(mark)), "no {mark} in {message}");
    }
}

#[test]
fn the_keys_of_a_region_without_a_leader_are_hidden() {
    let cluster = Cluster::with(|pd, store| {
        pd.regions[1].leader = None;
        store.claims = claims(&[1, 3]);
    });
    let [run, check] = cluster.assert_hidden([10, 10]);
    assert_shown(&run);
    assert_shown(&check);
    let result = run.result();
    assert_eq!(result["kind"], "prepare_timeout", "{result}");
    assert_eq!(result["region"], 2, "{result}");
}

#[test]
fn the_keys_of_a_range_that_nobody_knows_are_hidden() {
    let cluster = Cluster::with(|pd, store| {
        pd.regions.remove(1);
        store.claims = claims(&[1, 3]);
    });
    let [run, check] = cluster.assert_hidden([10, 10]);
    assert_shown(&run);
    assert_shown(&check);
}

#[test]
fn the_keys_of_a_region_with_another_epoch_are_hidden() {
    let cluster = Cluster::with(|_, store| {
        let error = errorpb::Error {
            message: printed(),
            epoch_not_match: Some(EpochNotMatch {
                current_regions: vec![region(2)],
            }),
            ..errorpb::Error::default()
        };
        store.refused_wait = Some((2, error));
    });
    let [run, _] = cluster.assert_hidden([10, 0]);
    assert_shown(&run);
    let result = run.result();
    assert_eq!(
        (&result["region"], &result["store"]),
        (&2.into(), &STORE.into())
    );
}

#[test]
fn the_keys_in_the_words_of_a_refusal_are_hidden() {
    for key_not_in_region in [
        None,
        Some(KeyNotInRegion {
            key: ALICE.to_vec(),
            region_id: 2,
            start_key: ALICE.to_vec(),
            end_key: BOB.to_vec(),
        }),
    ] {
        let cluster = Cluster::with(|_, store| {
            let error = errorpb::Error {
                message: printed(),
                key_not_in_region,
                ..errorpb::Error::default()
            };
            store.refused_wait = Some((2, error));
        });
        let [run, _] = cluster.assert_hidden([10, 0]);
        assert_shown(&run);
    }
}

#[test]
fn the_keys_in_the_words_of_a_listing_are_hidden() {
    for with_status in [true, false] {
        let cluster = Cluster::with(|_, store| {
            if with_status {
                store.listing_ends_in = Some(Status::internal(printed()));
            } else {
                store.claims[1].error = Some(backup::Error {
                    msg: printed(),
                    ..backup::Error::default()
                });
            }
        });
        cluster.assert_hidden([10, 10]);
    }
}

#[test]
fn the_keys_in_the_words_of_pd_are_hidden() {
    let words = "no region has the key alice-4711, start_key: bob-4712";
    for turn in [
        Turn::Fail(Status::unknown(words)),
        Turn::HeaderError(ErrorType::Unknown, words),
    ] {
        let cluster = Cluster::with(|pd, _| pd.always = Some(turn));
        cluster.assert_hidden([10, 10]);
    }
}
