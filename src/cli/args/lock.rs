use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::help;
use super::time::parse_time;
use crate::lock::LockConfig;

/// The lock of a run.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Lock")]
pub(crate) struct RunLockArgs {
    /// Take this lock first, so that one run at a time works: s3://bucket/path,
    /// gs://..., az://..., file:///path, etcd://host:port[,...]/name (etcds://
    /// with TLS). A URL that ends in / means snapshot-prepare.lock there
    #[arg(long, value_name = "URL")]
    pub(crate) lock: Option<String>,
    /// How long to wait for the lock while somebody else has it
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "0s", requires = "lock")]
    pub(crate) lock_wait: Duration,
    /// How long the lock outlives its last renewal: 5s to 1h. On etcd 30s when
    /// left out; a lock on storage then does not expire by itself
    #[arg(long, value_name = "TIME", value_parser = parse_time, requires = "lock")]
    pub(crate) lock_ttl: Option<Duration>,
}

/// What to do with a lock on its own.
#[derive(Subcommand, Debug)]
pub(crate) enum LockCommand {
    /// Tell who holds it; only reads
    #[command(after_help = help::LOCK_STATUS)]
    Status(LockStatusArgs),
    /// Take it, hold it while a command runs (or until a signal), release it
    #[command(long_about = help::LOCK_ACQUIRE, after_help = help::lock_acquire())]
    Acquire(LockAcquireArgs),
    /// Remove what an acquisition of one's own has left behind; fine if it is
    /// gone already
    Release(LockRemoveArgs),
    /// Remove a lock whose holder is known to be dead
    #[command(long_about = help::LOCK_BREAK)]
    Break(LockRemoveArgs),
}

#[derive(Args, Debug)]
pub(crate) struct LockStatusArgs {
    /// The lock
    #[arg(value_name = "URL")]
    pub(crate) url: String,
}

#[derive(Args, Debug)]
pub(crate) struct LockAcquireArgs {
    /// The lock
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// How long to wait while somebody else has it
    #[arg(long, alias = "lock-wait", value_name = "TIME", value_parser = parse_time, default_value = "0s")]
    pub(crate) wait: Duration,
    /// How long the lock outlives its last renewal: 5s to 1h. On etcd 30s when
    /// left out; a lock on storage then does not expire by itself
    #[arg(long, alias = "lock-ttl", value_name = "TIME", value_parser = parse_time)]
    pub(crate) ttl: Option<Duration>,
    /// What others should know when they meet the lock
    #[arg(long, value_name = "TEXT")]
    pub(crate) hint: Option<String>,
    /// The command to run while the lock is held, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args, Debug)]
pub(crate) struct LockRemoveArgs {
    /// The lock
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// The id of what is to be removed, as `lock status` shows it
    #[arg(value_name = "ID", required_unless_present = "txn_id")]
    pub(crate) id: Option<String>,
    /// The same
    #[arg(long, value_name = "ID", conflicts_with = "id")]
    pub(crate) txn_id: Option<String>,
}

impl LockRemoveArgs {
    /// Returns the id that was given in either way.
    pub(crate) fn id(&self) -> &str {
        let id = self.id.as_deref().or(self.txn_id.as_deref());
        id.unwrap_or_default()
    }
}

impl RunLockArgs {
    /// Returns how the lock of a run behaves, not yet validated.
    pub(crate) fn config(&self) -> LockConfig {
        config(self.lock_ttl, None)
    }
}

impl LockAcquireArgs {
    /// Returns how the lock behaves, not yet validated.
    pub(crate) fn config(&self) -> LockConfig {
        config(self.ttl, self.hint.clone())
    }
}

fn config(ttl: Option<Duration>, hint: Option<String>) -> LockConfig {
    let hint = hint.unwrap_or_else(|| {
        "wait until it is done; if it is known to be dead, remove the lock with \
         `snapshot-prepare lock break`"
            .to_owned()
    });
    LockConfig {
        ttl,
        hint,
        ..LockConfig::default()
    }
}
