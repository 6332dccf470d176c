//! A region's raft group, as little of it as matters: who leads, what is in
//! whose log, how far that is committed and applied.

/// A region with a peer on every store. Stores are counted from 0 here.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Group {
    pub(super) id: u8,
    /// The first position of its keys, and the one after the last.
    pub(super) from: u8,
    pub(super) to: u8,
    pub(super) version: u8,
    /// The term of the leader.
    pub(super) term: u8,
    /// The term of the last entry that all have applied and dropped.
    base_term: u8,
    /// `None` while there is no leader, after a restart.
    pub(super) leader: Option<u8>,
    /// An old leader that does not know it yet.
    pub(super) cut: Option<CutOff>,
    /// What each peer has in its log that not all have applied.
    logs: Vec<Vec<Entry>>,
    /// How many entries are committed, and applied by a leader.
    committed: u8,
    applied: u8,
    /// A command of a kind that leases refuse, until it is applied or lost.
    pub(super) command: Option<Command>,
    /// Between the two steps of a merge with the next region.
    pub(super) merging: Option<Merging>,
    /// Merged away; kept while a leader that was cut off still claims it.
    pub(super) is_gone: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Entry {
    term: u8,
    is_command: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Command {
    pub(super) kind: CommandKind,
    /// Proposed after the first wait of the attempt: a lease was not in force.
    pub(super) is_late: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum CommandKind {
    Ingest,
    Split,
    Merge,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Merging {
    pub(super) is_late: bool,
}

/// What a leader that is cut off still believes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct CutOff {
    pub(super) store: u8,
    pub(super) from: u8,
    pub(super) to: u8,
    pub(super) version: u8,
    pub(super) is_pending: bool,
    /// Whether it had applied its whole log, so that it confirms waits at once.
    pub(super) is_idle: bool,
}

impl Group {
    pub(super) fn new(id: u8, from: u8, to: u8, stores: u8, leader: u8) -> Self {
        Self {
            id,
            from,
            to,
            version: 1,
            term: 1,
            base_term: 1,
            leader: Some(leader),
            cut: None,
            logs: vec![Vec::new(); usize::from(stores)],
            committed: 0,
            applied: 0,
            command: None,
            merging: None,
            is_gone: false,
        }
    }

    /// Returns the left part of a split, of which the same store is the first
    /// leader; its first entry is not committed yet.
    pub(super) fn split_off(&mut self, id: u8) -> Self {
        let middle = self.from + (self.to - self.from) / 2;
        self.version += 1;
        let stores = self.logs.len() as u8;
        let leader = self.leader.unwrap_or(0);
        let mut left = Self::new(id, self.from, middle, stores, leader);
        left.version = self.version;
        left.become_leader(leader);
        self.from = middle;
        left
    }

    fn log(&self, store: u8) -> &[Entry] {
        self.logs.get(usize::from(store)).map_or(&[], Vec::as_slice)
    }

    /// Returns term and length of a log, in the order in which votes compare.
    fn last(&self, store: u8) -> (u8, usize) {
        let log = self.log(store);
        let term = log.last().map_or(self.base_term, |entry| entry.term);
        (term, log.len())
    }

    fn peers(&self) -> impl Iterator<Item = u8> + use<> {
        0..self.logs.len() as u8
    }

    fn is_connected(&self, store: u8) -> bool {
        self.cut.is_none_or(|cut| cut.store != store)
    }

    fn wins(&self, store: u8, voters: impl Iterator<Item = u8>) -> bool {
        let votes = voters
            .filter(|voter| self.last(*voter) <= self.last(store))
            .count();
        votes > self.logs.len() / 2
    }

    /// Returns whether `store` can be elected by those that can be reached.
    pub(super) fn can_be_elected(&self, store: u8) -> bool {
        self.is_connected(store)
            && self.wins(
                store,
                self.peers().filter(|voter| self.is_connected(*voter)),
            )
    }

    /// Returns whether `store` can be elected while the leader is cut off.
    pub(super) fn can_replace_leader(&self, store: u8) -> bool {
        self.cut.is_none()
            && self.leader.is_some_and(|leader| {
                leader != store && self.wins(store, self.peers().filter(|voter| *voter != leader))
            })
    }

    fn become_leader(&mut self, store: u8) {
        self.term += 1;
        self.leader = Some(store);
        let entry = Entry {
            term: self.term,
            is_command: false,
        };
        if let Some(log) = self.logs.get_mut(usize::from(store)) {
            log.push(entry);
        }
    }

    pub(super) fn elect(&mut self, store: u8) {
        self.become_leader(store);
        self.tidy();
    }

    pub(super) fn cut_off(&mut self, to: u8) {
        if let Some(leader) = self.leader {
            self.cut = Some(CutOff {
                store: leader,
                from: self.from,
                to: self.to,
                version: self.version,
                is_pending: self.is_pending(),
                is_idle: self.is_idle_at(leader),
            });
        }
        self.elect(to);
    }

    pub(super) fn heal(&mut self) {
        self.cut = None;
        self.tidy();
    }

    pub(super) fn propose(&mut self, command: Command) {
        let entry = Entry {
            term: self.term,
            is_command: true,
        };
        let leader = usize::from(self.leader.unwrap_or(0));
        if let Some(log) = self.logs.get_mut(leader) {
            log.push(entry);
        }
        self.command = Some(command);
    }

    /// Returns whether the leader has something that its followers have not.
    pub(super) fn can_commit(&self) -> bool {
        self.leader.is_some_and(|leader| {
            let log = self.log(leader);
            usize::from(self.committed) < log.len()
                || self
                    .peers()
                    .any(|peer| self.is_connected(peer) && self.log(peer) != log)
        })
    }

    /// The leader's log reaches everybody who can be reached.
    pub(super) fn commit(&mut self) {
        let Some(leader) = self.leader else {
            return;
        };
        let log = self.log(leader).to_vec();
        self.committed = log.len() as u8;
        for peer in self.peers() {
            if self.is_connected(peer)
                && let Some(other) = self.logs.get_mut(usize::from(peer))
            {
                other.clone_from(&log);
            }
        }
        self.tidy();
    }

    pub(super) const fn can_apply(&self) -> bool {
        self.leader.is_some() && self.applied < self.committed
    }

    /// The leader applies what is committed. Returns the command, if that was
    /// among it.
    pub(super) fn apply(&mut self) -> Option<CommandKind> {
        let applied = self.is_command_committed().then(|| {
            for entry in self.logs.iter_mut().flatten() {
                entry.is_command = false;
            }
            self.command.take()
        });
        self.applied = self.committed;
        self.tidy();
        let command = applied.flatten()?;
        if command.kind == CommandKind::Merge {
            self.version += 1;
            self.merging = Some(Merging {
                is_late: command.is_late,
            });
        }
        Some(command.kind)
    }

    /// Returns whether the command is committed.
    fn is_command_committed(&self) -> bool {
        let log = self.leader.or_else(|| {
            let connected = self.peers().filter(|peer| self.is_connected(*peer));
            connected.max_by_key(|peer| self.last(*peer))
        });
        let log = log.map_or(&[][..], |peer| self.log(peer));
        log.iter()
            .take(usize::from(self.committed))
            .any(|entry| entry.is_command)
    }

    /// Returns whether a wait at `store` need not wait.
    pub(super) fn is_idle_at(&self, store: u8) -> bool {
        usize::from(self.applied) >= self.log(store).len()
    }

    /// Returns up to where a wait at the leader waits.
    pub(super) fn last_index(&self) -> u8 {
        self.leader.map_or(0, |leader| self.log(leader).len() as u8)
    }

    /// Returns up to where waits are over once the leader has applied what is
    /// committed.
    pub(super) const fn last_applicable(&self) -> u8 {
        self.committed
    }

    /// Returns whether the leader has applied an entry of its own term.
    pub(super) fn is_settled(&self) -> bool {
        self.base_term == self.term
            || self.leader.is_some_and(|leader| {
                let log = self.log(leader);
                let applied = usize::from(self.applied).min(log.len());
                log[..applied].iter().any(|entry| entry.term == self.term)
            })
    }

    /// Returns what the leader's claim says of pending admin commands: a merge,
    /// a split or a merge committed and not applied, or something in the log
    /// from before its election.
    pub(super) fn is_pending(&self) -> bool {
        let older = self.leader.is_some_and(|leader| {
            let log = self.log(leader);
            let applied = usize::from(self.applied).min(log.len());
            log[applied..].iter().any(|entry| entry.term < self.term)
        });
        self.merging.is_some() || older || self.has_admin_to_apply()
    }

    /// Returns whether a split or a merge is committed and not applied.
    pub(super) fn has_admin_to_apply(&self) -> bool {
        self.is_command_committed()
            && self
                .command
                .is_some_and(|command| command.kind != CommandKind::Ingest)
    }

    /// Returns whether nothing will happen here by itself.
    pub(super) fn is_calm(&self) -> bool {
        self.leader.is_some()
            && self.cut.is_none()
            && self.merging.is_none()
            && !self.can_commit()
            && !self.can_apply()
    }

    /// Returns what must not be left when a hold begins.
    pub(super) fn unsettled(&self) -> Option<String> {
        let id = self.id;
        if self.is_gone {
            return None;
        }
        if self.merging.is_some_and(|merging| !merging.is_late) {
            return Some(format!("region {id} is between the two steps of a merge"));
        }
        let command = self.command.filter(|command| !command.is_late)?;
        let what = command.kind;
        if self.is_command_committed() {
            return Some(format!(
                "the {what:?} of region {id} is committed and not applied by a leader"
            ));
        }
        let holder = self.peers().find(|peer| {
            self.log(*peer).iter().any(|entry| entry.is_command) && self.wins(*peer, self.peers())
        })?;
        Some(format!(
            "the {what:?} of region {id} can still be committed: store {} has it and can be elected",
            holder + 1
        ))
    }

    /// What was late for one attempt is early for the next.
    pub(super) fn begin_attempt(&mut self) {
        if let Some(command) = &mut self.command {
            command.is_late = false;
        }
        if let Some(merging) = &mut self.merging {
            merging.is_late = false;
        }
    }

    /// Drops what all have applied and what is lost, and renames the terms.
    fn tidy(&mut self) {
        if !self.logs.iter().flatten().any(|entry| entry.is_command) {
            self.command = None;
        }
        let first = self.logs.first().cloned().unwrap_or_default();
        let is_done =
            usize::from(self.applied) == first.len() && self.logs.iter().all(|log| *log == first);
        if is_done {
            self.base_term = first.last().map_or(self.base_term, |entry| entry.term);
            self.logs.iter_mut().for_each(Vec::clear);
            self.committed = 0;
            self.applied = 0;
        }
        let mut terms: Vec<u8> = self.logs.iter().flatten().map(|entry| entry.term).collect();
        terms.extend([self.term, self.base_term]);
        terms.sort_unstable();
        terms.dedup();
        let rank = |term: u8| terms.partition_point(|other| *other < term) as u8;
        for entry in self.logs.iter_mut().flatten() {
            entry.term = rank(entry.term);
        }
        self.term = rank(self.term);
        self.base_term = rank(self.base_term);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INGEST: Command = Command {
        kind: CommandKind::Ingest,
        is_late: false,
    };

    fn with_command(stores: u8) -> Group {
        let mut group = Group::new(1, 0, 2, stores, 0);
        group.propose(INGEST);
        group
    }

    #[test]
    fn a_command_is_settled_when_it_is_applied() {
        let mut group = with_command(3);
        assert!(group.unsettled().is_some(), "it can be committed");
        assert!(!group.is_idle_at(0));
        group.commit();
        assert!(group.unsettled().is_some(), "it is not applied");
        assert_eq!(group.apply(), Some(CommandKind::Ingest));
        assert_eq!(group.unsettled(), None);
        assert!(group.is_calm() && group.is_settled());
    }

    #[test]
    fn a_command_can_come_back_until_another_leader_has_committed() {
        let mut group = with_command(3);
        group.elect(1);
        assert!(!group.is_settled(), "nothing of its term is committed");
        assert!(group.is_idle_at(2) && group.unsettled().is_some());
        assert!(group.can_be_elected(0), "from A to B and back to A");
        let mut back = group.clone();
        back.elect(0);
        back.commit();
        assert_eq!(back.apply(), Some(CommandKind::Ingest));
        group.commit();
        assert_eq!(group.unsettled(), None, "it is lost");
        group.apply();
        assert!(group.is_settled() && group.is_calm());
    }

    #[test]
    fn a_leader_that_is_cut_off_keeps_what_can_never_be_committed() {
        let mut group = with_command(3);
        assert!(group.can_replace_leader(1));
        group.cut_off(1);
        assert!(group.unsettled().is_some());
        group.commit();
        group.apply();
        assert_eq!(group.unsettled(), None);
        assert!(!group.can_be_elected(0));
        group.heal();
        group.commit();
        assert!(group.command.is_none() && group.is_calm());
    }

    #[test]
    fn two_peers_elect_nobody_without_what_one_of_them_has() {
        let group = with_command(2);
        assert!(!group.can_be_elected(1) && !group.can_replace_leader(1));
    }

    #[test]
    fn a_new_leader_is_pending_until_it_has_applied_what_it_found() {
        let mut group = with_command(3);
        group.commit();
        group.elect(1);
        assert!(group.is_pending());
        group.commit();
        group.apply();
        assert!(!group.is_pending() && group.is_settled());
    }
}
