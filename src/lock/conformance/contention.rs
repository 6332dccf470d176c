use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::context::{Contenders, Outcome, ensure, ensure_free, failed, give_back, take_soon};
use crate::lock::RunLock;

/// How many want the lock at once, and how often each gets it.
const CONTENDERS: usize = 5;
const TURNS: usize = 3;

pub(super) async fn excludes(contenders: &dyn Contenders) -> Outcome {
    let inside = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..CONTENDERS)
        .map(|number| {
            let lock = contenders.contender(&format!("contender {number}"));
            tokio::spawn(take_turns(lock, Arc::clone(&inside)))
        })
        .collect();
    let mut result = Ok(());
    for task in tasks {
        let ended = task.await.unwrap_or_else(|_| Err("a task died".to_owned()));
        result = result.and(ended);
    }
    result?;
    ensure_free(&*contenders.contender("last")).await
}

/// Takes the lock again and again, looking whether anybody else is inside.
async fn take_turns(lock: Box<dyn RunLock>, inside: Arc<AtomicUsize>) -> Outcome {
    for _ in 0..TURNS {
        let guard = take_soon(&*lock).await?;
        let before = inside.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(3)).await;
        let is_held = guard.ensure_held();
        inside.fetch_sub(1, Ordering::SeqCst);
        ensure(before == 0, || {
            format!("{} held the lock while others did", guard.id())
        })?;
        is_held.map_err(failed("ensure_held"))?;
        give_back(guard).await?;
    }
    Ok(())
}
