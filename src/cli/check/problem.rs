use std::collections::BTreeMap;

use super::look::Viewed;
use super::store_view::StoreProblem;
use crate::cli::down::down_hint;
use crate::error::ErrorKind;
use crate::range::{KeyRange, KeyRangeSet};
use crate::region::Store;

/// How many gaps are named at the most.
const GAPS_NAMED: usize = 3;

/// Something that keeps a run from starting now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Problem {
    pub(super) kind: &'static str,
    pub(super) message: String,
    pub(super) store: Option<u64>,
    /// Whether it may be gone in a moment.
    pub(super) passes: bool,
}

impl Problem {
    /// A store did not say what it leads.
    pub(super) fn of_store(store: &Store, problem: &StoreProblem) -> Self {
        Self {
            kind: problem.kind.as_str(),
            message: format!(
                "store {} at {}: {}{}",
                store.id,
                store.address,
                problem.message,
                hint(store, problem.kind)
            ),
            store: Some(store.id.0),
            passes: problem.passes,
        }
    }

    pub(super) fn no_stores() -> Self {
        Self {
            kind: "no_stores",
            message: "PD lists no store that could be held".to_owned(),
            store: None,
            passes: false,
        }
    }

    /// Nobody claims some of the keys.
    pub(super) fn gap(claimed: &KeyRangeSet, count: usize, show_keys: bool) -> Self {
        let whole = KeyRange::whole();
        let named: Vec<String> = claimed
            .gaps(&whole)
            .take(GAPS_NAMED)
            .map(|gap| {
                if show_keys {
                    gap.reveal().to_string()
                } else {
                    gap.to_string()
                }
            })
            .collect();
        let named = named.join(", ");
        let message = match count {
            1 => format!("no store says to lead the key range {named}"),
            more => format!("no store says to lead {more} key ranges, such as {named}"),
        };
        Self {
            kind: "gap",
            message,
            store: None,
            passes: true,
        }
    }

    /// Voters on stores that would not be suspended: no region with one can be
    /// proven.
    pub(super) fn strangers(views: &[Viewed<'_>]) -> Vec<Self> {
        let mut strangers = BTreeMap::new();
        for view in views.iter().filter_map(|(_, view)| view.as_ref()) {
            for (id, region) in view.iter().flat_map(|view| &view.voters) {
                strangers.entry(*id).or_insert(*region);
            }
        }
        for (store, view) in views {
            if view.is_some() {
                strangers.remove(&store.id);
            }
        }
        strangers
            .into_iter()
            .map(|(id, region)| Self {
                kind: "stranger",
                message: format!(
                    "region {region} has a voter on store {id}, which is not among the TiKV stores \
                     in use that PD lists"
                ),
                store: Some(id.0),
                passes: true,
            })
            .collect()
    }

    /// Stores at one address: it is one process, and suspends only once.
    pub(super) fn shared_addresses(views: &[Viewed<'_>]) -> Vec<Self> {
        let mut first = BTreeMap::new();
        let mut shared = Vec::new();
        for (store, _) in views.iter().filter(|(_, view)| view.is_some()) {
            match first.get(&store.address) {
                None => {
                    first.insert(&store.address, store.id);
                }
                Some(other) => shared.push(Self {
                    kind: "shared_address",
                    message: format!(
                        "PD lists stores {other} and {} at one address, {}",
                        store.id, store.address
                    ),
                    store: Some(store.id.0),
                    passes: true,
                }),
            }
        }
        shared
    }
}

/// Returns what there is to say of a store besides what it said itself.
fn hint(store: &Store, kind: ErrorKind) -> String {
    match kind {
        ErrorKind::Unsupported => format!(
            "; version {} does not support snapshot backup, which needs TiKV 6.5, 7.1 or 7.5 in a \
             late patch release, or later, with the ordinary raftstore engine",
            if store.version.is_empty() {
                "unknown"
            } else {
                &store.version
            }
        ),
        ErrorKind::Tls => "; check the CA, the certificate and the key".to_owned(),
        ErrorKind::Unauthenticated => "; it refuses our identity".to_owned(),
        ErrorKind::Unreachable => down_hint(store),
        _ => String::new(),
    }
}
