use crate::range::KeyRange;
use crate::region::{RegionId, ScannedRegion, StoreId};

/// How many regions are kept for one failed range.
const KEPT: usize = 8;
/// How many of them are named.
const NAMED: usize = 3;

/// What is known to lie in a failed range: the first few regions of which PD has
/// told, or that a store has claimed. Nothing is decided by it; it is for people.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Known(Vec<Resident>);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Resident {
    range: KeyRange,
    region: RegionId,
    word: Word,
}

/// Who spoke of a region.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Word {
    /// PD, which names its leader or knows none.
    Pd(Option<StoreId>),
    /// The store, which has claimed it.
    Claimer(StoreId),
}

impl Known {
    /// Returns what a claim told that is not good any more.
    pub(super) fn claimed(region: RegionId, store: StoreId, range: KeyRange) -> Self {
        let word = Word::Claimer(store);
        Self(vec![Resident {
            range,
            region,
            word,
        }])
    }

    /// Takes in what PD says of `range`. It takes the place of what was known of
    /// the same keys, save that a claim is worth more than no leader at all.
    pub(super) fn scanned(&mut self, range: &KeyRange, regions: &[ScannedRegion]) {
        let told = regions
            .iter()
            .filter(|scanned| scanned.region.range.overlaps(range))
            .take(KEPT);
        let mut told: Vec<Resident> = told
            .map(|scanned| Resident {
                range: scanned.region.range.clone(),
                region: scanned.region.id,
                word: Word::Pd(scanned.leader),
            })
            .collect();
        for old in std::mem::take(&mut self.0) {
            let mut place = told.iter_mut().filter(|new| new.range.overlaps(&old.range));
            match place.next() {
                None => told.push(old),
                Some(new) if new.region == old.region && new.word == Word::Pd(None) => {
                    new.word = old.word;
                }
                Some(_) => {}
            }
        }
        self.0 = told;
        self.tidy();
    }

    /// Takes in what is known of the neighborhood.
    pub(super) fn join(&mut self, other: Self) {
        for resident in other.0 {
            if !self.0.contains(&resident) {
                self.0.push(resident);
            }
        }
        self.tidy();
    }

    /// Returns what is known of `range`.
    pub(super) fn within(&self, range: &KeyRange) -> Self {
        let all = self.0.iter();
        Self(
            all.filter(|resident| resident.range.overlaps(range))
                .cloned()
                .collect(),
        )
    }

    /// Returns the first region, and the store that PD names or that claimed it.
    pub(super) fn first(&self) -> Option<(RegionId, Option<StoreId>)> {
        let first = self.0.first()?;
        let store = match first.word {
            Word::Pd(leader) => leader,
            Word::Claimer(store) => Some(store),
        };
        Some((first.region, store))
    }

    /// Says something of what is here.
    pub(super) fn say(&self, what: &str) -> String {
        if self.0.is_empty() {
            return format!("{what} it");
        }
        let named: Vec<String> = self.0.iter().take(NAMED).map(Resident::words).collect();
        let more = if self.0.len() > NAMED { ", …" } else { "" };
        format!("{what} {}{more}", named.join(", "))
    }

    fn tidy(&mut self) {
        self.0
            .sort_by(|one, other| one.range.start().cmp(other.range.start()));
        self.0.truncate(KEPT);
    }
}

impl Resident {
    fn words(&self) -> String {
        let region = self.region;
        match self.word {
            Word::Pd(Some(store)) => format!("region {region} (PD names store {store})"),
            Word::Pd(None) => format!("region {region} (PD names no store)"),
            Word::Claimer(store) => format!("region {region} (store {store} did before)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::range::{EndKey, Key};
    use crate::region::{Region, RegionEpoch};

    fn keys(from: u8, to: u8) -> KeyRange {
        let end = EndKey::Bounded(Key::from(&[to]));
        KeyRange::new(Key::from(&[from]), end).expect("not empty")
    }

    fn told(id: u64, range: KeyRange, leader: Option<u64>) -> ScannedRegion {
        ScannedRegion {
            region: Region {
                id: RegionId(id),
                range,
                epoch: RegionEpoch::default(),
                peers: Vec::new(),
            },
            leader: leader.map(StoreId),
        }
    }

    fn claimed(id: u64, store: u64, range: KeyRange) -> Known {
        Known::claimed(RegionId(id), StoreId(store), range)
    }

    #[test]
    fn pd_has_the_last_word_but_where_it_has_none() {
        let rows: [(&[ScannedRegion], &str, u64, Option<u64>); 5] = [
            (&[], "region 7 (store 2 did before)", 7, Some(2)),
            (
                &[told(7, keys(1, 4), None)],
                "region 7 (store 2 did before)",
                7,
                Some(2),
            ),
            (
                &[told(7, keys(1, 4), Some(3))],
                "region 7 (PD names store 3)",
                7,
                Some(3),
            ),
            (
                &[told(8, keys(1, 6), None)],
                "region 8 (PD names no store)",
                8,
                None,
            ),
            // Not of this range.
            (
                &[told(9, keys(6, 9), Some(3))],
                "region 7 (store 2 did before)",
                7,
                Some(2),
            ),
        ];
        for (regions, words, region, store) in rows {
            let mut known = claimed(7, 2, keys(1, 4));
            known.scanned(&keys(1, 5), regions);
            assert_eq!(
                known.say("no store claims to lead"),
                format!("no store claims to lead {words}")
            );
            assert_eq!(known.first(), Some((RegionId(region), store.map(StoreId))));
        }
        assert_eq!(
            Known::default().say("no store claims to lead"),
            "no store claims to lead it"
        );
        assert_eq!(Known::default().first(), None);
    }

    #[test]
    fn a_few_are_named_and_few_are_kept() {
        let regions: Vec<_> = (1..=20)
            .map(|at| told(at.into(), keys(at, at + 1), Some(1)))
            .collect();
        let mut known = Known::default();
        known.scanned(&keys(1, 30), &regions);
        assert_eq!(known.0.len(), KEPT);
        assert_eq!(
            known.say("no store claims to lead"),
            "no store claims to lead region 1 (PD names store 1), \
             region 2 (PD names store 1), region 3 (PD names store 1), …"
        );
        let mut part = known.within(&keys(2, 4));
        assert_eq!(part.0.len(), 2);
        part.join(claimed(9, 2, keys(0, 1)));
        part.join(claimed(9, 2, keys(0, 1)));
        assert_eq!(part.first(), Some((RegionId(9), Some(StoreId(2)))));
        assert_eq!(part.0.len(), 3);
    }
}
