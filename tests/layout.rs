//! Reading layouts from the dumps of PD's tools: what is accepted, and what is
//! said about one that is not.
#![cfg(feature = "sim")]

use serde_json::{Value, json};
use snapshot_prepare::range::Key;
use snapshot_prepare::region::{PeerId, PeerRole, RegionId, StoreId, StoreState};
use snapshot_prepare::sim::layout::{Bound, KeyProblem, Layout, LayoutError, RegionProblem};

const REGIONS: &[u8] = include_bytes!("data/regions.json");
const STORES: &[u8] = include_bytes!("data/stores.json");

/// Reads the sample after `change`.
fn changed(change: impl FnOnce(&mut Value)) -> Result<Layout, LayoutError> {
    let mut dump: Value = serde_json::from_slice(REGIONS).expect("the sample is JSON");
    change(&mut dump);
    Layout::from_pd_json(dump.to_string().as_bytes())
}

/// Finds a region of the sample by its id.
fn region(dump: &mut Value, id: u64) -> &mut Value {
    let regions = dump["regions"].as_array_mut().expect("a list");
    regions
        .iter_mut()
        .find(|region| region["id"] == json!(id))
        .expect("the region is in the sample")
}

/// Expects that the sample is refused after `change` for what is wrong with
/// region 130, which lies in the middle.
fn problem_of(change: impl FnOnce(&mut Value)) -> RegionProblem {
    match changed(|dump| change(region(dump, 130))) {
        Err(LayoutError::Region { region_id, problem }) => {
            assert_eq!(region_id, RegionId(130));
            let said = LayoutError::Region {
                region_id,
                problem: problem.clone(),
            };
            assert!(said.to_string().starts_with("region 130: "), "{said}");
            problem
        }
        other => panic!("not the expected error: {other:?}"),
    }
}

#[test]
fn a_dump_of_regions_alone_is_read() {
    let layout = Layout::from_pd_json(REGIONS).expect("sound");
    assert_eq!(layout.regions.len(), 7);
    let ids: Vec<u64> = layout.regions.iter().map(|r| r.region.id.0).collect();
    assert_eq!(ids, [100, 110, 120, 130, 140, 150, 160], "in key order");
    let last = layout.regions.last().expect("seven");
    assert!(last.region.range.end().as_key().is_none(), "open end");

    let third = &layout.regions[3];
    assert_eq!(third.leader, Some(StoreId(1)));
    assert_eq!(third.region.epoch.conf_ver, 7);
    assert_eq!(third.region.epoch.version, 31);
    assert_eq!(
        third.region.range.start().reveal(),
        "7480000000000000FF0C00000000000000F8"
    );
    let learner = third.region.peer_on(StoreId(9)).expect("a learner");
    assert_eq!((learner.id, learner.role), (PeerId(134), PeerRole::Learner));

    let stores: Vec<(u64, bool)> = layout
        .stores
        .iter()
        .map(|store| (store.id.0, store.is_tiflash()))
        .collect();
    let expected = [(1, false), (2, false), (4, false), (9, true)];
    assert_eq!(stores, expected, "store 9 holds learners only");
}

#[test]
fn a_dump_of_stores_tells_the_rest() {
    let layout = Layout::from_pd_json_with_stores(REGIONS, STORES).expect("sound");
    let states: Vec<(u64, StoreState)> = layout.stores.iter().map(|s| (s.id.0, s.state)).collect();
    assert_eq!(
        states,
        [
            (1, StoreState::Up),
            (2, StoreState::Offline),
            (3, StoreState::Tombstone),
            (4, StoreState::Up),
            (9, StoreState::Up),
        ]
    );
    assert_eq!(layout.stores[1].labels["zone"], "a");
    assert_eq!(layout.stores[0].address, "store-1.test:20160");
    let part: Vec<u64> = layout
        .stores
        .iter()
        .filter(|store| store.takes_part())
        .map(|store| store.id.0)
        .collect();
    assert_eq!(part, [1, 2, 4]);
}

