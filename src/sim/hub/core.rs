use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::call::Group;
use super::inbox::Inbox;
use crate::sim::fault::FaultPlan;
use crate::sim::layout::Layout;
use crate::sim::model::{Answer, CallId, Cluster, Request};
use crate::time::Timestamp;

/// When the model's clock says it is when it starts. Not zero, as no real
/// clock is.
const START: Timestamp = Timestamp::from_micros(1_000_000_000);

/// A model that runs; a cheap handle. It stops when the last one is dropped.
#[derive(Clone, Debug)]
pub(in crate::sim) struct Hub(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    started: Instant,
    /// Wakes the task that sleeps for the model: something is due earlier, or
    /// nobody needs it any more.
    wake: Arc<Notify>,
}

#[derive(Debug)]
struct State {
    cluster: Cluster,
    next_call: u64,
    open: BTreeMap<CallId, Arc<Inbox>>,
    /// For what the task sleeps now.
    awaited: Option<Timestamp>,
}

impl Hub {
    /// Starts a model on the runtime of the caller.
    pub(in crate::sim) fn start(layout: &Layout, faults: FaultPlan, seed: u64) -> Self {
        let wake = Arc::new(Notify::new());
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                cluster: Cluster::new(layout, faults, seed, START),
                next_call: 1,
                open: BTreeMap::new(),
                awaited: None,
            }),
            started: Instant::now(),
            wake: Arc::clone(&wake),
        });
        tokio::spawn(keep_time(Arc::downgrade(&shared), wake));
        Self(shared)
    }

    /// Makes calls that are answered together.
    pub(in crate::sim) fn call_all(&self, requests: impl IntoIterator<Item = Request>) -> Group {
        let inbox = Arc::new(Inbox::default());
        let calls = self.open(&inbox, requests);
        Group::new(self.clone(), inbox, calls)
    }

    /// Opens calls whose answers go to `inbox`.
    pub(super) fn open(
        &self,
        inbox: &Arc<Inbox>,
        requests: impl IntoIterator<Item = Request>,
    ) -> Vec<CallId> {
        self.0.with(|state, now| {
            let mut calls = Vec::new();
            for request in requests {
                let call = CallId(state.next_call);
                state.next_call += 1;
                state.open.insert(call, Arc::clone(inbox));
                state.cluster.handle_request(call, request, now);
                calls.push(call);
            }
            calls
        })
    }

    /// Sends something on a stream; returns whether it is still open.
    pub(super) fn send(&self, call: CallId, request: Request) -> bool {
        self.0.with(|state, now| {
            let open = state.open.contains_key(&call);
            if open {
                state.cluster.handle_request(call, request, now);
            }
            open
        })
    }

    /// Drops those of the calls that are still open.
    pub(super) fn cancel(&self, calls: &[CallId]) {
        self.0.with(|state, now| {
            for &call in calls {
                if state.open.remove(&call).is_some() {
                    state.cluster.handle_request(call, Request::Cancel, now);
                }
            }
        });
    }

    /// Looks at the model, or changes it, at the present moment.
    pub(in crate::sim) fn with_model<R>(&self, look: impl FnOnce(&mut Cluster) -> R) -> R {
        self.0.with(|state, _| look(&mut state.cluster))
    }
}

impl Shared {
    /// Brings the model up to now, lets `act` do something with it, and hands
    /// out what came of that.
    fn with<R>(&self, act: impl FnOnce(&mut State, Timestamp) -> R) -> R {
        let mut state = self.lock();
        let now = self.now();
        state.cluster.handle_timeout(now);
        let result = act(&mut state, now);
        let readers = state.hand_out();
        let due = state.cluster.poll_timeout();
        let earlier = match (due, state.awaited) {
            (Some(due), Some(awaited)) => due < awaited,
            (due, None) => due.is_some(),
            (None, Some(_)) => false,
        };
        drop(state);
        if earlier {
            self.wake.notify_one();
        }
        readers.into_iter().for_each(Waker::wake);
        result
    }

    /// Brings the model up to now and returns when it has to be done again.
    fn advance(&self) -> Option<Instant> {
        self.with(|_, _| ());
        let mut state = self.lock();
        state.awaited = state.cluster.poll_timeout();
        let due = state.awaited?;
        drop(state);
        let after = due.saturating_duration_since(START);
        // Far away is never, should it not fit.
        let never = Duration::from_secs(30 * 365 * 24 * 3600);
        self.started.checked_add(after.min(never))
    }

    fn now(&self) -> Timestamp {
        START + self.started.elapsed()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A model that panicked has told so already; that it is asked again
        // helps to see it in the caller too.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.wake.notify_one();
    }
}

impl State {
    /// Puts the model's answers into their inboxes and returns who has to be
    /// woken.
    fn hand_out(&mut self) -> Vec<Waker> {
        let mut readers = Vec::new();
        while let Some((call, answer)) = self.cluster.poll_answer() {
            let inbox = if is_last(&answer) {
                self.open.remove(&call)
            } else {
                self.open.get(&call).cloned()
            };
            if let Some(inbox) = inbox {
                readers.extend(inbox.push(call, answer));
            }
        }
        readers
    }
}

/// Returns whether a call is over with this answer.
fn is_last(answer: &Answer) -> bool {
    match answer {
        Answer::Stores(_)
        | Answer::Regions(_)
        | Answer::MinTs(_)
        | Answer::Read(_)
        | Answer::End(_) => true,
        Answer::Claims(_) | Answer::Opened | Answer::Stream(_) => false,
    }
}

/// Lets the model's time pass until nobody needs it any more.
async fn keep_time(model: Weak<Shared>, wake: Arc<Notify>) {
    loop {
        let Some(shared) = model.upgrade() else {
            return;
        };
        let due = shared.advance();
        // Not held while sleeping, or it would never be dropped.
        drop(shared);
        match due {
            Some(due) => tokio::select! {
                () = sleep_until(due) => {}
                () = wake.notified() => {}
            },
            None => wake.notified().await,
        }
    }
}
