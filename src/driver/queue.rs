use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::cluster::StreamRequest;
use crate::machine::RequestId;
use crate::region::WaitTarget;

/// The most regions handed to a stream at once, so that a renewal that becomes
/// due meanwhile waits for no more than that.
const WAITS_PER_SEND: usize = 512;

/// What waits to be written to one prepare stream, and the numbers of the
/// lease requests that were written and not answered yet.
///
/// Whoever puts something in never waits. The order in which things come out is
/// renewals, `Finish`, waits; after `Finish` nothing does.
#[derive(Debug, Default)]
pub(super) struct WriteQueue {
    state: Mutex<State>,
    filled: Notify,
}

#[derive(Debug, Default)]
struct State {
    renewals: VecDeque<(RequestId, u64)>,
    finish: Option<RequestId>,
    waits: VecDeque<WaitTarget>,
    finish_asked: bool,
    unanswered: VecDeque<RequestId>,
}

impl WriteQueue {
    /// Puts a lease request in; dropped after `Finish`, which it would undo.
    pub(super) fn update_lease(&self, request: RequestId, seconds: u64) {
        let mut state = self.state();
        if !state.finish_asked {
            state.renewals.push_back((request, seconds));
        }
        self.filled.notify_one();
    }

    /// Puts waits in; dropped after `Finish`.
    pub(super) fn wait_apply(&self, regions: Vec<WaitTarget>) {
        let mut state = self.state();
        if !state.finish_asked {
            state.waits.extend(regions);
        }
        self.filled.notify_one();
    }

    /// Puts `Finish` in and drops the waits that were not written yet.
    pub(super) fn finish(&self, request: RequestId) {
        let mut state = self.state();
        if !state.finish_asked {
            state.finish_asked = true;
            state.finish = Some(request);
            state.waits = VecDeque::new();
        }
        self.filled.notify_one();
    }

    /// Returns what is to be written next, waiting until there is something.
    /// For the writer only: what this returns counts as written.
    pub(super) async fn next(&self) -> StreamRequest {
        loop {
            if let Some(request) = self.state().pop() {
                return request;
            }
            self.filled.notified().await;
        }
    }

    /// Returns the number of the oldest lease request without an answer, which
    /// the lease answer that just arrived belongs to; `None` when nobody asked.
    pub(super) fn answered(&self) -> Option<RequestId> {
        self.state().unanswered.pop_front()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The number is noted before the request is written, since the answer can
    /// arrive before the write returns.
    fn pop(&mut self) -> Option<StreamRequest> {
        if let Some((request, seconds)) = self.renewals.pop_front() {
            self.unanswered.push_back(request);
            return Some(StreamRequest::UpdateLease { seconds });
        }
        if let Some(request) = self.finish.take() {
            self.unanswered.push_back(request);
            return Some(StreamRequest::Finish);
        }
        if self.waits.is_empty() {
            return None;
        }
        let count = self.waits.len().min(WAITS_PER_SEND);
        Some(StreamRequest::WaitApply {
            regions: self.waits.drain(..count).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::{RegionEpoch, RegionId};

    fn targets(ids: std::ops::Range<u64>) -> Vec<WaitTarget> {
        ids.map(|id| WaitTarget {
            region_id: RegionId(id),
            epoch: RegionEpoch::default(),
        })
        .collect()
    }

    fn pop(queue: &WriteQueue) -> Option<StreamRequest> {
        queue.state().pop()
    }

    #[test]
    fn renewals_overtake_waits() {
        let queue = WriteQueue::default();
        queue.wait_apply(targets(0..2));
        queue.update_lease(RequestId(1), 120);
        assert_eq!(
            pop(&queue),
            Some(StreamRequest::UpdateLease { seconds: 120 })
        );
        assert_eq!(
            pop(&queue),
            Some(StreamRequest::WaitApply {
                regions: targets(0..2)
            })
        );
        assert_eq!(pop(&queue), None);
    }

    #[test]
    fn many_waits_leave_room_for_a_renewal_in_between() {
        let queue = WriteQueue::default();
        let count = WAITS_PER_SEND as u64;
        queue.wait_apply(targets(0..count + 1));
        assert_eq!(
            pop(&queue),
            Some(StreamRequest::WaitApply {
                regions: targets(0..count)
            })
        );
        queue.update_lease(RequestId(1), 5);
        assert_eq!(pop(&queue), Some(StreamRequest::UpdateLease { seconds: 5 }));
        assert_eq!(
            pop(&queue),
            Some(StreamRequest::WaitApply {
                regions: targets(count..count + 1)
            })
        );
    }

    #[test]
    fn finish_follows_renewals_and_drops_waits() {
        let queue = WriteQueue::default();
        queue.wait_apply(targets(0..9));
        queue.update_lease(RequestId(1), 5);
        queue.finish(RequestId(2));
        queue.wait_apply(targets(9..10));
        queue.update_lease(RequestId(3), 5);
        queue.finish(RequestId(4));
        assert_eq!(pop(&queue), Some(StreamRequest::UpdateLease { seconds: 5 }));
        assert_eq!(pop(&queue), Some(StreamRequest::Finish));
        assert_eq!(pop(&queue), None);
    }

    #[test]
    fn lease_answers_belong_to_what_was_written_in_order() {
        let queue = WriteQueue::default();
        queue.update_lease(RequestId(1), 5);
        assert_eq!(queue.answered(), None, "not written yet");
        pop(&queue);
        queue.update_lease(RequestId(2), 5);
        queue.finish(RequestId(3));
        pop(&queue);
        pop(&queue);
        let answered: Vec<_> = std::iter::from_fn(|| queue.answered()).collect();
        assert_eq!(answered, [RequestId(1), RequestId(2), RequestId(3)]);
    }
}
