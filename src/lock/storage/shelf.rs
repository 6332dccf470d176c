use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;
use object_store::{
    Error, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutPayload, PutResult, UpdateVersion,
};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::failure::{classify, failed, is_transient, unanswered};
use crate::lock::{LockConfig, LockError, LockErrorKind};

/// The largest lock object that is read. Real ones have some hundred bytes.
const CONTENT_MAX: u64 = 64 * 1024;

/// An object store as the lock uses it: few calls, each with a deadline, repeated
/// with backoff while the storage is busy or away.
pub(super) struct Shelf {
    store: Arc<dyn ObjectStore>,
    /// Lists by any prefix, where the store can.
    pages: Option<Pages>,
    call_timeout: Duration,
    backoff_min: Duration,
    /// Writes that were not answered in time and can still act.
    late: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Clone)]
pub(super) struct Pages(pub(super) Arc<dyn PaginatedListStore>);

impl fmt::Debug for Shelf {
    /// Shows the store's name and nothing of its settings: they hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shelf")
            .field("store", &self.store.to_string())
            .finish_non_exhaustive()
    }
}

/// An object that was read.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) meta: ObjectMeta,
    pub(super) content: Bytes,
}

impl Seen {
    /// Returns what an update has to name to replace exactly this.
    pub(super) fn version(&self) -> UpdateVersion {
        UpdateVersion {
            e_tag: self.meta.e_tag.clone(),
            version: self.meta.version.clone(),
        }
    }
}

/// What came of a write.
#[derive(Debug)]
pub(super) enum Put {
    Done(UpdateVersion),
    /// The object exists, or is not the one that was to be replaced. Also what a
    /// repeated write is told when an earlier attempt had acted, so read it back.
    Refused,
    /// The store has no such condition.
    Unsupported(LockError),
    /// It is known that nothing was written.
    Failed(LockError),
    /// It may have been written, or may still be.
    Doubtful(LockError),
}

impl Shelf {
    pub(super) fn new(
        store: Arc<dyn ObjectStore>,
        pages: Option<Pages>,
        config: &LockConfig,
    ) -> Self {
        Self {
            store,
            pages,
            call_timeout: config.call_timeout,
            backoff_min: config.backoff_min,
            late: Mutex::default(),
        }
    }

    pub(super) fn backoff_min(&self) -> Duration {
        self.backoff_min
    }

    /// Lists the objects in the folder of `prefix` whose names may begin with it;
    /// there may be others among them. All writes that ended before are seen, if
    /// the store keeps its word.
    pub(super) async fn list(
        &self,
        folder: &Path,
        prefix: &Path,
    ) -> Result<Vec<ObjectMeta>, LockError> {
        let what = format!("listing {prefix}");
        self.repeat(&what, || async {
            match &self.pages {
                Some(pages) => list_pages(pages, prefix).await,
                None => {
                    let folder = Some(folder).filter(|folder| !folder.as_ref().is_empty());
                    match self.store.list_with_delimiter(folder).await {
                        Ok(list) => Ok(list.objects),
                        // A folder that is not there has nothing in it.
                        Err(Error::NotFound { .. }) => Ok(Vec::new()),
                        Err(error) => Err(error),
                    }
                }
            }
        })
        .await
    }

    /// Reads an object, `None` when it is not there.
    pub(super) async fn read(&self, path: &Path) -> Result<Option<Seen>, LockError> {
        let what = format!("reading {path}");
        self.repeat(&what, || async {
            let result = match self.store.get(path).await {
                Ok(result) => result,
                Err(Error::NotFound { .. }) => return Ok(None),
                Err(error) => return Err(error),
            };
            let meta = result.meta.clone();
            let content = if meta.size <= CONTENT_MAX {
                result.bytes().await?
            } else {
                // No lock is that large: whatever this is, it cannot be read.
                Bytes::from_static(b"\0")
            };
            Ok(Some(Seen { meta, content }))
        })
        .await
    }

