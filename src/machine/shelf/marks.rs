use super::task::TaskState;

/// What may change about a row, in one byte: the state and four flags.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Marks(u8);

/// The states in the order of their codes.
const STATES: [TaskState; 7] = [
    TaskState::Idle,
    TaskState::Ready,
    TaskState::Blocked,
    TaskState::Waiting,
    TaskState::Confirmed,
    TaskState::Reading,
    TaskState::Proven,
];
const STATE: u8 = 0b111;
/// The code of a row that was taken off the shelf.
const GONE: u8 = 0b111;

/// A flag of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flag {
    /// The store's last complete listing claimed it.
    Claimed = 0b0000_1000,
    /// It did so with nothing pending.
    Clean = 0b0001_0000,
    /// The listing under way claims it.
    Listed = 0b0010_0000,
    /// It does so with nothing pending.
    ListedClean = 0b0100_0000,
}

impl Marks {
    /// The marks of a new claim.
    pub(super) const CLAIMED: Self = Self(Flag::Claimed as u8);

    /// Returns the state, `None` when the row was taken off the shelf.
    pub(super) fn state(self) -> Option<TaskState> {
        STATES.get(usize::from(self.0 & STATE)).copied()
    }

    pub(super) fn set_state(&mut self, state: TaskState) {
        let code = match state {
            TaskState::Idle => 0,
            TaskState::Ready => 1,
            TaskState::Blocked => 2,
            TaskState::Waiting => 3,
            TaskState::Confirmed => 4,
            TaskState::Reading => 5,
            TaskState::Proven => 6,
        };
        self.0 = self.0 & !STATE | code;
    }

    /// Takes the row off the shelf; the flags of the listing under way stay.
    pub(super) fn set_gone(&mut self) {
        self.0 |= GONE;
        self.set(Flag::Claimed, false);
        self.set(Flag::Clean, false);
    }

    pub(super) const fn is_gone(self) -> bool {
        self.0 & STATE == GONE
    }

    pub(super) const fn has(self, flag: Flag) -> bool {
        self.0 & flag as u8 != 0
    }

    pub(super) fn set(&mut self, flag: Flag, on: bool) {
        if on {
            self.0 |= flag as u8;
        } else {
            self.0 &= !(flag as u8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_leaves_the_flags_alone_and_comes_back() {
        for state in STATES {
            let mut marks = Marks::CLAIMED;
            marks.set(Flag::ListedClean, true);
            marks.set_state(TaskState::Proven);
            marks.set_state(state);
            assert_eq!(marks.state(), Some(state));
            assert!(marks.has(Flag::Claimed) && marks.has(Flag::ListedClean));
            assert!(!marks.has(Flag::Clean) && !marks.has(Flag::Listed));
            marks.set(Flag::Claimed, false);
            assert_eq!(marks.state(), Some(state));
        }
    }

    #[test]
    fn what_is_gone_has_no_state_but_keeps_what_is_being_listed() {
        let mut marks = Marks::CLAIMED;
        marks.set(Flag::Listed, true);
        marks.set_gone();
        assert!(marks.is_gone() && marks.state().is_none());
        assert!(marks.has(Flag::Listed) && !marks.has(Flag::Claimed));
        marks.set_state(TaskState::Idle);
        assert_eq!(marks.state(), Some(TaskState::Idle));
    }
}