#[test]
fn lower_case_hex_and_roles_in_other_forms_are_read() {
    let layout = changed(|dump| {
        let region = region(dump, 130);
        let start = region["start_key"].as_str().expect("text").to_lowercase();
        region["start_key"] = json!(start);
        // Older tools have no `role_name`, and still older ones no `role`.
        region["peers"][0]
            .as_object_mut()
            .expect("a peer")
            .remove("role_name");
        let learner = region["peers"][3].as_object_mut().expect("a peer");
        learner.remove("role_name");
        learner.remove("role");
    })
    .expect("sound");
    assert_eq!(layout, Layout::from_pd_json(REGIONS).expect("sound"));
}

#[test]
fn joint_roles_are_kept() {
    let layout = changed(|dump| {
        region(dump, 130)["peers"][1]["role_name"] = json!("DemotingVoter");
        region(dump, 130)["peers"][2]["role_name"] = json!("IncomingVoter");
    })
    .expect("sound");
    let roles: Vec<PeerRole> = layout.regions[3]
        .region
        .peers
        .iter()
        .map(|p| p.role)
        .collect();
    assert_eq!(
        roles,
        [
            PeerRole::Voter,
            PeerRole::DemotingVoter,
            PeerRole::IncomingVoter,
            PeerRole::Learner,
        ]
    );
}

#[test]
fn every_prefix_of_a_dump_is_refused_as_cut_off() {
    let end = REGIONS.trim_ascii_end().len();
    for cut in (0..end).step_by(37).chain([end - 1]) {
        let error = Layout::from_pd_json(&REGIONS[..cut]).expect_err("cut");
        assert!(
            matches!(error, LayoutError::CutOff { .. }),
            "cut at {cut}: {error}"
        );
    }
}

#[test]
fn what_is_not_json_is_told_from_what_has_the_wrong_shape() {
    for text in ["region 1", "{]", "<html>502</html>", "{}{}"] {
        let error = Layout::from_pd_json(text.as_bytes()).expect_err("not JSON");
        assert!(matches!(error, LayoutError::NotJson { .. }), "{error}");
    }
    let mut broken = REGIONS.to_vec();
    broken[200] = 0xff;
    let error = Layout::from_pd_json(&broken).expect_err("not UTF-8");
    assert!(
        matches!(
            error,
            LayoutError::NotJson { .. } | LayoutError::WrongShape { .. }
        ),
        "{error}"
    );
    for text in [
        "{}",
        "[]",
        "7",
        "{\"regions\": 7}",
        "{\"regions\": [7]}",
        "{\"count\": \"all\", \"regions\": []}",
        // A single region, as `pd-ctl region 5` prints it.
        "{\"id\": 5, \"start_key\": \"\", \"end_key\": \"\"}",
    ] {
        let error = Layout::from_pd_json(text.as_bytes()).expect_err("wrong shape");
        assert!(matches!(error, LayoutError::WrongShape { .. }), "{error}");
    }
    let error = Layout::from_pd_json(STORES).expect_err("a dump of stores");
    assert!(error.to_string().contains("`regions`"), "{error}");
}

#[test]
fn an_empty_cluster_is_refused() {
    let error = Layout::from_pd_json(b"{\"count\": 0, \"regions\": []}");
    assert_eq!(error, Err(LayoutError::NoRegions));
}

#[test]
fn a_count_that_does_not_fit_is_refused() {
    assert_eq!(
        changed(|dump| dump["count"] = json!(8)),
        Err(LayoutError::CountMismatch {
            what: "regions",
            said: 8,
            found: 7,
        })
    );
}

#[test]
fn keys_that_cannot_be_read_are_refused_with_the_region() {
    for (key, expected) in [
        (
            "t\\x80\\x00\\x00\\x00\\x00\\x00\\x00\\xff\\x0c",
            KeyProblem::EscapedText,
        ),
        ("t\\200\\000", KeyProblem::EscapedText),
        ("748", KeyProblem::OddHex),
        ("table", KeyProblem::NotHex),
        ("74 80", KeyProblem::NotHex),
        ("7480ÿ", KeyProblem::NotHex),
    ] {
        let problem = problem_of(|region| region["start_key"] = json!(key));
        assert_eq!(
            problem,
            RegionProblem::BadKey {
                bound: Bound::Start,
                problem: expected,
            },
            "{key}"
        );
        let problem = problem_of(|region| region["end_key"] = json!(key));
        assert!(problem.to_string().contains("end key"), "{problem}");
        assert!(!problem.to_string().contains(key), "keys are user data");
    }
}

