use std::sync::{Mutex, PoisonError};

use object_store::PutMode;
use object_store::path::Path;

use super::shelf::{Put, Shelf};
use crate::lock::LockError;

/// What the storage can do, found out by trying: some say that they cannot, and
/// some take a condition and do not heed it. Tried on announcements, which are
/// ours alone, never on a lock.
#[derive(Debug, Default)]
pub(super) struct Support(Mutex<Known>);

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    create: Option<bool>,
    update: Option<bool>,
}

impl Support {
    /// Returns whether an object can be created only where there is none. Known
    /// once something was announced.
    pub(super) fn can_create(&self) -> bool {
        self.known().create == Some(true)
    }

    #[cfg(test)]
    pub(super) fn known_to_create(can_create: bool) -> Self {
        Self(Mutex::new(Known {
            create: Some(can_create),
            update: Some(can_create),
        }))
    }

    fn known(&self) -> Known {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn learn(&self, change: impl FnOnce(&mut Known)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Writes an announcement, and learns whether the store creates atomically.
    pub(super) async fn announce(
        &self,
        shelf: &Shelf,
        intent: &Path,
        content: &[u8],
    ) -> Result<(), LockError> {
        let known = self.known().create;
        if known != Some(false) {
            match shelf.put(intent, content, PutMode::Create).await {
                // Refused: an earlier try had acted, for the name is ours alone.
                Put::Done(_) | Put::Refused if known.is_some() => return Ok(()),
                Put::Done(_) | Put::Refused => {
                    let is_heeded = match shelf.put(intent, content, PutMode::Create).await {
                        Put::Refused => true,
                        Put::Done(_) => false,
                        Put::Unsupported(error) | Put::Failed(error) | Put::Doubtful(error) => {
                            return Err(error);
                        }
                    };
                    self.learn(|known| known.create = Some(is_heeded));
                    return Ok(());
                }
                Put::Unsupported(_) => self.learn(|known| known.create = Some(false)),
                Put::Failed(error) | Put::Doubtful(error) => return Err(error),
            }
        }
        match shelf.put(intent, content, PutMode::Overwrite).await {
            Put::Done(_) | Put::Refused => Ok(()),
            Put::Unsupported(error) | Put::Failed(error) | Put::Doubtful(error) => Err(error),
        }
    }

    /// Returns whether an object can be replaced only if it is a certain version,
    /// trying it on our announcement.
    pub(super) async fn can_update(&self, shelf: &Shelf, intent: &Path) -> Result<bool, LockError> {
        if let Some(known) = self.known().update {
            return Ok(known);
        }
        let can_update = try_update(shelf, intent).await?;
        self.learn(|known| known.update = Some(can_update));
        Ok(can_update)
    }
}

async fn try_update(shelf: &Shelf, intent: &Path) -> Result<bool, LockError> {
    let Some(seen) = shelf.read(intent).await? else {
        return Ok(false);
    };
    let first = seen.version();
    if first.e_tag.is_none() && first.version.is_none() {
        return Ok(false);
    }
    // Something else than before, since a tag can be made of the content.
    let mut content = seen.content.to_vec();
    content.push(b'\n');
    match shelf
        .put(intent, &content, PutMode::Update(first.clone()))
        .await
    {
        Put::Done(_) => {}
        Put::Unsupported(_) | Put::Refused => return Ok(false),
        Put::Failed(error) | Put::Doubtful(error) => return Err(error),
    }
    content.push(b'\n');
    match shelf.put(intent, &content, PutMode::Update(first)).await {
        Put::Refused => Ok(true),
        Put::Done(_) | Put::Unsupported(_) => {
            tracing::warn!("this storage takes conditions of a write and does not heed them");
            Ok(false)
        }
        Put::Failed(error) | Put::Doubtful(error) => Err(error),
    }
}
