/// The row of a region on its shelf. It stays the same until the shelf is
/// tidied.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(in crate::machine) struct Slot(pub(super) u32);

impl Slot {
    /// Returns the slot of a row. Four thousand million rows do not fit into
    /// memory, let alone on one store.
    pub(super) fn at(row: usize) -> Self {
        Self(u32::try_from(row).unwrap_or(u32::MAX))
    }

    pub(super) const fn row(self) -> usize {
        self.0 as usize
    }
}
