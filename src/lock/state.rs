use std::time::Duration;

use tokio::sync::watch;

use super::held::Loss;
use crate::clock::Ticker;
use crate::time::Timestamp;

/// The longest sleep; see [`State::lost`].
const SLEEP_MAX: Duration = Duration::from_secs(1);
/// The shortest sleep.
const SLEEP_MIN: Duration = Duration::from_millis(1);

/// What is known of a held lock, shared by the guard and the task that keeps it.
#[derive(Debug)]
pub(super) struct State {
    pub(super) clock: Ticker,
    view: watch::Sender<View>,
    /// Whether the guard wants the lock no more.
    stop: watch::Sender<bool>,
}

#[derive(Debug)]
struct View {
    valid_until: Timestamp,
    lost: Option<Loss>,
}

impl State {
    pub(super) fn new(clock: Ticker, valid_until: Timestamp) -> Self {
        Self {
            clock,
            view: watch::Sender::new(View {
                valid_until,
                lost: None,
            }),
            stop: watch::Sender::new(false),
        }
    }

    /// Moves the end; a lost lock stays lost.
    pub(super) fn extend(&self, valid_until: Timestamp) {
        self.view.send_if_modified(|view| {
            let is_news = view.lost.is_none() && view.valid_until != valid_until;
            view.valid_until = valid_until;
            is_news
        });
    }

    /// Notes a loss; the first one stays.
    pub(super) fn lose(&self, loss: Loss) {
        self.view.send_if_modified(|view| {
            let is_news = view.lost.is_none();
            view.lost.get_or_insert(loss);
            is_news
        });
    }

    /// Returns the loss, having looked at the clock: whoever sees first that the
    /// time is up makes it so for all. A lock that is wanted no more is judged as
    /// it was at that moment.
    pub(super) fn loss(&self) -> Option<Loss> {
        if !self.is_stopped() {
            let now = self.clock.now();
            self.view.send_if_modified(|view| {
                let lapses = view.valid_until != Timestamp::MAX && now >= view.valid_until;
                let is_news = view.lost.is_none() && lapses;
                if is_news {
                    view.lost = Some(Loss::Lapsed);
                }
                is_news
            });
        }
        self.view.borrow().lost.clone()
    }

    /// Returns until when the lock can be trusted, [`Timestamp::ZERO`] when it is
    /// lost.
    pub(super) fn valid_until(&self) -> Timestamp {
        match self.loss() {
            None => self.view.borrow().valid_until,
            Some(_) => Timestamp::ZERO,
        }
    }

    /// Waits until the lock is lost. Timers stand still while the computer is
    /// suspended and the lock's time does not, so the clock is looked at again
    /// soon after it wakes.
    pub(super) async fn lost(&self) -> Loss {
        let mut changes = self.view.subscribe();
        loop {
            changes.mark_unchanged();
            if let Some(loss) = self.loss() {
                return loss;
            }
            if self.is_stopped() {
                // Released while it was held: it is never lost.
                std::future::pending::<()>().await;
            }
            let pause = sleep_until(changes.borrow().valid_until, self.clock.now());
            tokio::select! {
                // The sender lives as long as `self`.
                _ = changes.changed() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Says that the guard wants the lock no more.
    pub(super) fn ask_to_stop(&self) {
        self.loss();
        self.stop.send_replace(true);
    }

    pub(super) fn is_stopped(&self) -> bool {
        *self.stop.borrow()
    }

    /// Waits until the guard wants the lock no more.
    pub(super) async fn stop_asked(&self) {
        // The sender lives as long as `self`.
        let _ = self.stop.subscribe().wait_for(|stop| *stop).await;
    }
}

/// Returns how long to sleep at `now` to be awake at `until`. What is due is
/// decided by the clock afterwards: a timer that fires early or late decides
/// nothing.
pub(super) fn sleep_until(until: Timestamp, now: Timestamp) -> Duration {
    until
        .saturating_duration_since(now)
        .clamp(SLEEP_MIN, SLEEP_MAX)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::clock::Clock;

    thread_local! {
        static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    fn set(seconds: u64) {
        NOW.set(Duration::from_secs(seconds));
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::ZERO + Duration::from_secs(seconds)
    }

    /// A lock that is held until 10 s, at 0 s. No task looks after it.
    fn held() -> State {
        set(0);
        State::new(Clock::Custom(|| NOW.get()).start(), at(10))
    }

    #[test]
    fn who_asks_looks_at_the_clock() {
        let state = held();
        set(9);
        assert_eq!((state.loss(), state.valid_until()), (None, at(10)));
        set(10);
        assert_eq!(state.loss(), Some(Loss::Lapsed));
        assert_eq!(state.valid_until(), Timestamp::ZERO);
        // What is acknowledged afterwards brings nothing back.
        state.extend(at(100));
        assert_eq!(state.loss(), Some(Loss::Lapsed));
        assert_eq!(state.valid_until(), Timestamp::ZERO);
    }

    #[test]
    fn what_is_acknowledged_moves_the_end() {
        let state = held();
        state.extend(at(20));
        set(19);
        assert_eq!((state.loss(), state.valid_until()), (None, at(20)));
        state.extend(Timestamp::MAX);
        set(1 << 40);
        assert_eq!((state.loss(), state.valid_until()), (None, Timestamp::MAX));
    }

    #[test]
    fn the_first_loss_stays() {
        let state = held();
        state.lose(Loss::Removed);
        state.lose(Loss::Abandoned);
        set(10);
        assert_eq!(state.loss(), Some(Loss::Removed));
        assert_eq!(state.valid_until(), Timestamp::ZERO);
    }

    #[test]
    fn a_lock_that_is_given_back_is_judged_as_of_that_moment() {
        let state = held();
        set(9);
        state.ask_to_stop();
        assert!(state.is_stopped());
        set(11);
        assert_eq!((state.loss(), state.valid_until()), (None, at(10)));

        let state = held();
        set(10);
        state.ask_to_stop();
        assert_eq!(state.loss(), Some(Loss::Lapsed));
    }

    #[test]
    fn sleeps_are_neither_long_nor_none() {
        assert_eq!(sleep_until(at(0), at(5)), SLEEP_MIN);
        assert_eq!(sleep_until(at(5), at(0)), SLEEP_MAX);
        let half = Duration::from_millis(500);
        assert_eq!(sleep_until(at(5) + half, at(5)), half);
    }
}
