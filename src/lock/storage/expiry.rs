use std::time::{Duration, SystemTime};

use object_store::ObjectMeta;

use super::metadata::Metadata;

/// What has to be known to tell whether a lock has expired.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    /// The time by our own clock.
    pub(super) local: SystemTime,
    /// The time by the storage's clock, where that is known: the time it gave to
    /// an object that was written a moment ago.
    pub(super) storage: Option<SystemTime>,
    /// How long an expired lock is left alone.
    pub(super) grace: Duration,
}

impl Now {
    /// Returns whether the lock is past its end and the grace, so that its holder
    /// must have noticed by its own clock that it has lost it.
    ///
    /// Our clock alone may be ahead, and the holder's behind. So the storage's
    /// clock has to agree: on the end that the holder wrote, and on the time that
    /// has passed since it wrote, which needs no other clock at all. Without the
    /// storage's clock the answer is a guess, good enough to look closer.
    pub(super) fn is_expired(&self, metadata: &Metadata, meta: &ObjectMeta) -> bool {
        let (Some(expire_at), Some(lease_ms), Some(_)) =
            (metadata.expire_at, metadata.lease_ms, metadata.txn_id)
        else {
            // It is not of our kind, or does not expire.
            return false;
        };
        let is_past = |now: SystemTime, end: SystemTime| {
            end.checked_add(self.grace).is_some_and(|end| now > end)
        };
        let written = SystemTime::from(meta.last_modified);
        let lease = Duration::from_millis(lease_ms);
        is_past(self.local, expire_at)
            && self.storage.is_none_or(|now| {
                let lapsed = written.checked_add(lease);
                is_past(now, expire_at) && lapsed.is_some_and(|end| is_past(now, end))
            })
    }
}

#[cfg(test)]
mod tests {
    use object_store::path::Path;

    use super::*;
    use crate::lock::LockConfig;
    use crate::lock::storage::txn_id::TxnId;

    const GRACE: Duration = Duration::from_secs(30);

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + seconds)
    }

    /// A lock of 60 s that was renewed at 0 by the storage's clock, and at
    /// `holder` by the holder's.
    fn lock(holder: u64) -> (Metadata, ObjectMeta) {
        let txn = TxnId::parse("00112233445546778899aabbccddeeff").expect("a txn");
        let metadata = Metadata::new(&LockConfig::default(), txn, at(holder));
        let metadata = metadata.expiring(Duration::from_secs(60), at(holder));
        let meta = ObjectMeta {
            location: Path::from("x"),
            last_modified: at(0).into(),
            size: 1,
            e_tag: None,
            version: None,
        };
        (metadata, meta)
    }

    fn is_expired(holder: u64, local: u64, storage: Option<u64>) -> bool {
        let (metadata, meta) = lock(holder);
        let now = Now {
            local: at(local),
            storage: storage.map(at),
            grace: GRACE,
        };
        now.is_expired(&metadata, &meta)
    }

    #[test]
    fn all_clocks_have_to_agree() {
        assert!(is_expired(0, 91, Some(91)));
        assert!(!is_expired(0, 90, Some(91)), "not by ours");
        assert!(!is_expired(0, 91, Some(90)), "not by the storage's");
        assert!(!is_expired(0, 1000, Some(60)), "ours is ahead");
        assert!(!is_expired(50, 100, Some(100)), "the holder is ahead");
        // The holder wrote an end that was over when it wrote it.
        let (mut metadata, meta) = lock(0);
        metadata.expire_at = Some(at(0) - Duration::from_secs(500));
        let now = |storage| Now {
            local: at(1000),
            storage: Some(at(storage)),
            grace: GRACE,
        };
        assert!(!now(90).is_expired(&metadata, &meta), "its clock is behind");
        assert!(now(91).is_expired(&metadata, &meta));
    }

    #[test]
    fn without_the_storages_clock_it_is_a_guess() {
        assert!(is_expired(0, 91, None));
        assert!(!is_expired(0, 90, None));
    }

    #[test]
    fn what_is_not_of_our_kind_never_expires() {
        let now = Now {
            local: at(1 << 30),
            storage: Some(at(1 << 30)),
            grace: GRACE,
        };
        let (metadata, meta) = lock(0);
        assert!(now.is_expired(&metadata, &meta));
        for change in [
            |m: &mut Metadata| m.lease_ms = None,
            |m: &mut Metadata| m.expire_at = None,
            |m: &mut Metadata| m.txn_id = None,
            |m: &mut Metadata| m.lease_ms = Some(u64::MAX),
        ] {
            let mut other = metadata.clone();
            change(&mut other);
            assert!(!now.is_expired(&other, &meta), "{other:?}");
        }
    }
}
