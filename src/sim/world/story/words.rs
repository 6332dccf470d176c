use std::collections::BTreeSet;
use std::fmt::Write;

use super::Mark;
use crate::region::{RegionError, RegionErrorKind, RegionId, StoreId};

/// The most regions or ranges that a line names.
const NAMED_MAX: usize = 6;

/// What a step is, for putting similar ones together.
#[derive(Clone, Debug)]
pub(super) struct Phrase {
    pub(super) mark: Mark,
    /// The store it is about; `None` for PD and for the client itself.
    pub(super) store: Option<StoreId>,
    /// What happened, without numbers.
    pub(super) what: String,
    /// What is counted, in the plural: `regions`; empty when nothing is.
    pub(super) unit: &'static str,
    pub(super) items: usize,
    /// Some of what it is about, by name.
    pub(super) names: Vec<String>,
}

impl Phrase {
    pub(super) fn new(mark: Mark, what: impl Into<String>) -> Self {
        Self {
            mark,
            store: None,
            what: what.into(),
            unit: "",
            items: 0,
            names: Vec::new(),
        }
    }

    pub(super) fn at(mut self, store: Option<StoreId>) -> Self {
        self.store = store;
        self
    }

    pub(super) fn counting(mut self, items: usize, unit: &'static str) -> Self {
        self.items = items;
        self.unit = unit;
        self
    }

    pub(super) fn naming(mut self, region: RegionId) -> Self {
        self.names.push(region.to_string());
        self
    }
}

/// Similar steps.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) phrase: Phrase,
    pub(super) stores: BTreeSet<StoreId>,
    pub(super) steps: usize,
}

impl Group {
    pub(super) fn new(phrase: Phrase) -> Self {
        Self {
            stores: phrase.store.into_iter().collect(),
            steps: 1,
            phrase,
        }
    }

    pub(super) fn takes(&self, other: &Phrase) -> bool {
        let own = &self.phrase;
        own.mark == other.mark
            && own.what == other.what
            && own.store.is_some() == other.store.is_some()
    }

    pub(super) fn add(&mut self, other: Phrase) {
        self.stores.extend(other.store);
        self.steps += 1;
        self.phrase.items += other.items;
        let names = &mut self.phrase.names;
        for name in other.names {
            if names.len() <= NAMED_MAX && !names.contains(&name) {
                names.push(name);
            }
        }
    }

    pub(super) fn text(&self) -> String {
        let Phrase {
            what, unit, items, ..
        } = &self.phrase;
        let mut text = String::new();
        if !self.stores.is_empty() {
            let _ = write!(text, "{}: ", stores(&self.stores));
        }
        text.push_str(what);
        if !unit.is_empty() {
            let unit = if *items == 1 {
                unit.trim_end_matches('s')
            } else {
                unit
            };
            let _ = write!(text, ", {items} {unit}");
        } else if self.steps > self.stores.len().max(1) {
            let _ = write!(text, ", {} times", self.steps);
        }
        let names = &self.phrase.names;
        if !names.is_empty() {
            let more = if names.len() > NAMED_MAX { ", ..." } else { "" };
            let named = names.get(..NAMED_MAX).unwrap_or(names);
            let _ = write!(text, ": {}{more}", named.join(", "));
        }
        text
    }
}

/// Returns `store 3`, or `stores 1-4, 7`.
pub(super) fn stores(stores: &BTreeSet<StoreId>) -> String {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for store in stores {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == store.0 => *last = store.0,
            _ => runs.push((store.0, store.0)),
        }
    }
    let mut texts: Vec<String> = runs
        .iter()
        .map(|&(first, last)| match last - first {
            0 => first.to_string(),
            _ => format!("{first}-{last}"),
        })
        .collect();
    if texts.len() > NAMED_MAX {
        texts.truncate(NAMED_MAX);
        texts.push(format!("... ({} in all)", stores.len()));
    }
    let noun = if stores.len() == 1 { "store" } else { "stores" };
    format!("{noun} {}", texts.join(", "))
}

/// Returns the name of a region's answer that is no success.
pub(super) fn refusal(error: &RegionError) -> String {
    let name = match &error.kind {
        RegionErrorKind::EpochNotMatch => "another epoch",
        RegionErrorKind::RegionNotFound => "no such region",
        RegionErrorKind::NotLeader => "not the leader",
        RegionErrorKind::StaleCommand => "another term, or no quorum",
        RegionErrorKind::ServerIsBusy { .. } => "server is busy",
        other => return format!("{other:?}: {}", error.message),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_named_in_runs() {
        let named = |ids: &[u64]| stores(&ids.iter().map(|&id| StoreId(id)).collect());
        assert_eq!(named(&[3]), "store 3");
        assert_eq!(named(&[1, 2, 3, 7]), "stores 1-3, 7");
        let many: Vec<u64> = (0..50).map(|n| n * 2).collect();
        assert!(named(&many).ends_with("(50 in all)"), "{}", named(&many));
    }

    #[test]
    fn similar_steps_are_summed_up() {
        let wait = |store, region| {
            Phrase::new(Mark::Answered, "refused")
                .at(Some(StoreId(store)))
                .counting(1, "regions")
                .naming(RegionId(region))
        };
        let mut group = Group::new(wait(1, 10));
        assert!(group.takes(&wait(2, 11)));
        assert!(!group.takes(&Phrase::new(Mark::Sent, "refused")));
        group.add(wait(2, 11));
        assert_eq!(group.text(), "stores 1-2: refused, 2 regions: 10, 11");
        for region in 0..100 {
            group.add(wait(2, region));
        }
        let text = group.text();
        assert!(text.starts_with("stores 1-2: refused, 102 regions: 10, 11, 0"));
        assert!(text.ends_with(", ..."), "{text}");
    }
}
