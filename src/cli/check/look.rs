use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use tokio::time::{sleep, timeout};

use super::pd_view::{PdView, view_pd};
use super::problem::Problem;
use super::store_view::{StoreProblem, StoreView, kind_of, passes, view_store};
use crate::cli::args::CheckArgs;
use crate::cli::down::heartbeat_age;
use crate::cli::output::{CheckedCluster, CheckedStore};
use crate::cluster::ClusterClient;
use crate::error::ErrorKind;
use crate::range::{KeyRange, KeyRangeSet};
use crate::region::{Store, StoreState};

/// How many stores are asked at once.
const AT_ONCE: usize = 32;
/// An election leaves a gap among the claims for a moment, a restart a store or
/// PD away; a run would wait, so what may pass is looked at again before it
/// counts.
const LOOKS: usize = 3;
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(700);

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
    let mut looked = look_once(cluster, args, show_keys).await;
    for _ in 1..LOOKS {
        if !may_pass(&looked) {
            break;
        }
        sleep(LOOK_AGAIN_AFTER).await;
        looked = look_once(cluster, args, show_keys).await;
    }
    looked
}

/// Returns whether something is wrong that may be right in a moment.
fn may_pass(looked: &Result<Look, Problem>) -> bool {
    match looked {
        Ok(look) => !look.problems.is_empty() && look.problems.iter().all(|it| it.passes),
        Err(problem) => problem.passes,
    }
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
    let (kind, passes, reason) = match timeout(limit, cluster.list_stores()).await {
        Ok(Ok(stores)) => return Ok(stores),
        Ok(Err(failure)) => (kind_of(failure.kind), passes(&failure), failure.to_string()),
        Err(_) => (
            ErrorKind::Unreachable,
            false,
            format!("no answer within {limit:?}"),
        ),
    };
    Err(Problem {
        kind: kind.as_str(),
        message: format!("PD does not list its stores: {reason}"),
        store: None,
        passes,
    })
}

/// A store and what it said; `None` for one that takes no part.
pub(super) type Viewed<'a> = (&'a Store, Option<Result<StoreView, StoreProblem>>);

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
            Some(Err(problem)) => problems.push(Problem::of_store(store, problem)),
            None => {}
        }
    }
    if cluster.stores == 0 {
        problems.push(Problem::no_stores());
    }
    cluster.gaps = claimed.gaps(&KeyRange::whole()).count();
    // What a store that keeps silent leads is not known, so it is no gap.
    if problems.is_empty() && cluster.gaps > 0 {
        problems.push(Problem::gap(&claimed, cluster.gaps, show_keys));
    }
    problems.extend(Problem::strangers(views));
    problems.extend(Problem::shared_addresses(views));
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
        heartbeat_age_s: heartbeat_age(store),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::range::{EndKey, Key};
    use crate::region::{RegionId, StoreId};

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
            passes: kind == ErrorKind::Unreachable,
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
                (
                    "unsupported",
                    Some(2),
                    "store 2 at 10.0.0.2:20160: not so; version 6.5.0 does not support snapshot \
                     backup, which needs TiKV 6.5, 7.1 or 7.5 in a late patch release, or later, \
                     with the ordinary raftstore engine"
                ),
                ("unreachable", Some(3), "store 3 at 10.0.0.3:20160: not so"),
            ]
        );
        assert_eq!(look.cluster.problems.len(), 2);
        assert!(!may_pass(&Ok(look)), "one of them stays");
    }

    #[test]
    fn a_store_that_pd_has_not_heard_of_for_long_is_called_down() {
        let now = i64::try_from(jiff::Timestamp::now().as_nanosecond()).expect("fits");
        for (age_s, is_down) in [(0, false), (30, false), (7_200, true)] {
            let store = Store {
                last_heartbeat_ns: now - age_s * 1_000_000_000,
                ..store(1)
            };
            let views = [(&store, Some(Err(refuses(ErrorKind::Unreachable))))];
            let look = judged(&views, &PdView::default(), false);
            let message = &look.problems[0].message;
            assert_eq!(message.contains("it is down"), is_down, "{message}");
            assert_eq!(message.contains("120 min"), is_down, "{message}");
        }
    }

    /// What a silent store leads is unknown, which is no second problem.
    #[test]
    fn gaps_count_as_a_problem_only_when_every_store_spoke() {
        let stores = [store(1), store(2)];
        for (second, kinds) in [
            (Ok(StoreView::default()), vec!["gap"]),
            (Err(refuses(ErrorKind::Unreachable)), vec!["unreachable"]),
        ] {
            let views = [
                (&stores[0], Some(Ok(StoreView::default()))),
                (&stores[1], Some(second)),
            ];
            let look = judged(&views, &PdView::default(), false);
            assert_eq!(look.cluster.gaps, 1);
            let seen: Vec<_> = look.problems.iter().map(|problem| problem.kind).collect();
            assert_eq!(seen, kinds);
            assert!(may_pass(&Ok(look)));
        }
    }

    /// A run would suspend the stores and then wait for such a region in vain.
    #[test]
    fn a_voter_on_a_store_that_is_not_held_is_a_problem() {
        let mut view = leads(KeyRange::whole());
        for id in [1, 2, 9] {
            view.voters.insert(StoreId(id), RegionId(40));
        }
        let left_out = Store {
            state: StoreState::Tombstone,
            ..store(2)
        };
        let stores = [store(1), left_out];
        let views = [(&stores[0], Some(Ok(view))), (&stores[1], None)];
        let look = judged(&views, &PdView::default(), false);
        let problems: Vec<_> = look
            .problems
            .iter()
            .map(|problem| (problem.kind, problem.store))
            .collect();
        assert_eq!(problems, [("stranger", Some(2)), ("stranger", Some(9))]);
        assert!(look.problems[0].message.contains("region 40 has a voter"));
    }

    #[test]
    fn two_stores_at_one_address_are_a_problem() {
        let twin = Store {
            address: store(1).address,
            ..store(2)
        };
        let gone = Store {
            id: StoreId(3),
            state: StoreState::Tombstone,
            ..twin.clone()
        };
        let stores = [store(1), twin, gone];
        let views = [
            (&stores[0], Some(Ok(leads(KeyRange::whole())))),
            (&stores[1], Some(Ok(StoreView::default()))),
            (&stores[2], None),
        ];
        let look = judged(&views, &PdView::default(), false);
        let [problem] = look.problems.as_slice() else {
            panic!("{:?}", look.problems);
        };
        assert_eq!(
            problem.message,
            "PD lists stores 1 and 2 at one address, 10.0.0.1:20160"
        );
    }

    #[test]
    fn what_pd_fails_to_tell_may_pass_unless_it_kept_silent() {
        let problem = |passes| Problem {
            kind: "unreachable",
            message: String::new(),
            store: None,
            passes,
        };
        assert!(may_pass(&Err(problem(true))));
        assert!(!may_pass(&Err(problem(false))));
        let stores = [store(1)];
        let views = [(&stores[0], Some(Ok(leads(KeyRange::whole()))))];
        assert!(!may_pass(&Ok(judged(&views, &PdView::default(), false))));
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