#[test]
fn what_is_missing_is_named() {
    for field in ["start_key", "end_key", "epoch", "peers", "leader"] {
        let removed = problem_of(|region| {
            region.as_object_mut().expect("a region").remove(field);
        });
        assert_eq!(removed, RegionProblem::Missing(field));
        assert_eq!(
            problem_of(|region| region[field] = Value::Null),
            RegionProblem::Missing(field)
        );
    }
    // PD's form of 'no leader'.
    for leader in [
        json!({"role_name": "Voter"}),
        json!({"id": 0, "store_id": 0}),
    ] {
        assert_eq!(
            problem_of(|region| region["leader"] = leader),
            RegionProblem::Missing("leader")
        );
    }
    assert_eq!(
        changed(|dump| {
            dump["regions"][2]
                .as_object_mut()
                .expect("a region")
                .remove("id");
        }),
        Err(LayoutError::MissingId {
            what: "regions",
            index: 2,
        })
    );
}

#[test]
fn unsound_regions_are_named() {
    type Case = (fn(&mut Value), RegionProblem);
    let cases: [Case; 10] = [
        (
            |region| region["leader"] = json!({"id": 999, "store_id": 7}),
            RegionProblem::ForeignLeader(StoreId(7)),
        ),
        (
            // The right store, but the peer id of another store.
            |region| region["leader"]["id"] = json!(132),
            RegionProblem::ForeignLeader(StoreId(1)),
        ),
        (
            |region| region["leader"] = json!({"id": 134, "store_id": 9}),
            RegionProblem::LearnerLeads(StoreId(9)),
        ),
        (|region| region["peers"] = json!([]), RegionProblem::NoPeers),
        (
            |region| region["peers"][1]["role_name"] = json!("Witness"),
            RegionProblem::UnknownRole(PeerId(132)),
        ),
        (
            |region| region["peers"][1]["store_id"] = json!(4),
            RegionProblem::TwoPeersOnStore(StoreId(4)),
        ),
        (
            |region| region["peers"][1]["store_id"] = json!(0),
            RegionProblem::ZeroPeer,
        ),
        (
            |region| region["epoch"]["version"] = json!(1_u64 << 63),
            RegionProblem::NumberTooLarge,
        ),
        (
            |region| region["end_key"] = region["start_key"].clone(),
            RegionProblem::EmptyRange,
        ),
        (
            |region| {
                region["start_key"] = json!("7480000000000000FF0F");
                region["end_key"] = json!("7480000000000000FF0E");
            },
            RegionProblem::EmptyRange,
        ),
    ];
    for (change, expected) in cases {
        assert_eq!(problem_of(change), expected);
    }
}

#[test]
fn ids_are_used_once() {
    assert_eq!(
        changed(|dump| region(dump, 130)["id"] = json!(140)),
        Err(LayoutError::DuplicateRegion {
            region_id: RegionId(140)
        })
    );
    let error = changed(|dump| {
        let first = region(dump, 130)["peers"][0]["id"].clone();
        region(dump, 130)["peers"][1]["id"] = first;
    });
    assert!(
        matches!(
            error,
            Err(LayoutError::DuplicatePeer {
                region_id: RegionId(130),
                ..
            })
        ),
        "{error:?}"
    );
    // A dump with ids that were made up anew has some twice.
    changed(|dump| region(dump, 130)["peers"][1]["id"] = json!(142)).expect("a sound cluster");
}

