use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use tokio::time::{sleep, timeout};

use super::pd_view::{PdView, view_pd};
use super::store_view::{StoreProblem, StoreView, kind_of, view_store};
use crate::cli::args::CheckArgs;
use crate::cli::output::{CheckedCluster, CheckedStore};
use crate::cluster::ClusterClient;
use crate::error::ErrorKind;
use crate::range::{KeyRange, KeyRangeSet};
use crate::region::{Store, StoreState};

/// How many stores are asked at once.
const AT_ONCE: usize = 32;
/// An election leaves a gap among the claims for a moment, so a gap is looked
/// at again before it counts.
const LOOKS: usize = 3;
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(700);
/// How many gaps are named at the most.
const GAPS_NAMED: usize = 3;

/// Something that keeps a run from starting now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Problem {
    pub(super) kind: &'static str,
    pub(super) message: String,
    pub(super) store: Option<u64>,
}

/// What was seen.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) stores: Vec<CheckedStore>,
    pub(super) cluster: CheckedCluster,
    pub(super) problems: Vec<Problem>,
}

/// Looks at a cluster: PD's stores and regions, and what each store claims.
///
/// # Errors
/// PD does not answer.
pub(super) async fn look(
    cluster: &impl ClusterClient,
    args: &CheckArgs,
    show_keys: bool,
) -> Result<Look, Problem> {
    let mut looked = look_once(cluster, args, show_keys).await?;
    for _ in 1..LOOKS {
        let only_gaps = looked.problems.iter().all(|problem| problem.kind == "gap");
        if looked.cluster.gaps == 0 || !only_gaps {
            break;
        }
        sleep(LOOK_AGAIN_AFTER).await;
        looked = look_once(cluster, args, show_keys).await?;
    }
    Ok(looked)
}

async fn look_once(
    cluster: &impl ClusterClient,
    args: &CheckArgs,
    show_keys: bool,
) -> Result<Look, Problem> {
    let limit = args.timeout;
    let mut stores = list_stores(cluster, limit).await?;
    stores.sort_by_key(|store| store.id);
    let seen: Vec<_> = stream::iter(&stores)
        .map(|store| async move {
            if store.takes_part() {
                Some(view_store(cluster, store, limit).await)
            } else {
                None
            }
        })
        .buffered(AT_ONCE)
        .collect()
        .await;
    let pd = view_pd(cluster, args.page_size, limit).await?;
    let views: Vec<_> = stores.iter().zip(seen).collect();
    Ok(judged(&views, &pd, show_keys))
}

async fn list_stores(cluster: &impl ClusterClient, limit: Duration) -> Result<Vec<Store>, Problem> {
    let (kind, reason) = match timeout(limit, cluster.list_stores()).await {
        Ok(Ok(stores)) => return Ok(stores),
        Ok(Err(failure)) => (kind_of(failure.kind), failure.to_string()),
        Err(_) => (
            ErrorKind::Unreachable,
            format!("no answer within {limit:?}"),
        ),
    };
    Err(Problem {
        kind: kind.as_str(),
        message: format!("PD does not list its stores: {reason}"),
        store: None,
    })
}

/// A store and what it said; `None` for one that takes no part.
type Viewed<'a> = (&'a Store, Option<Result<StoreView, StoreProblem>>);

