//! Region scans in the forms of old and new servers.

use snapshot_prepare::cluster::ClusterClient;
use snapshot_prepare::error::FailureKind;
use snapshot_prepare::pb::{metapb, pdpb};
use snapshot_prepare::range::KeyRange;
use snapshot_prepare::region::StoreId;

use crate::fake_pd::FakePd;
use crate::support::{connect, soon};

/// A region of PD's scan, with its leader's store: `None` for no leader, 0 for
/// PD's other way to say so.
fn region(id: u64, start: &str, end: &str, leader: Option<u64>) -> pdpb::Region {
    pdpb::Region {
        region: Some(metapb::Region {
            id,
            start_key: start.into(),
            end_key: end.into(),
            region_epoch: Some(metapb::RegionEpoch {
                conf_ver: 1,
                version: 2,
            }),
            peers: Vec::new(),
        }),
        leader: leader.map(|store_id| metapb::Peer {
            store_id,
            ..metapb::Peer::default()
        }),
        ..pdpb::Region::default()
    }
}

fn all() -> Vec<pdpb::Region> {
    // With a gap between c and d.
    vec![
        region(1, "", "b", Some(4)),
        region(2, "b", "c", Some(0)),
        region(3, "d", "", None),
    ]
}

async fn whole_scan(pd: &FakePd) -> Vec<(u64, Option<StoreId>)> {
    let cluster = connect(pd.url()).await;
    let scan = soon(cluster.scan_regions(KeyRange::whole(), 10)).await;
    let scan = scan.expect("it scans").into_iter();
    scan.map(|found| (found.region.id.0, found.leader))
        .collect()
}

#[tokio::test]
async fn every_form_tells_the_same() {
    let expected = vec![(1, Some(StoreId(4))), (2, None), (3, None)];
    for (no_batch_scan, old_form) in [(false, false), (true, false), (true, true)] {
        let pd = FakePd::start().await;
        {
            let mut script = pd.script();
            script.regions = all();
            (script.no_batch_scan, script.old_form) = (no_batch_scan, old_form);
        }
        assert_eq!(
            whole_scan(&pd).await,
            expected,
            "{no_batch_scan} {old_form}"
        );
    }
}

#[tokio::test]
async fn a_call_that_is_lacking_is_tried_once() {
    let pd = FakePd::start().await;
    pd.script().no_batch_scan = true;
    let cluster = connect(pd.url()).await;
    for _ in 0..3 {
        let scan = soon(cluster.scan_regions(KeyRange::whole(), 10)).await;
        assert_eq!(scan, Ok(Vec::new()));
    }
    assert_eq!(
        (pd.count("BatchScanRegions"), pd.count("ScanRegions")),
        (1, 3)
    );
}

#[tokio::test]
async fn limits_never_mean_no_limit_and_ends_keep_their_meaning() {
    for (no_batch_scan, name) in [(false, "BatchScanRegions"), (true, "ScanRegions")] {
        let pd = FakePd::start().await;
        pd.script().no_batch_scan = no_batch_scan;
        let cluster = connect(pd.url()).await;
        for (asked, sent) in [(0, 1), (5, 5), (u32::MAX, 65_536)] {
            soon(cluster.scan_regions(KeyRange::whole(), asked))
                .await
                .expect("it scans");
            assert_eq!(pd.script().calls.last(), Some(&(name, sent)));
            assert_eq!(pd.script().last_scan, Some((Vec::new(), Vec::new())));
        }
        let range = KeyRange::from_wire("b", "c").expect("not empty");
        soon(cluster.scan_regions(range, 5))
            .await
            .expect("it scans");
        assert_eq!(pd.script().last_scan, Some((b"b".to_vec(), b"c".to_vec())));
    }
}

#[tokio::test]
async fn what_lies_outside_is_left_out_and_the_rest_is_in_order() {
    let pd = FakePd::start().await;
    pd.script().regions = all().into_iter().rev().collect();
    let cluster = connect(pd.url()).await;
    let range = KeyRange::from_wire("a", "c").expect("not empty");
    let scan = soon(cluster.scan_regions(range, 10))
        .await
        .expect("it scans");
    let ids: Vec<_> = scan.iter().map(|found| found.region.id.0).collect();
    assert_eq!(ids, [1, 2]);
}

#[tokio::test]
async fn an_entry_that_is_no_region_is_malformed() {
    let pd = FakePd::start().await;
    let cluster = connect(pd.url()).await;
    for bad in [pdpb::Region::default(), region(1, "b", "a", None)] {
        pd.script().regions = vec![bad];
        let failure = soon(cluster.scan_regions(KeyRange::whole(), 10))
            .await
            .expect_err("malformed");
        assert_eq!(failure.kind, FailureKind::Malformed);
    }
}