#[test]
fn gaps_and_overlaps_name_the_regions() {
    let error = changed(|dump| {
        region(dump, 130)["end_key"] =
            json!("7480000000000000FF0C5F728000000000FF0F00000000000000FA");
    });
    let gap = |after: Option<u64>, before: Option<u64>| {
        Err(LayoutError::Gap {
            after: after.map(RegionId),
            before: before.map(RegionId),
        })
    };
    assert_eq!(error, gap(Some(130), Some(140)));

    let error = changed(|dump| {
        region(dump, 130)["end_key"] =
            json!("7480000000000000FF0C5F728000000000FF0FFF000000000000FA");
    });
    assert_eq!(
        error,
        Err(LayoutError::Overlap {
            region_id: RegionId(130),
            other: RegionId(140),
        })
    );
    // An open end in the middle covers all that follows.
    let error = changed(|dump| region(dump, 130)["end_key"] = json!(""));
    assert!(
        matches!(error, Err(LayoutError::Overlap { .. })),
        "{error:?}"
    );

    assert_eq!(
        changed(|dump| region(dump, 100)["start_key"] = json!("00")),
        gap(None, Some(100))
    );
    assert_eq!(
        changed(|dump| region(dump, 160)["end_key"] = json!("7480000000000000FFFF")),
        gap(Some(160), None)
    );
    let error = changed(|dump| region(dump, 160)["end_key"] = json!("7480000000000000FFFF"));
    let text = error.expect_err("a gap").to_string();
    assert!(
        text.contains("region 160") && text.contains("last"),
        "{text}"
    );
}

#[test]
fn regions_and_stores_have_to_fit() {
    let with = |change: fn(&mut Value)| {
        let mut stores: Value = serde_json::from_slice(STORES).expect("JSON");
        change(&mut stores);
        Layout::from_pd_json_with_stores(REGIONS, stores.to_string().as_bytes())
            .expect_err("does not fit")
            .to_string()
    };
    let without_2 = with(|stores| {
        stores["count"] = json!(4);
        stores["stores"].as_array_mut().expect("a list").remove(1);
    });
    assert!(
        without_2.contains("store 2, which is not among"),
        "{without_2}"
    );
    let gone = with(|stores| stores["stores"][1]["store"]["state_name"] = json!("Tombstone"));
    assert!(gone.contains("store 2, which is a tombstone"), "{gone}");
    let relabeled = with(|stores| {
        stores["stores"][1]["store"]["labels"] = json!([{"key": "engine", "value": "tiflash"}]);
    });
    assert!(relabeled.contains("voter on store 2"), "{relabeled}");
    let odd = with(|stores| stores["stores"][1]["store"]["state_name"] = json!("Asleep"));
    assert!(odd.contains("store 2: its state"), "{odd}");
    let twice = with(|stores| stores["stores"][1]["store"]["id"] = json!(1));
    assert_eq!(twice, "store 1: the id is there twice");
    let count = with(|stores| stores["count"] = json!(9));
    assert!(count.contains("9 stores, but it holds 5"), "{count}");
}

#[test]
fn what_a_shape_error_says_is_free_of_keys() {
    let error = changed(|dump| region(dump, 130)["epoch"] = json!("7480000000000000FF0C"));
    let text = error.expect_err("wrong shape").to_string();
    assert!(text.starts_with("wrong shape: expected "), "{text}");
    assert!(!text.contains("7480"), "{text}");
}

#[test]
fn a_layout_put_together_by_hand_is_checked() {
    let mut layout = Layout::generate(3, 5, 3, 1);
    assert_eq!(layout.check(), Ok(()));
    let leaderless = layout.regions[2].region.id;
    layout.regions[2].leader = None;
    assert_eq!(
        layout.check(),
        Ok(()),
        "region {leaderless} may have no leader"
    );
    layout.regions[2].leader = Some(StoreId(77));
    let error = layout.check().expect_err("unsound");
    assert_eq!(error.region_id(), Some(leaderless));
    layout.regions.swap(0, 1);
    layout.regions[2].leader = None;
    assert!(layout.check().is_err(), "regions are in key order");
    assert_ne!(layout.regions[0].region.range.start(), &Key::EMPTY);
}
