use serde::Serialize;

/// What is said of a lock.
#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
pub(crate) struct LockTold {
    pub(crate) status: LockStatus,
    pub(crate) location: String,
    /// How many hold it, or stand in its way.
    pub(crate) total: usize,
    /// The first few of them.
    pub(crate) holders: Vec<LockHolder>,
    pub(crate) fence: Option<u64>,
    /// All of them in a line for people.
    #[serde(skip)]
    pub(crate) text: String,
}

#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LockStatus {
    Free,
    Held,
    Acquired,
    Released,
    Broken,
}

/// Somebody who holds a lock, as far as that is known.
#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
pub(crate) struct LockHolder {
    pub(crate) id: String,
    pub(crate) kind: &'static str,
    pub(crate) location: String,
    pub(crate) host: Option<String>,
    pub(crate) pid: Option<u64>,
    /// RFC 3339, UTC, as are all times.
    pub(crate) since: Option<String>,
    pub(crate) age_ms: Option<u64>,
    pub(crate) expires_at: Option<String>,
    pub(crate) purpose: Option<String>,
    pub(crate) hint: Option<String>,
    pub(crate) note: Option<String>,
}
