use std::time::SystemTime;

use crate::cli::output::{LockHolder, LockStatus, LockTold};
use crate::lock::{Holder, Holders, LockGuard};

/// Returns what is told of those who hold a lock.
pub(super) fn told(status: LockStatus, location: String, holders: &Holders) -> LockTold {
    let now = SystemTime::now();
    LockTold {
        status,
        location,
        total: holders.total,
        text: holders.describe(now),
        holders: holders.listed.iter().map(holder).collect(),
        fence: None,
    }
}

/// Returns what is told of one holder.
pub(super) fn told_of(status: LockStatus, location: String, holder: &Holder) -> LockTold {
    told(status, location, &[holder.clone()].into_iter().collect())
}

/// Returns what is told of a lock of our own.
pub(super) fn told_of_guard(status: LockStatus, location: String, guard: &LockGuard) -> LockTold {
    LockTold {
        fence: guard.fence(),
        ..told_of(status, location, guard.holder())
    }
}

fn holder(holder: &Holder) -> LockHolder {
    LockHolder {
        id: holder.id.clone(),
        kind: holder.kind.as_str(),
        location: holder.location.clone(),
        host: holder.host.clone(),
        pid: holder.pid,
        since: holder.since.and_then(rfc3339),
        age_ms: holder
            .age(SystemTime::now())
            .map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
        expires_at: holder.expires_at.and_then(rfc3339),
        purpose: holder.purpose.clone(),
        hint: holder.hint.clone(),
        note: holder.note.clone(),
    }
}

fn rfc3339(time: SystemTime) -> Option<String> {
    let time = jiff::Timestamp::try_from(time).ok()?;
    Some(format!("{time:.3}"))
}
