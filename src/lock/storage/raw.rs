//! Lock objects from raw bytes and names, read as the lock reads them, for
//! fuzzing.

use object_store::path::Path;

use super::LockMode;
use super::family::Family;
use super::metadata::Metadata;
use crate::lock::HolderKind;

/// Reads a lock object and writes it again.
pub(crate) fn metadata(content: &[u8]) -> Result<Vec<u8>, String> {
    let metadata = Metadata::parse(content)?;
    let _ = metadata.note();
    Ok(metadata.to_json())
}

/// Returns what the object `name` is to the lock at `path`, and whether it is in
/// the way; `None` when it has nothing to do with it, or there is no such lock.
pub(crate) fn member(path: &str, mode: LockMode, name: &str) -> Option<(HolderKind, bool)> {
    let family = Family::new(path, mode).ok()?;
    let member = family.member(&Path::from(name))?;
    Some((member.kind(), family.conflicts(member)))
}
