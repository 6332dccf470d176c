use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::RequestId;
use super::normal::Normalizer;
use crate::region::{RegionId, StoreId};
use crate::time::Timestamp;

/// The leader reads in flight, batch by batch.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Reads {
    batches: BTreeMap<RequestId, ReadBatch>,
    /// The batches by the time of their last progress.
    by_progress: BTreeSet<(Timestamp, RequestId)>,
}

/// A batch of leader reads in flight.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct ReadBatch {
    pub(super) store_id: StoreId,
    progress: Timestamp,
    /// What is not answered yet.
    pub(super) left: BTreeSet<RegionId>,
}

impl Reads {
    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Returns the store that a batch was sent to, `None` when it is not in
    /// flight.
    pub(super) fn store_of(&self, request: RequestId) -> Option<StoreId> {
        self.batches.get(&request).map(|batch| batch.store_id)
    }

    /// Returns whether the read of a region is in flight in the batch.
    pub(super) fn has(&self, request: RequestId, id: RegionId) -> bool {
        self.batches
            .get(&request)
            .is_some_and(|batch| batch.left.contains(&id))
    }

    /// Notes that a batch is sent.
    pub(super) fn begin(
        &mut self,
        request: RequestId,
        store_id: StoreId,
        regions: impl Iterator<Item = RegionId>,
        now: Timestamp,
    ) {
        let batch = ReadBatch {
            store_id,
            progress: now,
            left: regions.collect(),
        };
        self.batches.insert(request, batch);
        self.by_progress.insert((now, request));
    }

    /// Notes that one region of a batch is answered.
    pub(super) fn end_one(&mut self, request: RequestId, id: RegionId, now: Timestamp) {
        let Some(batch) = self.batches.get_mut(&request) else {
            return;
        };
        self.by_progress.remove(&(batch.progress, request));
        batch.left.remove(&id);
        if batch.left.is_empty() {
            self.batches.remove(&request);
        } else {
            batch.progress = now;
            self.by_progress.insert((now, request));
        }
    }

    /// Takes a batch out of flight.
    pub(super) fn take(&mut self, request: RequestId) -> Option<ReadBatch> {
        let batch = self.batches.remove(&request)?;
        self.by_progress.remove(&(batch.progress, request));
        Some(batch)
    }

    /// Returns the batches that have been without progress for `timeout`.
    pub(super) fn overdue(&self, timeout: Duration, now: Timestamp) -> Vec<RequestId> {
        self.by_progress
            .iter()
            .take_while(|(progress, _)| *progress + timeout <= now)
            .map(|(_, request)| *request)
            .collect()
    }

    pub(super) fn normalize(&mut self, to: &mut Normalizer) {
        let Self {
            batches,
            by_progress,
        } = self;
        to.keys(batches);
        by_progress.clear();
        for (request, batch) in batches {
            let ReadBatch {
                store_id: _,
                progress,
                left: _,
            } = batch;
            to.instant(progress);
            by_progress.insert((*progress, *request));
        }
    }

    /// Returns the batch that is overdue next, and since when it has made no
    /// progress.
    pub(super) fn oldest(&self) -> Option<(Timestamp, RequestId)> {
        self.by_progress.first().copied()
    }
}
