use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// What may be left out when the other end does not read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rank {
    /// The first to go.
    Fleeting,
    /// Kept unless thousands are waiting.
    Ordinary,
    /// Never left out; there are but a few of these.
    Vital,
}

impl Rank {
    /// Returns how many items may be waiting for one of this rank to be taken.
    const fn room(self) -> usize {
        match self {
            Self::Fleeting => 64,
            Self::Ordinary => 8_192,
            Self::Vital => usize::MAX,
        }
    }
}

/// A queue to a thread that writes. Pushing never waits.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    shared: Arc<Shared<T>>,
}

#[derive(Debug)]
struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<T>,
    dropped: u64,
    closed: bool,
    done: bool,
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<T: Send + 'static> Queue<T> {
    /// Starts the thread. `write` gets each item, and the number of items that
    /// were left out before it.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn start(
        name: &str,
        mut write: impl FnMut(T, u64) + Send + 'static,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                items: VecDeque::new(),
                dropped: 0,
                closed: false,
                done: false,
            }),
            changed: Condvar::new(),
        });
        let theirs = Arc::clone(&shared);
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                while let Some((item, dropped)) = theirs.take() {
                    write(item, dropped);
                }
                theirs.lock().done = true;
                theirs.changed.notify_all();
            })?;
        Ok(Self { shared })
    }

    /// Adds an item, or leaves it out when there is no room for its rank.
    pub(crate) fn push(&self, rank: Rank, item: T) {
        let mut state = self.shared.lock();
        if state.closed {
            return;
        }
        if state.items.len() < rank.room() {
            state.items.push_back(item);
            drop(state);
            self.shared.changed.notify_all();
        } else {
            state.dropped += 1;
        }
    }

    /// Takes no more items and waits until all are written, `limit` at most.
    /// Returns whether they are.
    pub(crate) fn close(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut state = self.shared.lock();
        state.closed = true;
        self.shared.changed.notify_all();
        while !state.done {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self
                .shared
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        true
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // Nothing is left half done under this lock, so a panic elsewhere does
        // no harm to it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<(T, u64)> {
        let mut state = self.lock();
        loop {
            if let Some(item) = state.items.pop_front() {
                return Some((item, std::mem::take(&mut state.dropped)));
            }
            if state.closed {
                return None;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn everything_is_written_in_order_before_close_returns() {
        let (tx, rx) = mpsc::channel();
        let queue =
            Queue::start("test", move |item, _| tx.send(item).expect("open")).expect("started");
        for item in 0..1000 {
            queue.push(Rank::Ordinary, item);
        }
        assert!(queue.close(LONG));
        assert_eq!(rx.iter().collect::<Vec<_>>(), (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn a_stuck_writer_costs_progress_and_nothing_vital() {
        let (go, wait) = mpsc::channel::<()>();
        let (tx, rx) = mpsc::channel();
        let queue = Queue::start("test", move |item: &str, dropped| {
            // Stuck until the test lets go, as on a pipe that nobody reads.
            let _ = wait.recv();
            tx.send((item, dropped)).expect("open");
        })
        .expect("started");
        for _ in 0..10_000 {
            queue.push(Rank::Fleeting, "progress");
        }
        for _ in 0..10_000 {
            queue.push(Rank::Ordinary, "phase");
        }
        queue.push(Rank::Vital, "result");
        assert!(!queue.close(Duration::ZERO), "still stuck");
        queue.push(Rank::Vital, "after the end");
        drop(go);
        assert!(queue.close(LONG));
        let written: Vec<_> = rx.iter().collect();
        assert!(written.len() < 9_000, "{}", written.len());
        assert_eq!(written.last().map(|(item, _)| *item), Some("result"));
        assert!(written.iter().any(|(_, dropped)| *dropped > 0));
    }
}