fn judged(views: &[Viewed<'_>], pd: &PdView, show_keys: bool) -> Look {
    let mut problems = Vec::new();
    let mut cluster = CheckedCluster {
        regions_by_pd: pd.regions,
        gaps_by_pd: pd.known.gaps(&KeyRange::whole()).count(),
        leaderless_by_pd: pd.leaderless,
        ..CheckedCluster::default()
    };
    let mut claimed = KeyRangeSet::default();
    for (store, view) in views {
        cluster.stores += usize::from(view.is_some());
        match view {
            Some(Ok(view)) => {
                cluster.regions += view.leaders;
                cluster.pending_admin += view.pending_admin;
                for range in view.claimed.iter() {
                    claimed.insert(&range);
                }
            }
            Some(Err(problem)) => problems.push(Problem {
                kind: problem.kind.as_str(),
                message: format!(
                    "store {} at {}: {}",
                    store.id, store.address, problem.message
                ),
                store: Some(store.id.0),
            }),
            None => {}
        }
    }
    if cluster.stores == 0 {
        problems.push(Problem {
            kind: "no_stores",
            message: "PD lists no store that could be held".to_owned(),
            store: None,
        });
    }
    cluster.gaps = claimed.gaps(&KeyRange::whole()).count();
    if cluster.gaps > 0 {
        problems.push(gap_problem(&claimed, cluster.gaps, show_keys));
    }
    cluster.problems = problems
        .iter()
        .map(|problem| problem.message.clone())
        .collect();
    Look {
        stores: views
            .iter()
            .map(|(store, view)| checked(store, view.as_ref(), pd))
            .collect(),
        cluster,
        problems,
    }
}

fn gap_problem(claimed: &KeyRangeSet, count: usize, show_keys: bool) -> Problem {
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
    Problem {
        kind: "gap",
        message: format!(
            "{count} key ranges that no store says to lead, such as {}",
            named.join(", ")
        ),
        store: None,
    }
}

fn checked(
    store: &Store,
    view: Option<&Result<StoreView, StoreProblem>>,
    pd: &PdView,
) -> CheckedStore {
    let (regions, leaders_by_pd) = pd.per_store.get(&store.id).copied().unwrap_or_default();
    let good = view.and_then(|view| view.as_ref().ok());
    let error = view.and_then(|view| view.as_ref().err());
    CheckedStore {
        store: store.id.0,
        address: store.address.clone(),
        state: match store.state {
            StoreState::Up => "up",
            StoreState::Offline => "offline",
            StoreState::Tombstone => "tombstone",
        },
        version: store.version.clone(),
        takes_part: store.takes_part(),
        heartbeat_age_s: heartbeat_age(store.last_heartbeat_ns),
        leaders: good.map(|view| view.leaders),
        regions,
        leaders_by_pd,
        pending_admin: good.map_or(0, |view| view.pending_admin),
        supported: match (good, error) {
            (Some(_), _) => Some(true),
            (None, Some(error)) if error.kind == ErrorKind::Unsupported => Some(false),
            _ => None,
        },
        error: error.map(|error| error.message.clone()),
    }
}

/// Returns how long ago PD heard of a store, in seconds.
fn heartbeat_age(heartbeat_ns: i64) -> Option<u64> {
    if heartbeat_ns <= 0 {
        return None;
    }
    let age = jiff::Timestamp::now().as_nanosecond() - i128::from(heartbeat_ns);
    Some(u64::try_from(age / 1_000_000_000).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::range::{EndKey, Key};
    use crate::region::StoreId;

    fn store(id: u64) -> Store {
        Store {
            id: StoreId(id),
            address: format!("10.0.0.{id}:20160"),
            state: StoreState::Up,
            version: "6.5.0".to_owned(),
            labels: Default::default(),
            last_heartbeat_ns: 0,
        }
    }

    fn leads(range: KeyRange) -> StoreView {
        let mut view = StoreView {
            leaders: 1,
            ..StoreView::default()
        };
        view.claimed.insert(&range);
        view
    }

    fn refuses(kind: ErrorKind) -> StoreProblem {
        StoreProblem {
            kind,
            message: "not so".to_owned(),
        }
    }

    #[test]
    fn a_store_without_the_calls_is_told_from_one_that_is_away() {
        let stores = [store(1), store(2), store(3)];
        let views = [
            (&stores[0], Some(Ok(leads(KeyRange::whole())))),
            (&stores[1], Some(Err(refuses(ErrorKind::Unsupported)))),
            (&stores[2], Some(Err(refuses(ErrorKind::Unreachable)))),
        ];
        let look = judged(&views, &PdView::default(), false);
        let supported: Vec<_> = look.stores.iter().map(|store| store.supported).collect();
        assert_eq!(supported, [Some(true), Some(false), None]);
        let problems: Vec<_> = look
            .problems
            .iter()
            .map(|problem| (problem.kind, problem.store, problem.message.as_str()))
            .collect();
        assert_eq!(
            problems,
            [
                ("unsupported", Some(2), "store 2 at 10.0.0.2:20160: not so"),
                ("unreachable", Some(3), "store 3 at 10.0.0.3:20160: not so"),
            ]
        );
        assert_eq!(look.cluster.problems.len(), 2);
    }

    #[test]
    fn the_keys_of_a_gap_are_shown_only_when_asked_for() {
        let range = KeyRange::new(Key::new(b"\xab".as_slice()), EndKey::Unbounded);
        let stores = [store(1)];
        for (shows, is_shown) in [(true, true), (false, false)] {
            let view = leads(range.clone().expect("not empty"));
            let views = [(&stores[0], Some(Ok(view)))];
            let look = judged(&views, &PdView::default(), shows);
            let [gap] = look.problems.as_slice() else {
                panic!("{:?}", look.problems);
            };
            assert_eq!((gap.kind, look.cluster.gaps), ("gap", 1));
            assert_eq!(gap.message.contains("AB"), is_shown, "{}", gap.message);
        }
    }
}
