use std::sync::Arc;
use std::time::{Duration, SystemTime};

use etcd_client::{
    Compare, CompareOp, Error, EventType, GetOptions, GetResponse, KeyValue, LeaseGrantOptions,
    PutOptions, SortOrder, SortTarget, Txn, TxnOp, TxnOpResponse, TxnResponse, WatchOptions,
};

use super::dialer::Dialer;
use super::failure::{Failure, FailureKind};
use super::key::Keys;
use super::link::Link;
use super::metadata;
use crate::lock::{Holder, LockConfig, LockErrorKind};

/// The calls that a lock needs, each of which may act twice without harm.
pub(super) struct Backend {
    link: Link,
    keys: Keys,
}

/// A contender's own place in the queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) key: String,
    pub(super) lease: i64,
    /// When it was made, in etcd's time: its rank, and the fencing number.
    pub(super) revision: i64,
}

/// Somebody with a key of the lock.
#[derive(Clone, Debug)]
pub(super) struct Contender {
    key: Vec<u8>,
    lease: i64,
    revision: i64,
    holder: Holder,
    /// How many keys the lock has, this one among them.
    keys: i64,
}

/// Somebody who is before us.
#[derive(Clone, Debug)]
pub(super) struct Predecessor {
    key: Vec<u8>,
    /// When that was so.
    seen_at: i64,
}

impl Backend {
    pub(super) fn new(dialer: Arc<Dialer>, config: &LockConfig) -> Self {
        let keys = dialer.config().keys();
        Self {
            link: Link::new(dialer, config.call_timeout),
            keys,
        }
    }

