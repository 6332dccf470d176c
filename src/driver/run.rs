use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::board::{Board, CloseBoard, Line};
use super::builder::LockLost;
use super::calls::Calls;
use super::inbox::{CallInput, Inbox, Taken};
use super::panic::panic_message;
use super::signal::Signals;
use super::status::{Ended, Status, ValidUntil, cancelled, died};
use super::streams::Streams;
use crate::clock::Ticker;
use crate::cluster::ClusterClient;
use crate::error::{Error, ErrorKind};
use crate::machine::{Config, Effect, Event, Machine, Notice};
use crate::progress::{PhaseName, Progress};

/// The longest sleep. Timers stand still while the computer is suspended and
/// the leases do not, so the clock is looked at again this soon after it wakes.
const SLEEP_MAX: Duration = Duration::from_secs(1);
/// The shortest sleep until a deadline.
const SLEEP_MIN: Duration = Duration::from_millis(1);

/// Everything a run needs, apart from where it runs.
pub(super) struct Setup<C> {
    pub(super) cluster: Arc<C>,
    pub(super) config: Config,
    pub(super) clock: Ticker,
    pub(super) signals: Arc<Signals>,
    pub(super) status: watch::Sender<Status>,
    pub(super) valid_until: Arc<ValidUntil>,
    pub(super) notices: Vec<mpsc::UnboundedSender<Notice>>,
    pub(super) board: Arc<Board>,
    pub(super) lock_lost: Option<LockLost>,
}

/// Runs a machine to its end. Whatever happens, the status says how it ended,
/// or is closed when the future is dropped, and the board is closed.
pub(super) async fn run<C: ClusterClient>(setup: Setup<C>) {
    let board = Arc::clone(&setup.board);
    let _close = CloseBoard(Arc::clone(&board));
    let status = setup.status.clone();
    let lease = setup.config.lease;
    let work = async move {
        match Loop::new(setup) {
            Ok(mut driver) => driver.run().await,
            Err(error) => Ended::Died(error),
        }
    };
    let ended = match AssertUnwindSafe(work).catch_unwind().await {
        Ok(ended) => ended,
        Err(panic) => {
            let why = format!("the driver panicked: {}", panic_message(&*panic));
            Ended::Died(died(&why, lease))
        }
    };
    if let Ended::Died(error) = &ended {
        board.line(Line::Died(error.clone()));
    }
    status.send_modify(|status| status.ended = Some(Arc::new(ended)));
}

/// Waits for the lock's loss. A watcher that panics can tell no more, so that
/// counts as the loss.
async fn watch_lock(lock_lost: LockLost, signals: Arc<Signals>, board: Arc<Board>) {
    if let Err(panic) = AssertUnwindSafe(lock_lost.0).catch_unwind().await {
        board.line(Line::Panicked {
            what: "the watcher of the lock",
            message: panic_message(&*panic),
        });
    }
    signals.lock_lost();
}

/// The loop that owns the machine. It never waits for anything but the next
/// input or deadline.
struct Loop<C> {
    machine: Machine,
    clock: Ticker,
    signals: Arc<Signals>,
    told: Told,
    inbox: Inbox,
    streams: Streams<C>,
    calls: Calls<C>,
    /// All tasks; dropping it ends them.
    tasks: JoinSet<()>,
    status: watch::Sender<Status>,
    valid_until: Arc<ValidUntil>,
    notices: Vec<mpsc::UnboundedSender<Notice>>,
    board: Arc<Board>,
    published: Progress,
    lost: Option<Error>,
}

/// Which requests of the owner the machine was told of.
#[derive(Clone, Copy, Default)]
struct Told {
    finish: bool,
    cancel: bool,
    lock_lost: bool,
}

impl<C: ClusterClient> Loop<C> {
    fn new(setup: Setup<C>) -> Result<Self, Error> {
        let window = setup.config.window;
        let machine = Machine::new(setup.config, setup.clock.now())?;
        let (inbox, events, inputs) = Inbox::new();
        let board = setup.board;
        let mut tasks = JoinSet::new();
        if let Some(lock_lost) = setup.lock_lost {
            let signals = Arc::clone(&setup.signals);
            tasks.spawn(watch_lock(lock_lost, signals, Arc::clone(&board)));
        }
        Ok(Self {
            machine,
            clock: setup.clock,
            signals: setup.signals,
            told: Told::default(),
            inbox,
            streams: Streams::new(Arc::clone(&setup.cluster), events, Arc::clone(&board)),
            calls: Calls::new(setup.cluster, inputs, Arc::clone(&board), window),
            tasks,
            status: setup.status,
            valid_until: setup.valid_until,
            notices: setup.notices,
            board,
            published: Progress::default(),
            lost: None,
        })
    }

    async fn run(&mut self) -> Ended {
        self.drain();
        loop {
            self.take_signals();
            self.pass_time();
            self.publish();
            if let Some(outcome) = self.machine.outcome() {
                return Ended::Closed {
                    outcome: outcome.clone(),
                    report: self.machine.finish_report().cloned(),
                };
            }
            let pause = self.pause();
            tokio::select! {
                biased;
                () = self.signals.raised() => {}
                () = self.inbox.filled() => {}
                () = tokio::time::sleep(pause) => {}
            }
            for taken in self.inbox.take() {
                self.take_in(taken);
            }
            while self.tasks.try_join_next().is_some() {}
        }
    }

