use std::time::SystemTime;

use object_store::path::Path;
use object_store::{ObjectMeta, UpdateVersion};

use super::expiry::Now;
use super::family::{Family, Member, Shape};
use super::metadata::Metadata;
use super::options::StorageOptions;
use super::shelf::{Seen, Shelf};
use super::txn_id::TxnId;
use crate::lock::{Holder, HolderKind, Holders, LockError, LockErrorKind};

/// The most objects that one look reads; who is not among them counts all the
/// same.
const READS_MAX: usize = 8;

/// What a look at the family of a lock showed.
#[derive(Debug, Default)]
pub(super) struct View {
    /// Those who stand in our way.
    pub(super) blockers: Holders,
    /// How many of them only announce that they want the lock.
    pub(super) intents: usize,
    /// How many of them were gone when they were to be read.
    vanished: usize,
    /// Whether one of them cannot be understood.
    pub(super) has_broken: bool,
    /// An expired lock in the place where ours shall be, as it was read.
    pub(super) expired: Option<(UpdateVersion, Holder)>,
    /// Announcements of those who are gone for good.
    pub(super) stale_intents: Vec<Path>,
    /// Our own lock, as it was read.
    pub(super) ours: Option<UpdateVersion>,
    /// Whether our own announcement is listed, and the time the storage gave it.
    pub(super) announced: Option<SystemTime>,
}

impl View {
    /// Returns whether all who stand in our way only announce that they want the
    /// lock.
    pub(super) fn has_only_intents(&self) -> bool {
        self.intents == self.blockers.total
    }

    /// Returns the error of a lock that others hold.
    pub(super) fn refusal(self, now: SystemTime) -> LockError {
        if self.has_broken {
            let message = format!(
                "what lies in the lock's place cannot be understood: {}",
                self.blockers.describe(now)
            );
            return LockError::new(LockErrorKind::Broken, message).with_holders(self.blockers);
        }
        LockError::held(self.blockers, now)
    }
}

/// How often a look begins anew because something vanished between its listing
/// and its being read.
const LOOKS_MAX: usize = 4;

/// Looks at all objects of the family, as the acquisition `own`.
///
/// What is listed and then gone may have become something that was not listed:
/// an announcement, the lock. So the look begins anew, and in the end whatever
/// was listed counts.
pub(super) async fn look(
    shelf: &Shelf,
    family: &Family,
    options: &StorageOptions,
    own: TxnId,
) -> Result<View, LockError> {
    let mut looks = 1;
    loop {
        let view = look_once(shelf, family, options, own).await?;
        if view.vanished == 0 || looks == LOOKS_MAX {
            return Ok(view);
        }
        looks += 1;
    }
}

async fn look_once(
    shelf: &Shelf,
    family: &Family,
    options: &StorageOptions,
    own: TxnId,
) -> Result<View, LockError> {
    let (target, intent) = (family.target(own), family.intent(own));
    let objects = members(shelf, family).await?;
    let announced = objects.iter().find(|(_, meta)| meta.location == intent);
    let mut view = View {
        announced: announced.map(|(_, meta)| SystemTime::from(meta.last_modified)),
        ..View::default()
    };
    let now = Now {
        local: options.wall_clock.now(),
        storage: view.announced,
        grace: options.grace,
    };
    let mut reads = 0;
    for (member, meta) in objects {
        let is_target = meta.location == target;
        if meta.location == intent || !(is_target || family.conflicts(member)) {
            continue;
        }
        let may_read = is_target || reads < READS_MAX;
        reads += 1;
        let identified = identify(shelf, member, &meta, may_read).await?;
        view.vanished += usize::from(identified.is_none());
        let (holder, seen) = identified.unwrap_or_else(|| (holder_of(member, &meta, None), None));
        if let Some((metadata, seen)) = &seen
            && is_target
            && metadata.txn_id == Some(own)
        {
            view.ours = Some(seen.version());
            continue;
        }
        let expired = seen.filter(|(metadata, seen)| now.is_expired(metadata, &seen.meta));
        match (expired, member.shape) {
            (Some(_), Shape::Intent(_)) => view.stale_intents.push(meta.location),
            (Some((_, seen)), _) if is_target => {
                view.expired = Some((seen.version(), holder));
            }
            _ => {
                view.intents += usize::from(holder.kind == HolderKind::Intent);
                view.has_broken |= holder.kind == HolderKind::Broken;
                view.blockers.push(holder);
            }
        }
    }
    Ok(view)
}