    /// Writes an object under a condition.
    pub(super) async fn put(&self, path: &Path, content: &[u8], mode: PutMode) -> Put {
        let what = format!("writing {path}");
        let deadline = Instant::now() + self.call_timeout;
        let mut backoff = self.backoff_min;
        // Once an attempt is in doubt, what comes later cannot make it certain
        // that nothing was written.
        let mut in_doubt = false;
        loop {
            let error = match self.put_once(path, content, mode.clone(), deadline).await {
                None => return Put::Doubtful(unanswered(&what)),
                Some(Ok(result)) => return Put::Done(result.into()),
                Some(Err(Error::AlreadyExists { .. } | Error::Precondition { .. })) => {
                    return Put::Refused;
                }
                // An update of what is not there.
                Some(Err(Error::NotFound { .. })) if matches!(mode, PutMode::Update(_)) => {
                    return Put::Refused;
                }
                Some(Err(error)) => error,
            };
            let kind = classify(&error);
            let error = failed(&what, error);
            if kind == LockErrorKind::Unsupported && !in_doubt {
                return Put::Unsupported(error);
            }
            in_doubt |= kind == LockErrorKind::Unreachable;
            if !is_transient(kind) || Instant::now() + backoff >= deadline {
                return match in_doubt {
                    true => Put::Doubtful(error),
                    false => Put::Failed(error),
                };
            }
            sleep(backoff).await;
            backoff *= 2;
        }
    }

    /// Writes once. A write that is not answered in time goes on by itself:
    /// cutting it off would not undo what it has done already.
    async fn put_once(
        &self,
        path: &Path,
        content: &[u8],
        mode: PutMode,
        deadline: Instant,
    ) -> Option<Result<PutResult, Error>> {
        let store = Arc::clone(&self.store);
        let payload = PutPayload::from(Bytes::copy_from_slice(content));
        let location = path.clone();
        let mut write: BoxFuture<'static, Result<PutResult, Error>> =
            Box::pin(async move { store.put_opts(&location, payload, mode.into()).await });
        if let Ok(result) = timeout_at(deadline, &mut write).await {
            return Some(result);
        }
        let rest = tokio::spawn(async move {
            drop(write.await);
        });
        self.late().push(rest);
        None
    }

    /// Waits for writes that were not answered in time, up to `budget`.
    pub(super) async fn settle_late(&self, budget: Duration) {
        let late = std::mem::take(&mut *self.late());
        let deadline = Instant::now() + budget;
        for mut write in late {
            if timeout_at(deadline, &mut write).await.is_err() {
                self.late().push(write);
            }
        }
    }

    fn late(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deletes an object once; it may be gone already.
    pub(super) async fn delete_once(&self, path: &Path) -> Result<(), LockError> {
        let what = format!("deleting {path}");
        match timeout(self.call_timeout, self.store.delete(path)).await {
            Ok(Ok(()) | Err(Error::NotFound { .. })) => Ok(()),
            Ok(Err(error)) => Err(failed(&what, error)),
            Err(_) => Err(unanswered(&what)),
        }
    }

    /// Deletes an object that nobody else can have made anew.
    pub(super) async fn delete_own(&self, path: &Path) -> Result<(), LockError> {
        let deadline = Instant::now() + self.call_timeout;
        let mut backoff = self.backoff_min;
        loop {
            let error = match self.delete_once(path).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            if !is_transient(error.kind()) || Instant::now() + backoff >= deadline {
                return Err(error);
            }
            sleep(backoff).await;
            backoff *= 2;
        }
    }

    /// Repeats a call that changes nothing until it comes through.
    async fn repeat<T, F>(&self, what: &str, call: impl Fn() -> F) -> Result<T, LockError>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let deadline = Instant::now() + self.call_timeout;
        let mut backoff = self.backoff_min;
        let mut last = None;
        loop {
            let error = match timeout_at(deadline, call()).await {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(error)) => failed(what, error),
                // What the storage said before tells more than its silence now.
                Err(_) => return Err(last.unwrap_or_else(|| unanswered(what))),
            };
            if !is_transient(error.kind()) || Instant::now() + backoff >= deadline {
                return Err(error);
            }
            last = Some(error);
            sleep(backoff).await;
            backoff *= 2;
        }
    }
}

async fn list_pages(pages: &Pages, prefix: &Path) -> Result<Vec<ObjectMeta>, Error> {
    let mut objects = Vec::new();
    let mut page_token = None;
    loop {
        let options = PaginatedListOptions {
            page_token,
            ..PaginatedListOptions::default()
        };
        let page = pages
            .0
            .list_paginated(Some(prefix.as_ref()), options)
            .await?;
        objects.extend(page.result.objects);
        page_token = page.page_token;
        if page_token.is_none() {
            return Ok(objects);
        }
    }
}
