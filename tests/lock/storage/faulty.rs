//! A storage that answers late, twice, not at all, or fails after having acted.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use snapshot_prepare::lock::LockConfig;
use snapshot_prepare::lock::storage::{StorageLock, StorageOptions, WallClock};
use tokio::time::{Instant, sleep};

use super::support::{PATH, names, with_options};

/// What a call meets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// It acts, and says that it failed.
    ActsAndFails,
    /// It acts, and never answers.
    ActsAndHangs,
    /// It acts and answers after a while.
    Late(Duration),
    /// It acts twice; the second answer counts.
    Twice,
    /// It fails without having acted.
    Fails,
    /// It is refused for too many calls.
    Busy,
    /// It is not allowed.
    Denied,
    /// What it is about is not there, it is told.
    Missing,
}

/// Says what the call with this name meets.
type Plan = Box<dyn FnMut(&str) -> Option<Fault> + Send>;

/// What the store does about the condition of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Conditions {
    Heeded,
    /// Taken, and not heeded.
    Ignored,
    /// It says that it has none.
    Refused,
    /// Creation is atomic, but nothing can be replaced under a condition.
    OnlyCreate,
}

/// A store in memory that has faults, and a clock that follows paused time.
pub(crate) struct Faulty {
    inner: InMemory,
    conditions: Conditions,
    pub(crate) clock: WallClock,
    written: Mutex<BTreeMap<Path, SystemTime>>,
    plan: Mutex<Plan>,
    pub(crate) calls: AtomicUsize,
}

impl Faulty {
    pub(crate) fn new(plan: impl FnMut(&str) -> Option<Fault> + Send + 'static) -> Arc<Self> {
        Self::with(Conditions::Heeded, plan)
    }

    pub(crate) fn with(
        conditions: Conditions,
        plan: impl FnMut(&str) -> Option<Fault> + Send + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            inner: InMemory::new(),
            conditions,
            clock: clock(),
            written: Mutex::default(),
            plan: Mutex::new(Box::new(plan)),
            calls: AtomicUsize::new(0),
        })
    }

    pub(crate) fn set(&self, plan: impl FnMut(&str) -> Option<Fault> + Send + 'static) {
        *self.plan.lock().expect("whole") = Box::new(plan);
    }

    async fn write(
        &self,
        at: &Path,
        payload: PutPayload,
        mut opts: PutOptions,
    ) -> Result<PutResult> {
        let is_update = matches!(opts.mode, PutMode::Update(_));
        match (&opts.mode, self.conditions) {
            (PutMode::Overwrite, _) | (_, Conditions::Heeded) => {}
            (PutMode::Create, Conditions::OnlyCreate) => {}
            (_, Conditions::Ignored) => opts.mode = PutMode::Overwrite,
            (_, Conditions::Refused | Conditions::OnlyCreate) => {
                return Err(Error::NotImplemented {
                    operation: format!("a condition, update: {is_update}"),
                    implementer: "Faulty".to_owned(),
                });
            }
        }
        let result = self.inner.put_opts(at, payload, opts).await?;
        let now = self.clock.now();
        self.written.lock().expect("whole").insert(at.clone(), now);
        Ok(result)
    }

    /// Puts the store's own time into what is told of an object.
    fn dated(&self, mut meta: ObjectMeta) -> ObjectMeta {
        if let Some(written) = self.written.lock().expect("whole").get(&meta.location) {
            meta.last_modified = (*written).into();
        }
        meta
    }

    /// Meets what the plan has for the call.
    async fn meet<T, F: Future<Output = Result<T>>>(
        &self,
        name: &str,
        call: impl Fn() -> F,
    ) -> Result<T> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let fault = (self.plan.lock().expect("whole"))(name);
        match fault {
            None => call().await,
            Some(Fault::ActsAndFails) => {
                let _ = call().await;
                Err(broken("500 Internal Server Error"))
            }
            Some(Fault::ActsAndHangs) => {
                let _ = call().await;
                std::future::pending().await
            }
            Some(Fault::Late(after)) => {
                sleep(after).await;
                call().await
            }
            Some(Fault::Twice) => {
                let _ = call().await;
                call().await
            }
            Some(Fault::Fails) => Err(broken("500 Internal Server Error")),
            Some(Fault::Busy) => Err(broken("429 Too Many Requests")),
            Some(Fault::Missing) => Err(Error::NotFound {
                path: name.to_owned(),
                source: "no".into(),
            }),
            Some(Fault::Denied) => Err(Error::PermissionDenied {
                path: name.to_owned(),
                source: "no".into(),
            }),
        }
    }
}