/// Lists who has to do with the lock, whatever kind of lock it is.
pub(super) async fn holders(shelf: &Shelf, family: &Family) -> Result<Holders, LockError> {
    let mut holders = Holders::default();
    for (member, meta) in members(shelf, family).await? {
        let may_read = holders.total < READS_MAX;
        if let Some((holder, _)) = identify(shelf, member, &meta, may_read).await? {
            holders.push(holder);
        }
    }
    Ok(holders)
}

/// Lists the objects of the family, in the order of their names.
pub(super) async fn members(
    shelf: &Shelf,
    family: &Family,
) -> Result<Vec<(Member, ObjectMeta)>, LockError> {
    let objects = shelf.list(family.folder(), &family.prefix()).await?;
    let mut members: Vec<_> = objects
        .into_iter()
        .filter_map(|meta| Some((family.member(&meta.location)?, meta)))
        .collect();
    members.sort_by(|(_, a), (_, b)| a.location.cmp(&b.location));
    Ok(members)
}

/// Tells whose an object is, with what was read; `None` when it is gone.
pub(super) async fn identify(
    shelf: &Shelf,
    member: Member,
    meta: &ObjectMeta,
    may_read: bool,
) -> Result<Option<(Holder, Option<(Metadata, Seen)>)>, LockError> {
    let is_empty_intent = matches!(member.shape, Shape::Intent(_)) && meta.size == 0;
    if !may_read || is_empty_intent || member.shape == Shape::Unknown {
        return Ok(Some((holder_of(member, meta, None), None)));
    }
    let Some(seen) = shelf.read(&meta.location).await? else {
        return Ok(None);
    };
    let content = Metadata::parse(&seen.content);
    let holder = holder_of(member, &seen.meta, Some(&content));
    Ok(Some((
        holder,
        content.ok().map(|metadata| (metadata, seen)),
    )))
}

/// Returns what is known of an object by its name and, where it was read, by its
/// content.
pub(super) fn holder_of(
    member: Member,
    meta: &ObjectMeta,
    content: Option<&Result<Metadata, String>>,
) -> Holder {
    let named = match member.shape {
        Shape::Intent(txn) => txn,
        Shape::Lock | Shape::Unknown => None,
    };
    let metadata = content.and_then(|content| content.as_ref().ok());
    let txn = named.or(metadata.and_then(|metadata| metadata.txn_id));
    let id = txn.map_or_else(|| fingerprint(meta), |txn| txn.to_string());
    let mut holder = Holder::new(member.kind(), id, meta.location.to_string());
    match content {
        Some(Ok(metadata)) => tell(&mut holder, metadata),
        // What others write into their announcements is theirs.
        Some(Err(why)) if member.shape == Shape::Lock => {
            holder.kind = HolderKind::Broken;
            holder.note = Some(why.clone());
        }
        _ => {}
    }
    if holder.since.is_none() {
        holder.since = Some(SystemTime::from(meta.last_modified));
    }
    holder
}

/// Adds what the content says.
pub(super) fn tell(holder: &mut Holder, metadata: &Metadata) {
    holder.host = Some(metadata.locker_host.clone());
    holder.pid = Some(metadata.locker_pid);
    holder.since = Some(metadata.locked_at);
    holder.expires_at = metadata.expire_at;
    holder.hint = Some(metadata.hint.clone());
    holder.note = metadata.note();
}

/// Returns a name for exactly this version of an object that has no transaction
/// id.
fn fingerprint(meta: &ObjectMeta) -> String {
    let tag = meta.e_tag.as_deref().unwrap_or_default();
    let text = format!(
        "{} {} {tag} {}",
        meta.location, meta.size, meta.last_modified
    );
    // FNV-1a: short, and the same in every version of the program.
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("object-{hash:016x}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// People copy these names from one version's output into another's command.
    #[test]
    fn the_name_of_what_has_no_id_stays_the_same() {
        let meta = |e_tag: Option<&str>| ObjectMeta {
            location: Path::from("backup/truncating.lock"),
            last_modified: (SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000)).into(),
            size: 42,
            e_tag: e_tag.map(str::to_owned),
            version: None,
        };
        assert_eq!(fingerprint(&meta(Some("tag"))), "object-cc4afe772ddc9bbf");
        assert_eq!(fingerprint(&meta(None)), "object-a4b5bb9e98e3f13f");
    }
}