    /// Returns how long to sleep. Deadlines are judged by the clock when they
    /// are handled; a timer that fires early or late decides nothing.
    fn pause(&self) -> Duration {
        let Some(deadline) = self.machine.poll_timeout() else {
            return SLEEP_MAX;
        };
        deadline
            .saturating_duration_since(self.clock.now())
            .clamp(SLEEP_MIN, SLEEP_MAX)
    }

    fn take_signals(&mut self) {
        // The worst news first: it decides the verdict.
        if self.signals.is_lock_lost() && !std::mem::replace(&mut self.told.lock_lost, true) {
            self.feed(Event::LockLost);
        }
        if self.signals.is_cancel_asked() && !std::mem::replace(&mut self.told.cancel, true) {
            self.feed(Event::CancelRequested);
        }
        if self.signals.is_finish_asked() && !std::mem::replace(&mut self.told.finish, true) {
            self.feed(Event::FinishRequested);
        }
    }

    fn take_in(&mut self, taken: Taken) {
        match taken {
            Taken::Stream(events) => events.into_iter().for_each(|event| self.feed(event)),
            Taken::Call(CallInput::Event(event)) => self.feed(event),
            Taken::Call(CallInput::Ended(kind, request)) => self.calls.ended(kind, request),
        }
    }

    /// Hands an event in, after whatever had become due before.
    fn feed(&mut self, event: Event) {
        self.pass_time();
        if self.machine.outcome().is_some() {
            return;
        }
        let ended = match &event {
            Event::StreamEnded { stream, .. } => Some(*stream),
            _ => None,
        };
        self.machine.handle_event(event, self.clock.now());
        if let Some(stream) = ended {
            // The read end is over, so the request side may go.
            self.streams.close(stream);
        }
        self.drain();
    }

    fn pass_time(&mut self) {
        let now = self.clock.now();
        if self.machine.poll_timeout().is_some_and(|due| due <= now) {
            self.machine.handle_timeout(now);
            self.drain();
        }
    }

    fn drain(&mut self) {
        while let Some(effect) = self.machine.poll_effect() {
            self.carry_out(effect);
        }
        while let Some(notice) = self.machine.poll_notice() {
            self.tell(notice);
        }
        self.valid_until.set(self.machine.valid_until());
        self.update_status();
    }

    fn carry_out(&mut self, effect: Effect) {
        let tasks = &mut self.tasks;
        match effect {
            Effect::ListStores { request } => self.calls.list_stores(tasks, request),
            Effect::ScanRegions {
                request,
                range,
                limit,
            } => self.calls.scan_regions(tasks, request, range, limit),
            Effect::ListClaims { request, store } => self.calls.list_claims(tasks, request, store),
            Effect::LeaderRead {
                request,
                store,
                regions,
            } => self.calls.leader_read(tasks, request, store, regions),
            Effect::OpenStream { stream, store } => self.streams.open(tasks, stream, store),
            Effect::CloseStream { stream, .. } => self.streams.close(stream),
            Effect::UpdateLease {
                request,
                stream,
                seconds,
                ..
            } => {
                if let Some(queue) = self.streams.queue(stream) {
                    queue.update_lease(request, seconds);
                }
            }
            Effect::WaitApply {
                stream, regions, ..
            } => {
                if let Some(queue) = self.streams.queue(stream) {
                    queue.wait_apply(regions);
                }
            }
            Effect::Finish {
                request, stream, ..
            } => {
                if let Some(queue) = self.streams.queue(stream) {
                    queue.finish(request);
                }
            }
        }
    }

    fn tell(&mut self, notice: Notice) {
        if let Notice::HoldLost(error) = &notice {
            self.lost.get_or_insert_with(|| error.clone());
        }
        self.notices
            .retain(|receiver| receiver.send(notice.clone()).is_ok());
        self.board.line(Line::Notice(notice));
    }

    /// Tells the owner when the hold begins and when it is lost.
    fn update_status(&mut self) {
        let is_held = self.status.borrow().held.is_some();
        let phase = self.machine.phase();
        if !is_held {
            if let (PhaseName::Hold, Some(report)) = (phase, self.machine.prepare_report()) {
                let report = Arc::new(report.clone());
                self.status.send_modify(|status| status.held = Some(report));
            }
            return;
        }
        if self.lost.is_none() && phase != PhaseName::Hold && !self.told.finish {
            self.lost = Some(self.why_lost());
        }
        if let Some(error) = &self.lost {
            self.status.send_if_modified(|status| {
                let is_new = status.lost.is_none();
                if is_new {
                    status.lost = Some(error.clone());
                }
                is_new
            });
        }
    }

    /// Returns why the hold is over though its owner did not finish it, when
    /// the machine did not say that it was lost.
    fn why_lost(&self) -> Error {
        if let Some(error) = self.machine.outcome().and_then(|outcome| outcome.error()) {
            return error.clone();
        }
        if self.told.cancel {
            return cancelled();
        }
        Error::new(ErrorKind::LeaseLost, "the hold is over")
    }

    fn publish(&mut self) {
        let progress = self.machine.progress();
        if progress != self.published {
            self.published = progress;
            self.board.progress(progress);
        }
    }
}
