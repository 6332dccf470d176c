//! A slow set of keys that is obviously right: one flag for every cell of a
//! small grid of keys.

use crate::range::{EndKey, Key, KeyRange};

/// The keys that the grid's cells begin with, in order. There are keys that
/// are prefixes of others, the empty key, and keys at both ends of what a byte
/// can be; the last cell has no upper bound.
const GRID: [&[u8]; 13] = [
    b"",
    b"\x00",
    b"\x00\x00",
    b"\x00\x01",
    b"\x00\xff",
    b"\x01",
    b"\x01\x00",
    b"\x01\xff",
    b"\x02",
    b"\xfe\xff",
    b"\xff",
    b"\xff\x00",
    b"\xff\xff",
];

/// The number of cells.
pub(super) const CELLS: usize = GRID.len();

/// Cells `from..to` of the grid; never empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Span {
    pub(super) from: usize,
    pub(super) to: usize,
}

impl Span {
    /// Returns the range of keys that the cells hold.
    pub(super) fn range(self) -> KeyRange {
        let end = match GRID.get(self.to) {
            Some(&key) => EndKey::Bounded(Key::from(key)),
            None => EndKey::Unbounded,
        };
        KeyRange::new(Key::from(GRID[self.from]), end).expect("spans are not empty")
    }

    /// Returns every span over the first `cells` cells.
    pub(super) fn all(cells: usize) -> impl Iterator<Item = Self> {
        (0..cells).flat_map(move |from| (from + 1..=cells).map(move |to| Self { from, to }))
    }
}

/// Which cells are in the set.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Model([bool; CELLS]);

impl Model {
    pub(super) fn insert(&mut self, span: Span) {
        self.0[span.from..span.to].fill(true);
    }

    pub(super) fn remove(&mut self, span: Span) {
        self.0[span.from..span.to].fill(false);
    }

    pub(super) fn covers(&self, span: Span) -> bool {
        self.0[span.from..span.to].iter().all(|&cell| cell)
    }

    pub(super) fn overlaps(&self, span: Span) -> bool {
        self.0[span.from..span.to].iter().any(|&cell| cell)
    }

    pub(super) fn contains_key(&self, key: &Key) -> bool {
        let above = GRID.iter().position(|&start| start > key.as_bytes());
        self.0[above.unwrap_or(CELLS) - 1]
    }

    /// Returns the longest runs of cells within `span` whose flag is `flag`.
    pub(super) fn runs(&self, span: Span, flag: bool) -> Vec<KeyRange> {
        let mut runs: Vec<Span> = Vec::new();
        for cell in (span.from..span.to).filter(|&cell| self.0[cell] == flag) {
            match runs.last_mut() {
                Some(run) if run.to == cell => run.to = cell + 1,
                _ => runs.push(Span {
                    from: cell,
                    to: cell + 1,
                }),
            }
        }
        runs.into_iter().map(Span::range).collect()
    }
}

/// Keys that begin cells and keys that lie strictly inside them.
pub(super) fn probes() -> impl Iterator<Item = Key> {
    GRID.iter().flat_map(|start| {
        [
            Key::from(*start),
            Key::new([start, &b"\x00\x00"[..]].concat()),
        ]
    })
}

/// All the cells.
pub(super) const WHOLE: Span = Span { from: 0, to: CELLS };
