use super::action::Action;
use super::call::{Ask, Reply};
use super::state::Small;
use super::step::place;

impl Small {
    /// Says in words what an action does, and in which phase.
    pub(super) fn describe(&self, action: Action) -> String {
        let words = match action {
            Action::Serve(call) => format!("{} is taken in", self.call_words(call)),
            Action::Answer(call) => format!("{} is answered", self.call_words(call)),
            Action::AnswerWithGap(call, region) => format!(
                "{} is answered without its region number {region}",
                self.call_words(call)
            ),
            Action::AnswerLeaderless(call, region) => format!(
                "{} is answered without a leader for its region number {region}",
                self.call_words(call)
            ),
            Action::Fail(call) => format!("{} fails", self.call_words(call)),
            Action::RefuseRead(call) => format!("{} is refused: busy", self.call_words(call)),
            Action::Open(store) => format!("the stream to store {store} stands"),
            Action::FailDial(store) => format!("store {store} cannot be dialed"),
            Action::ServeStream(store) => format!(
                "store {store} takes in {}",
                self.up_words(store).unwrap_or_default()
            ),
            Action::RefuseWait(store) => format!("store {store} is too busy for the next wait"),
            Action::Deliver(store) => match self.down_words(store) {
                Some(words) => format!("from store {store} arrives {words}"),
                None => format!(
                    "store {store} takes in {} and answers",
                    self.up_words(store).unwrap_or_default()
                ),
            },
            Action::DeliverLate(store, _) => {
                format!("an answer of a closed stream to store {store} arrives")
            }
            Action::Timeout => match self.machine.next_timer() {
                Some((at, timer)) => format!(
                    "{:?} pass until the deadline {timer:?}",
                    at.saturating_duration_since(self.now())
                ),
                None => "time passes".to_owned(),
            },
            Action::Pause => "our process stands still for 6s".to_owned(),
            Action::Commit(region) => format!("region {region} commits"),
            Action::Apply(region) => format!("the leader of region {region} applies"),
            Action::Elect(region, store) => format!("region {region} elects store {store}"),
            Action::CutOff(region, store) => {
                format!("the leader of region {region} is cut off, the others elect store {store}")
            }
            Action::Heal(region) => format!("the old leader of region {region} is back"),
            Action::CommitMerge(region) => format!("region {region} is merged away"),
            Action::Propose(region, kind) => {
                format!("the leader of region {region} proposes: {kind}")
            }
            Action::Restart(store) => format!("store {store} restarts"),
            Action::Cut(store) => format!("the stream to store {store} breaks"),
            Action::Rival(store) => format!("another client takes store {store} over"),
            Action::RivalLease(store) => {
                format!(
                    "another client takes store {store} over, lifts the lease and takes its own"
                )
            }
            Action::LiftLease(store) => {
                format!("another client's Finish lifts the lease of store {store}")
            }
            Action::FreezePd => "PD's view stands still".to_owned(),
            Action::ThawPd => "PD's view is as things are again".to_owned(),
            Action::Finish => "the owner has its snapshots".to_owned(),
            Action::Cancel => "the owner cancels".to_owned(),
            Action::LoseLock => "the lock is lost".to_owned(),
        };
        format!("[{}] {words}", self.machine.phase())
    }

    fn call_words(&self, at: usize) -> String {
        let Some(call) = self.calls.get(at) else {
            return "a call".to_owned();
        };
        let words = match &call.ask {
            Ask::Stores => "the list of stores".to_owned(),
            Ask::Claims(store) => format!("the listing of store {}", store + 1),
            Ask::Scan(from, to, _) => format!("the scan of {from}..{to}"),
            Ask::Read(store, target) => format!(
                "the read of region {} (version {}) at store {}",
                target.region,
                target.version,
                store + 1
            ),
        };
        match &call.reply {
            None => words,
            Some(Reply::Read(result)) => format!("{words} ({result:?})"),
            Some(Reply::Claims(claims)) => {
                let claims: Vec<_> = claims
                    .iter()
                    .map(|claim| {
                        let pending = if claim.is_pending { " pending" } else { "" };
                        format!("{}/{}{pending}", claim.region, claim.version)
                    })
                    .collect();
                format!("{words} ({})", claims.join(", "))
            }
        }
    }

    fn up_words(&self, store: u64) -> Option<String> {
        let node = self.nodes.get(place(store))?;
        let stream = node.streams.iter().find(|stream| !stream.is_closed)?;
        Some(format!("{:?}", stream.up.front()?))
    }

    fn down_words(&self, store: u64) -> Option<String> {
        let node = self.nodes.get(place(store))?;
        let stream = node.streams.iter().find(|stream| !stream.is_closed)?;
        Some(format!("{:?}", stream.down.front()?))
    }
}
