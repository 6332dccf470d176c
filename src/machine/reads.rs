use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;

use super::RequestId;
use super::normal::Normalizer;
use super::shelf::TELLING_READS;
use crate::region::{RegionId, StoreId};
use crate::time::Timestamp;

/// The leader reads in flight, batch by batch.
///
/// A store works through what it was sent more or less in order, so a batch is
/// not late while it, or one that was sent to the same store before it, makes
/// progress: a store that is merely slow would otherwise be asked for ever for
/// what it is about to answer.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Reads {
    batches: BTreeMap<RequestId, ReadBatch>,
    /// The batches by the time of their last progress, or of what counted as such
    /// when it was looked at last.
    by_progress: BTreeSet<(Timestamp, RequestId)>,
}

/// A batch of leader reads in flight.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct ReadBatch {
    pub(super) store_id: StoreId,
    progress: Timestamp,
    pub(super) size: u32,
    /// When it was sent, until half of it is answered.
    sent: Option<Timestamp>,
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
        let left: BTreeSet<RegionId> = regions.collect();
        let batch = ReadBatch {
            store_id,
            progress: now,
            size: u32::try_from(left.len()).unwrap_or(u32::MAX),
            sent: Some(now),
            left,
        };
        self.batches.insert(request, batch);
        self.by_progress.insert((now, request));
    }

    /// Notes that one region of a batch is answered. Returns the size of the batch
    /// and how long half of it took, once that is known.
    pub(super) fn end_one(
        &mut self,
        request: RequestId,
        id: RegionId,
        now: Timestamp,
    ) -> Option<(u32, Duration)> {
        let batch = self.batches.get_mut(&request)?;
        batch.left.remove(&id);
        let half = if batch.left.len() <= batch.size as usize / 2 {
            let sent = batch.sent.take();
            sent.map(|sent| (batch.size, now.saturating_duration_since(sent)))
        } else {
            None
        };
        self.end_of(request, now);
        half
    }

    fn end_of(&mut self, request: RequestId, now: Timestamp) {
        let Some(batch) = self.batches.get(&request) else {
            return;
        };
        if !batch.left.is_empty() {
            self.note_progress(request, now);
            return;
        }
        let store_id = batch.store_id;
        self.take(request);
        // Its turn has come.
        if let Some(next) = self.next_at(store_id, request) {
            self.note_progress(next, now);
        }
    }

    fn note_progress(&mut self, request: RequestId, at: Timestamp) {
        if let Some(batch) = self.batches.get_mut(&request)
            && batch.progress < at
        {
            self.by_progress.remove(&(batch.progress, request));
            batch.progress = at;
            self.by_progress.insert((batch.progress, request));
        }
    }

    /// Returns the batch that was sent to a store next after another one.
    fn next_at(&self, store_id: StoreId, after: RequestId) -> Option<RequestId> {
        let later = (Bound::Excluded(after), Bound::Unbounded);
        let mut later = self.batches.range(later);
        let next = later.find(|(_, batch)| batch.store_id == store_id)?;
        Some(*next.0)
    }

    /// Returns when a batch, or one that was sent to the same store before it,
    /// made progress last.
    fn store_progress(&self, request: RequestId) -> Option<Timestamp> {
        let store_id = self.store_of(request)?;
        let up_to = self.batches.range(..=request).map(|(_, batch)| batch);
        let there = up_to.filter(|batch| batch.store_id == store_id);
        there.map(|batch| batch.progress).max()
    }

    /// Takes a batch out of flight.
    pub(super) fn take(&mut self, request: RequestId) -> Option<ReadBatch> {
        let batch = self.batches.remove(&request)?;
        self.by_progress.remove(&(batch.progress, request));
        Some(batch)
    }

    /// Returns the batches that are late: without progress for `timeout`, as all
    /// are that were sent to the same store before them.
    pub(super) fn overdue(&mut self, timeout: Duration, now: Timestamp) -> Vec<RequestId> {
        let mut overdue = Vec::new();
        let quiet = self.by_progress.iter();
        let quiet: Vec<_> = quiet
            .take_while(|(progress, _)| *progress + timeout <= now)
            .map(|(_, request)| *request)
            .collect();
        for request in quiet {
            match self.store_progress(request) {
                Some(progress) if progress + timeout > now => self.note_progress(request, progress),
                _ => overdue.push(request),
            }
        }
        overdue
    }

    /// Numbers the batches store by store: what was sent to one before what
    /// counts, but not to which store anything was sent first.
    pub(super) fn number(&self, to: &mut Normalizer) {
        let mut in_order: Vec<_> = self.batches.iter().collect();
        in_order.sort_by_key(|(_, batch)| batch.store_id);
        for (request, _) in in_order {
            to.number(&mut request.clone());
        }
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
                size,
                sent,
                left: _,
            } = batch;
            if *size < TELLING_READS {
                // Its time is of no account.
                *sent = None;
            } else if let Some(sent) = sent {
                to.instant(sent);
            }
            to.instant(progress);
            by_progress.insert((*progress, *request));
        }
    }

    /// Returns the batch that may be overdue next, and since when it has made no
    /// progress.
    pub(super) fn oldest(&self) -> Option<(Timestamp, RequestId)> {
        self.by_progress.first().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(5);

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_micros(secs * 1_000_000)
    }

    fn sent(batches: &[(u64, u64)]) -> Reads {
        let mut reads = Reads::default();
        for (number, store) in batches {
            let regions = [1, 2].map(|region| RegionId(number * 10 + region));
            let store = StoreId(*store);
            reads.begin(RequestId(*number), store, regions.into_iter(), at(0));
        }
        reads
    }

    fn answer(reads: &mut Reads, region: u64, secs: u64) {
        reads.end_one(RequestId(region / 10), RegionId(region), at(secs));
    }

    fn overdue(reads: &mut Reads, secs: u64) -> Vec<u64> {
        let overdue = reads.overdue(TIMEOUT, at(secs));
        overdue.into_iter().map(|request| request.0).collect()
    }

    #[test]
    fn a_batch_is_late_once_nothing_before_it_at_its_store_moves() {
        // What the store is about to answer is not late.
        let mut reads = sent(&[(1, 1), (2, 1), (3, 2)]);
        answer(&mut reads, 11, 4);
        assert_eq!(overdue(&mut reads, 4), [0; 0]);
        assert_eq!(overdue(&mut reads, 5), [3]);
        assert_eq!(overdue(&mut reads, 8), [3]);
        assert_eq!(overdue(&mut reads, 9), [3, 1, 2]);
    }

    #[test]
    fn the_turn_of_a_batch_comes_when_the_one_before_is_answered() {
        let mut reads = sent(&[(1, 1), (2, 1)]);
        answer(&mut reads, 11, 3);
        answer(&mut reads, 12, 7);
        assert_eq!(overdue(&mut reads, 11), [0; 0]);
        assert_eq!(overdue(&mut reads, 12), [2]);
    }

    #[test]
    fn what_is_answered_behind_a_batch_does_not_excuse_it() {
        let mut reads = sent(&[(1, 1), (2, 1)]);
        answer(&mut reads, 21, 4);
        assert_eq!(overdue(&mut reads, 5), [1]);
        answer(&mut reads, 22, 4);
        assert_eq!(overdue(&mut reads, 5), [1]);
    }

    #[test]
    fn half_of_a_batch_is_timed_once() {
        for (size, half) in [(1, 1), (2, 1), (3, 2), (6, 3), (7, 4)] {
            let mut reads = Reads::default();
            let request = RequestId(1);
            let regions = (1..=size).map(RegionId);
            reads.begin(request, StoreId(1), regions, at(1));
            let timed = (1..=size).map(|id| reads.end_one(request, RegionId(id), at(1 + id)));
            let timed: Vec<_> = timed.collect();
            for (id, timed) in (1..=size).zip(timed) {
                let expected = (id == half).then(|| (size as u32, Duration::from_secs(half)));
                assert_eq!(timed, expected, "{id} of {size}");
            }
            assert!(reads.is_empty());
        }
    }

    #[test]
    fn the_next_deadline_is_never_later_than_the_true_one() {
        let mut reads = sent(&[(1, 1), (2, 1)]);
        answer(&mut reads, 11, 4);
        assert_eq!(reads.oldest(), Some((at(0), RequestId(2))));
        assert_eq!(overdue(&mut reads, 5), [0; 0]);
        assert_eq!(reads.oldest(), Some((at(4), RequestId(1))));
    }
}
