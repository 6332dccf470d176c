use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::sim::model::{Answer, CallId};

/// The answers to some calls that nobody has read yet. It has one reader.
#[derive(Debug, Default)]
pub(super) struct Inbox(Mutex<Arrived>);

#[derive(Debug, Default)]
struct Arrived {
    answers: Vec<(CallId, Answer)>,
    reader: Option<Waker>,
}

impl Inbox {
    /// Puts an answer in and returns whom to wake for it, once the lock of the
    /// model is released.
    pub(super) fn push(&self, call: CallId, answer: Answer) -> Option<Waker> {
        let mut arrived = self.lock();
        arrived.answers.push((call, answer));
        arrived.reader.take()
    }

    /// Takes out all that has arrived, never nothing.
    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<Vec<(CallId, Answer)>> {
        let mut arrived = self.lock();
        if arrived.answers.is_empty() {
            arrived.reader = Some(cx.waker().clone());
            Poll::Pending
        } else {
            Poll::Ready(std::mem::take(&mut arrived.answers))
        }
    }

    fn lock(&self) -> MutexGuard<'_, Arrived> {
        // Nothing in here panics halfway.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
