//! What PD says: stores and regions.

use super::Verdict;
use super::context::{Context, Outcome, ensure, ensure_sorted_stores};
use crate::cluster::ClusterClient;
use crate::range::{EndKey, Key, KeyRange};
use crate::region::ScannedRegion;

/// The page size with which checks read the whole.
const PAGE: u32 = 1024;

pub(super) async fn list_stores<C: ClusterClient>(context: &Context<'_, C>) -> Outcome {
    let stores = context.stores().await?;
    for store in &stores {
        ensure(!store.address.is_empty(), || {
            format!("store {} has no address", store.id)
        })?;
    }
    let mut found: Vec<_> = stores.iter().map(|store| store.id).collect();
    let mut expected = context.expected.stores.clone();
    found.sort_unstable();
    expected.sort_unstable();
    ensure_sorted_stores(&found, &expected)?;
    Ok(Verdict::Passed)
}

pub(super) async fn scan_tiles<C: ClusterClient>(context: &Context<'_, C>) -> Outcome {
    let all = context.scan_all(PAGE).await?;
    ensure(all.len() == context.expected.regions, || {
        format!(
            "expected {} regions, found {}",
            context.expected.regions,
            all.len()
        )
    })?;
    let mut reached = Some(EndKey::Bounded(Key::EMPTY));
    for scanned in &all {
        let region = &scanned.region;
        let start = EndKey::Bounded(region.range.start().clone());
        ensure(reached.as_ref() == Some(&start), || {
            format!("region {} does not start where the last ends", region.id)
        })?;
        ensure(!region.peers.is_empty(), || {
            format!("region {} has no peers", region.id)
        })?;
        ensure(scanned.leader.is_none_or(|id| !id.is_none()), || {
            format!("region {} is led by store 0, which is no store", region.id)
        })?;
        reached = Some(region.range.end().clone());
    }
    ensure(reached == Some(EndKey::Unbounded), || {
        "the last region has an end".to_owned()
    })?;
    Ok(Verdict::Passed)
}

pub(super) async fn scan_limit<C: ClusterClient>(context: &Context<'_, C>) -> Outcome {
    let all = context.scan_all(PAGE).await?;
    for limit in [1, 2, 3] {
        let page = context.scan(KeyRange::whole(), limit).await?;
        let expected = all.get(..all.len().min(limit as usize));
        ensure(expected == Some(page.as_slice()), || {
            format!("with limit {limit} the page is not the first {limit} regions")
        })?;
    }
    Ok(Verdict::Passed)
}

pub(super) async fn scan_range<C: ClusterClient>(context: &Context<'_, C>) -> Outcome {
    let all = context.scan_all(PAGE).await?;
    let middle = all.len() / 2;
    let Some(some) = all.get(middle..(middle + 3).min(all.len())) else {
        return Err("there is no region".to_owned());
    };
    let ([first, ..], [.., last]) = (some, some) else {
        return Err("there is no region".to_owned());
    };
    expect_scan(
        context,
        first.region.range.clone(),
        std::slice::from_ref(first),
    )
    .await?;
    let start = first.region.range.start().clone();
    let exact = KeyRange::new(start, last.region.range.end().clone());
    let exact = exact.ok_or("regions are not in key order")?;
    expect_scan(context, exact, some).await?;

    // From within the first region to within the last one.
    let inside = just_above(first.region.range.start());
    if first.region.range.contains_key(&inside) {
        let end = EndKey::Bounded(just_above(last.region.range.start()));
        if let Some(range) = KeyRange::new(inside.clone(), end) {
            expect_scan(context, range, some).await?;
        }
        let rest = all.get(middle..).unwrap_or_default();
        if let Some(range) = KeyRange::new(inside, EndKey::Unbounded) {
            let page = context.scan(range, 2).await?;
            ensure(
                rest.get(..rest.len().min(2)) == Some(page.as_slice()),
                || {
                    "a scan to the open end does not begin with the region of its first key"
                        .to_owned()
                },
            )?;
        }
    }
    if let Some(last) = all.last() {
        expect_scan(
            context,
            last.region.range.clone(),
            std::slice::from_ref(last),
        )
        .await?;
    }
    Ok(Verdict::Passed)
}

pub(super) async fn scan_pages<C: ClusterClient>(context: &Context<'_, C>) -> Outcome {
    if context.expected.regions < 2 {
        return Ok(Verdict::Skipped("there is one region only"));
    }
    let all = context.scan_all(PAGE).await?;
    // About five pages, the last one not full where possible.
    let limit = u32::try_from(all.len() / 5 + 1).unwrap_or(PAGE).min(PAGE);
    let pages = context.scan_all(limit).await?;
    ensure(all == pages, || {
        format!("pages of {limit} regions put together are not the whole")
    })?;
    Ok(Verdict::Passed)
}

async fn expect_scan<C: ClusterClient>(
    context: &Context<'_, C>,
    range: KeyRange,
    expected: &[ScannedRegion],
) -> Result<(), String> {
    let found = context.scan(range, PAGE).await?;
    ensure(found == expected, || {
        let ids = |list: &[ScannedRegion]| -> Vec<u64> {
            list.iter().map(|scanned| scanned.region.id.0).collect()
        };
        format!(
            "a scan found the regions {:?} instead of {:?}",
            ids(&found),
            ids(expected)
        )
    })
}

/// Returns the lowest key above `key`.
fn just_above(key: &Key) -> Key {
    let mut bytes = key.as_bytes().to_vec();
    bytes.push(0);
    Key::new(bytes)
}
