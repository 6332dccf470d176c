use std::hash::Hash;

/// Something whose states can be enumerated.
///
/// Two states that will behave alike should be equal and hash alike, or the
/// space is larger than it need be, or has no end.
pub trait System {
    /// A state, all that matters of it.
    type State: Clone + Hash;
    /// Something that can happen.
    type Action;

    /// Returns the states to start from.
    fn start(&self) -> Vec<Self::State>;

    /// Returns what can happen in `state`, in an order that depends on nothing
    /// else. Empty at the end, or at the bound.
    fn actions(&self, state: &Self::State) -> Vec<Self::Action>;

    /// Returns the state after `action`; `None` when nothing comes of it.
    fn step(&self, state: &Self::State, action: &Self::Action) -> Option<Self::State>;

    /// Says in words what `action` does in `state`.
    fn describe(&self, state: &Self::State, action: &Self::Action) -> String;
}
