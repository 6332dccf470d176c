use crate::range::{EndKey, KeyRange, KeyRangeSet};
use crate::sim::fault::FaultPlan;
use crate::sim::layout::Layout;
use crate::sim::model::Cluster;
use crate::time::Timestamp;

/// The most regions with which a cluster is started.
const REGIONS_MAX: usize = 64;

/// Reads a layout from bytes: a dump of regions, or one of stores after the first
/// byte of zero. Returns whether they were a layout.
///
/// # Panics
/// Reading panics, or accepts what is no cluster at rest.
pub fn layout(data: &[u8]) -> bool {
    let mut halves = data.splitn(2, |byte| *byte == 0);
    let (regions, stores) = (halves.next().unwrap_or_default(), halves.next());
    let read = match stores {
        None => Layout::from_pd_json(regions),
        Some(stores) => Layout::from_pd_json_with_stores(regions, stores),
    };
    let layout = match read {
        Ok(layout) => layout,
        Err(error) => {
            assert!(!error.to_string().is_empty(), "an error says nothing");
            return false;
        }
    };
    if let Err(error) = layout.check() {
        panic!("a layout was read that is none: {error}");
    }
    // An entry takes more bytes than this, so a small file cannot make much.
    assert!(
        layout.regions.len() * 20 <= data.len(),
        "regions from nothing"
    );
    check_tiling(&layout);
    if layout.regions.len() <= REGIONS_MAX {
        let start = Timestamp::from_micros(0);
        let _ = Cluster::new(&layout, FaultPlan::none(), 1, start);
    }
    true
}

/// Each key is in exactly one region.
fn check_tiling(layout: &Layout) {
    let mut covered = KeyRangeSet::new();
    for entry in &layout.regions {
        let range = &entry.region.range;
        assert!(!covered.overlaps(range), "two regions hold the same key");
        covered.insert(range);
    }
    assert_eq!(covered.first_gap(&KeyRange::whole()), None, "a gap");
    let last = layout.regions.last().map(|entry| entry.region.range.end());
    assert_eq!(last, Some(&EndKey::Unbounded));
}