fn broken(status: &str) -> Error {
    Error::Generic {
        store: "Faulty",
        source: format!("Server returned non-2xx status code: {status}: ").into(),
    }
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

fn name_of(mode: &PutMode, at: &Path) -> String {
    let verb = match mode {
        PutMode::Create => "create",
        PutMode::Update(_) => "update",
        PutMode::Overwrite => "overwrite",
    };
    format!("{verb} {}", what_is(at))
}

fn what_is(at: &Path) -> &'static str {
    if at.as_ref().contains(".INTENT.") {
        "intent"
    } else {
        "lock"
    }
}

/// The faulty store as others hold it: a stream of deletes outlives the borrow.
#[derive(Clone, Debug)]
pub(crate) struct Shared(pub(crate) Arc<Faulty>);

impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

#[async_trait]
impl ObjectStore for Shared {
    async fn put_opts(
        &self,
        at: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        let store = &self.0;
        let name = name_of(&opts.mode, at);
        let write = || store.write(at, payload.clone(), opts.clone());
        store.meet(&name, write).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.0.inner.put_multipart_opts(at, opts).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        let store = &self.0;
        let get = || store.inner.get_opts(at, options.clone());
        let mut result = store.meet("read", get).await?;
        result.meta = store.dated(result.meta);
        Ok(result)
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let store = Arc::clone(&self.0);
        let delete = move |location: Result<Path>| {
            let store = Arc::clone(&store);
            async move {
                let location = location?;
                let delete = || async {
                    let one = futures_util::stream::iter([Ok(location.clone())]).boxed();
                    match store.inner.delete_stream(one).next().await {
                        Some(Err(error)) => Err(error),
                        _ => Ok(()),
                    }
                };
                let name = format!("delete {}", what_is(&location));
                store.meet(&name, delete).await?;
                Ok(location)
            }
        };
        locations.then(delete).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let store = &self.0;
        let list = || store.inner.list_with_delimiter(prefix);
        let mut result = store.meet("list", list).await?;
        let objects = std::mem::take(&mut result.objects);
        result.objects = objects.into_iter().map(|meta| store.dated(meta)).collect();
        Ok(result)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.0.inner.copy_opts(from, to, options).await
    }
}

/// The time of day on paused time.
pub(crate) fn clock() -> WallClock {
    let start = Instant::now();
    let begin = SystemTime::now();
    WallClock::new(move || begin + start.elapsed())
}

pub(crate) fn lock_on(store: &Arc<Faulty>, config: LockConfig) -> StorageLock {
    with_clock(store, config, store.clock.clone())
}

pub(crate) fn with_clock(store: &Arc<Faulty>, config: LockConfig, clock: WallClock) -> StorageLock {
    let mut options = StorageOptions::default();
    options.wall_clock = clock;
    with_options(
        &(Arc::new(Shared(Arc::clone(store))) as _),
        PATH,
        config,
        options,
    )
}

pub(crate) async fn all(store: &Arc<Faulty>) -> Vec<String> {
    names(&(Arc::new(Shared(Arc::clone(store))) as _)).await
}

/// The first call of this name meets the fault, the later ones do not.
pub(crate) fn once(name: &'static str, fault: Fault) -> impl FnMut(&str) -> Option<Fault> + Send {
    let mut left = Some(fault);
    move |call| if call == name { left.take() } else { None }
}