    /// Makes a lease with the id `lease`, chosen by us so that it can be found
    /// again should the answer be lost, and returns for how long it is granted.
    pub(super) async fn grant(&mut self, lease: i64, ttl: Duration) -> Result<Duration, Failure> {
        // Whole seconds, rather more than less.
        let seconds = ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0);
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        let answer = self
            .link
            .call(|mut client| async move {
                let options = LeaseGrantOptions::new().with_id(lease);
                client.lease_grant(seconds, Some(options)).await
            })
            .await?;
        Ok(whole_seconds(answer.ttl()))
    }

    /// Renews the lease and returns for how long.
    ///
    /// Over a stream of its own that ends with the answer: so none is ever left
    /// unread, and a broken stream is nobody's business but this call's.
    pub(super) async fn keep_alive(&mut self, lease: i64) -> Result<Duration, Failure> {
        let seconds = self
            .link
            .call(|mut client| async move {
                let (mut keeper, mut answers) = client.lease_keep_alive(lease).await?;
                // The client hides what the first answer grants.
                keeper.keep_alive().await?;
                match answers.message().await? {
                    Some(answer) if answer.ttl() > 0 => Ok(answer.ttl()),
                    Some(_) => Err(Error::LeaseKeepAliveError("lease not found".to_owned())),
                    None => Err(Error::LeaseKeepAliveError("the stream ended".to_owned())),
                }
            })
            .await?;
        Ok(whole_seconds(seconds))
    }

    /// Ends the lease, and with it whatever key is bound to it. Returns whether it
    /// was there.
    pub(super) async fn revoke(&mut self, lease: i64) -> Result<bool, Failure> {
        let revoked = self
            .link
            .call(|mut client| async move { client.lease_revoke(lease).await })
            .await;
        match revoked {
            Ok(_) => Ok(true),
            Err(failure) if failure.kind == FailureKind::LeaseGone => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Gets in the queue with a key bound to the lease, unless it is there
    /// already, and returns our place and who is first.
    pub(super) async fn enqueue(
        &mut self,
        lease: i64,
        value: Vec<u8>,
    ) -> Result<(Place, Contender), Failure> {
        let key = self.keys.of(lease);
        let is_new = Compare::create_revision(key.as_str(), CompareOp::Equal, 0);
        let bound = PutOptions::new().with_lease(lease);
        let txn = Txn::new()
            .when([is_new])
            .and_then([
                TxnOp::put(key.as_str(), value, Some(bound)),
                TxnOp::get(self.keys.prefix(), Some(first())),
            ])
            .or_else([
                TxnOp::get(key.as_str(), None),
                TxnOp::get(self.keys.prefix(), Some(first())),
            ]);
        let answer = self.transact(txn).await?;
        let revision = if answer.succeeded() {
            answer.header().map(|header| header.revision())
        } else {
            nth_read(&answer, 0).and_then(|read| Some(read.kvs().first()?.create_revision()))
        };
        let first = nth_read(&answer, 1).and_then(|read| contender(&read));
        match (revision, first) {
            (Some(revision), Some(first)) => Ok((
                Place {
                    key,
                    lease,
                    revision,
                },
                first,
            )),
            _ => Err(odd("the answer to getting in the queue")),
        }
    }

    /// Returns who is first: the holder.
    pub(super) async fn first(&mut self) -> Result<Option<Contender>, Failure> {
        Ok(contender(&self.read(first()).await?))
    }

    /// Returns who is right before our place.
    pub(super) async fn predecessor(
        &mut self,
        place: &Place,
    ) -> Result<Option<Predecessor>, Failure> {
        let newest_before = GetOptions::new()
            .with_prefix()
            .with_sort(SortTarget::Create, SortOrder::Descend)
            .with_max_create_revision(place.revision - 1)
            .with_keys_only()
            .with_limit(1);
        let read = self.read(newest_before).await?;
        let seen_at = read.header().map(|header| header.revision());
        let seen_at = seen_at.ok_or_else(|| odd("a read"))?;
        let key = read.kvs().first().map(|kv| kv.key().to_vec());
        Ok(key.map(|key| Predecessor { key, seen_at }))
    }

    /// Waits until the predecessor is gone, or it is time to look again: when the
    /// history since then is not kept any more.
    ///
    /// # Cancel safety
    /// Dropping the future ends the watch.
    pub(super) async fn gone(&mut self, predecessor: &Predecessor) -> Result<(), Failure> {
        let watched = self.watch(predecessor).await;
        match watched {
            Err(failure) if failure.kind == FailureKind::Compacted => Ok(()),
            Err(failure) => {
                self.link.give_up();
                Err(failure)
            }
            Ok(()) => Ok(()),
        }
    }

    async fn watch(&mut self, predecessor: &Predecessor) -> Result<(), Failure> {
        let mut client = self.link.client().await?;
        let since = WatchOptions::new().with_start_revision(predecessor.seen_at);
        let mut watch = client.watch(predecessor.key.clone(), Some(since)).await?;
        while let Some(answer) = watch.message().await? {
            if answer.canceled() && answer.compact_revision() == 0 {
                let reason = answer.cancel_reason();
                return Err(Failure::unreachable(format!("a watch ended: {reason}")));
            }
            let is_deleted = |event: &etcd_client::Event| event.event_type() == EventType::Delete;
            if answer.canceled() || answer.events().iter().any(is_deleted) {
                return Ok(());
            }
        }
        Err(Failure::unreachable("a watch ended"))
    }

    /// Checks, having come to be first, that our place is still there, and writes
    /// the value anew. Returns whether it is.
    pub(super) async fn confirm(&mut self, place: &Place, value: Vec<u8>) -> Result<bool, Failure> {
        let bound = PutOptions::new().with_lease(place.lease);
        let txn = Txn::new().when([place.is_there()]).and_then([TxnOp::put(
            place.key.as_str(),
            value,
            Some(bound),
        )]);
        Ok(self.transact(txn).await?.succeeded())
    }

    /// Deletes exactly this key, as it was made at this revision. Returns whether
    /// it was there, or else who is first now.
    pub(super) async fn remove(
        &mut self,
        key: impl Into<Vec<u8>>,
        revision: i64,
    ) -> Result<Result<(), Option<Contender>>, Failure> {
        let key = key.into();
        let is_there = Compare::create_revision(key.clone(), CompareOp::Equal, revision);
        let txn = Txn::new()
            .when([is_there])
            .and_then([TxnOp::delete(key, None)])
            .or_else([TxnOp::get(self.keys.prefix(), Some(first()))]);
        let answer = self.transact(txn).await?;
        if answer.succeeded() {
            return Ok(Ok(()));
        }
        let read = nth_read(&answer, 0).ok_or_else(|| odd("the answer to a removal"))?;
        Ok(Err(contender(&read)))
    }

    /// Deletes the key of this lease whatever became of it: nobody else has it.
    pub(super) async fn remove_own(&mut self, lease: i64) -> Result<(), Failure> {
        let key = self.keys.of(lease);
        let deleted = self.link.call(move |mut client| {
            let key = key.clone();
            async move { client.delete(key, None).await }
        });
        deleted.await.map(drop)
    }

    /// Returns the holder as others should see it: with its lease, what is left of
    /// that, and how many wait, not counting so many of our own.
    pub(super) async fn describe(&mut self, contender: Contender, ours: i64) -> Holder {
        let (lease, waiting) = (contender.lease, contender.keys - 1 - ours);
        let mut holder = contender.holder;
        if waiting > 0 {
            metadata::add_note(&mut holder, format!("{waiting} waiting behind it"));
        }
        if lease == 0 {
            let note = "no lease: it never ends by itself";
            metadata::add_note(&mut holder, note.to_owned());
            return holder;
        }
        let asked = self
            .link
            .call(|mut client| async move { client.lease_time_to_live(lease, None).await })
            .await;
        let left = match asked {
            Ok(answer) if answer.ttl() >= 0 => {
                format!("{} s left unless it is renewed", answer.ttl())
            }
            Ok(_) => "expired".to_owned(),
            Err(_) => "time left unknown".to_owned(),
        };
        metadata::add_note(&mut holder, format!("lease {lease:x}, {left}"));
        holder
    }

    async fn read(&mut self, options: GetOptions) -> Result<GetResponse, Failure> {
        let prefix = self.keys.prefix().to_owned();
        let read = self.link.call(move |mut client| {
            let (prefix, options) = (prefix.clone(), options.clone());
            async move { client.get(prefix, Some(options)).await }
        });
        read.await
    }

    async fn transact(&mut self, txn: Txn) -> Result<TxnResponse, Failure> {
        let done = self.link.call(move |mut client| {
            let txn = txn.clone();
            async move { client.txn(txn).await }
        });
        done.await
    }
}

impl Place {
    fn is_there(&self) -> Compare {
        Compare::create_revision(self.key.as_str(), CompareOp::Equal, self.revision)
    }

    /// Returns what this place tells of itself.
    pub(super) fn holder(&self, value: &[u8]) -> Holder {
        metadata::decode(self.key.as_bytes(), self.lease, self.revision, value)
    }

    /// Returns the fencing number.
    pub(super) fn fence(&self) -> Option<u64> {
        u64::try_from(self.revision).ok()
    }
}

impl Contender {
    pub(super) fn is(&self, place: &Place) -> bool {
        self.key == place.key.as_bytes() && self.revision == place.revision
    }

    pub(super) fn id(&self) -> &str {
        &self.holder.id
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    pub(super) const fn revision(&self) -> i64 {
        self.revision
    }

    pub(super) fn into_holder(self) -> Holder {
        self.holder
    }
}

/// The oldest of all keys of the lock.
fn first() -> GetOptions {
    GetOptions::new()
        .with_prefix()
        .with_sort(SortTarget::Create, SortOrder::Ascend)
        .with_limit(1)
}

/// Returns the first contender of a read.
fn contender(read: &GetResponse) -> Option<Contender> {
    let kv: &KeyValue = read.kvs().first()?;
    let (lease, revision) = (kv.lease(), kv.create_revision());
    Some(Contender {
        key: kv.key().to_vec(),
        lease,
        revision,
        holder: metadata::decode(kv.key(), lease, revision, kv.value()),
        keys: read.count(),
    })
}

/// Returns the result of the `nth` operation, which has to be a read.
fn nth_read(answer: &TxnResponse, nth: usize) -> Option<GetResponse> {
    match answer.op_responses().into_iter().nth(nth) {
        Some(TxnOpResponse::Get(read)) => Some(read),
        _ => None,
    }
}

fn odd(what: &str) -> Failure {
    Failure::new(
        FailureKind::Lock(LockErrorKind::Other),
        format!("{what} makes no sense"),
    )
}

fn whole_seconds(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

/// Returns the value for our key.
pub(super) fn value(config: &LockConfig) -> Vec<u8> {
    metadata::encode(config, SystemTime::now())
}

#[cfg(test)]
mod tests;
