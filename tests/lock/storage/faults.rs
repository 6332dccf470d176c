//! Storage that answers late, twice, not at all, or fails after having acted.

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
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use snapshot_prepare::lock::storage::{StorageLock, StorageOptions, WallClock};
use snapshot_prepare::lock::{HolderKind, LockConfig, LockErrorKind, LockGuard, Release, RunLock};
use tokio::time::{Instant, sleep};

use super::contend::contend;
use super::support::{PATH, config, names, read, with_options, write};

/// What a call meets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
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
}

/// Says what the call with this name meets.
type Plan = Box<dyn FnMut(&str) -> Option<Fault> + Send>;

/// What the store does about the condition of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Conditions {
    Heeded,
    /// Taken, and not heeded.
    Ignored,
    /// It says that it has none.
    Refused,
    /// Creation is atomic, but nothing can be replaced under a condition.
    OnlyCreate,
}

/// A store in memory that has faults, and a clock that follows paused time.
struct Faulty {
    inner: InMemory,
    conditions: Conditions,
    clock: WallClock,
    written: Mutex<BTreeMap<Path, SystemTime>>,
    plan: Mutex<Plan>,
    calls: AtomicUsize,
}

impl Faulty {
    fn new(plan: impl FnMut(&str) -> Option<Fault> + Send + 'static) -> Arc<Self> {
        Self::with(Conditions::Heeded, plan)
    }

    fn with(
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

    fn set(&self, plan: impl FnMut(&str) -> Option<Fault> + Send + 'static) {
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
                    implementer: self.to_string(),
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

impl fmt::Display for Faulty {
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
    let what = if at.as_ref().contains(".INTENT.") {
        "intent"
    } else {
        "lock"
    };
    format!("{verb} {what}")
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(
        &self,
        at: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        let name = name_of(&opts.mode, at);
        self.meet(&name, || self.write(at, payload.clone(), opts.clone()))
            .await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(at, opts).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        let get = || self.inner.get_opts(at, options.clone());
        let mut result = self.meet("read", get).await?;
        result.meta = self.dated(result.meta);
        Ok(result)
    }

    fn delete_stream(
        &self,
        _locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        unreachable!("see the wrapper")
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let list = || self.inner.list_with_delimiter(prefix);
        let mut result = self.meet("list", list).await?;
        let objects = std::mem::take(&mut result.objects);
        result.objects = objects.into_iter().map(|meta| self.dated(meta)).collect();
        Ok(result)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// The faulty store as others hold it: a stream of deletes outlives the borrow.
#[derive(Clone, Debug)]
struct Shared(Arc<Faulty>);

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
        self.0.put_opts(at, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(at, opts).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        self.0.get_opts(at, options).await
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
                let what = if location.as_ref().contains(".INTENT.") {
                    "intent"
                } else {
                    "lock"
                };
                let delete = || async {
                    let one = futures_util::stream::iter([Ok(location.clone())]).boxed();
                    match store.inner.delete_stream(one).next().await {
                        Some(Err(error)) => Err(error),
                        _ => Ok(()),
                    }
                };
                store.meet(&format!("delete {what}"), delete).await?;
                Ok(location)
            }
        };
        locations.then(delete).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.0.copy_opts(from, to, options).await
    }
}

/// The time of day on paused time.
fn clock() -> WallClock {
    let start = Instant::now();
    let begin = SystemTime::now();
    WallClock::new(move || begin + start.elapsed())
}

fn lock_on(store: &Arc<Faulty>, config: LockConfig) -> StorageLock {
    with_clock(store, config, store.clock.clone())
}

fn with_clock(store: &Arc<Faulty>, config: LockConfig, clock: WallClock) -> StorageLock {
    let mut options = StorageOptions::default();
    options.wall_clock = clock;
    with_options(
        &(Arc::new(Shared(Arc::clone(store))) as _),
        PATH,
        config,
        options,
    )
}

async fn all(store: &Arc<Faulty>) -> Vec<String> {
    names(&(Arc::new(Shared(Arc::clone(store))) as _)).await
}

/// The first call of this name meets the fault, the later ones do not.
fn once(name: &'static str, fault: Fault) -> impl FnMut(&str) -> Option<Fault> + Send {
    let mut left = Some(fault);
    move |call| if call == name { left.take() } else { None }
}

const CALLS: [&str; 6] = [
    "list",
    "read",
    "create intent",
    "create lock",
    "delete intent",
    "delete lock",
];

#[tokio::test(start_paused = true)]
async fn one_fault_anywhere_is_survived() {
    for ttl in [None, Some(Duration::from_secs(30))] {
        for call in CALLS.into_iter().chain(["update intent", "update lock"]) {
            for fault in [
                Fault::ActsAndFails,
                Fault::Late(Duration::from_secs(2)),
                Fault::Fails,
                Fault::Busy,
            ] {
                let store = Faulty::new(once(call, fault));
                let mut config = config();
                config.ttl = ttl;
                let lock = lock_on(&store, config);
                let case = format!("{call}, {fault:?}, {ttl:?}");
                let guard = lock.acquire(Duration::ZERO).await;
                let guard = guard.unwrap_or_else(|error| panic!("{case}: {error}"));
                sleep(Duration::from_secs(25)).await;
                guard
                    .ensure_held()
                    .unwrap_or_else(|error| panic!("{case}: {error}"));
                let release = guard.release().await;
                let release = release.unwrap_or_else(|error| panic!("{case}: {error}"));
                assert_eq!(release, Release::Released, "{case}");
                assert_eq!(all(&store).await, [] as [&str; 0], "{case}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_acts_twice_is_survived() {
    for call in CALLS {
        let store = Faulty::new(once(call, Fault::Twice));
        let lock = lock_on(&store, config());
        let guard = lock.acquire(Duration::ZERO).await.expect(call);
        assert!(guard.release().await.expect(call).is_clean());
        assert_eq!(all(&store).await, [] as [&str; 0], "{call}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_allowed_is_said_at_once_and_leaves_nothing() {
    for call in ["list", "create intent", "create lock"] {
        let store = Faulty::new(move |name| (name == call).then_some(Fault::Denied));
        let begun = Instant::now();
        let error = lock_on(&store, config())
            .acquire(Duration::from_secs(3600))
            .await
            .expect_err(call);
        assert_eq!(error.kind(), LockErrorKind::Permission, "{call}: {error}");
        assert!(begun.elapsed() < Duration::from_secs(1), "{call}");
        assert_eq!(all(&store).await, [] as [&str; 0], "{call}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_busy_storage_is_no_conflict() {
    let store = Faulty::new(|_| Some(Fault::Busy));
    let lock = lock_on(&store, config());
    let error = lock.acquire(Duration::ZERO).await.expect_err("busy");
    assert_eq!(error.kind(), LockErrorKind::Throttled, "{error}");
    assert!(store.calls.load(Ordering::Relaxed) > 3, "it is asked again");
    // Free again within the wait.
    let (start, until) = (Instant::now(), Duration::from_secs(60));
    store.set(move |_| (start.elapsed() < until).then_some(Fault::Busy));
    let guard = lock
        .acquire(Duration::from_secs(120))
        .await
        .expect("it is free");
    assert!(guard.release().await.expect("removed").is_clean());
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_lands_after_we_gave_up_is_removed() {
    // Answered 15 s later: after the call's own 10 s, within those of the clean-up.
    let store = Faulty::new(once("create lock", Fault::Late(Duration::from_secs(15))));
    let mut config = config();
    config.call_timeout = Duration::from_secs(2);
    config.release_timeout = Duration::from_secs(20);
    let error = lock_on(&store, config)
        .acquire(Duration::ZERO)
        .await
        .expect_err("no answer");
    assert_eq!(error.kind(), LockErrorKind::Unreachable, "{error}");
    sleep(Duration::from_secs(60)).await;
    assert_eq!(all(&store).await, [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_lock_whose_answer_is_lost_is_found_by_reading_back() {
    let store = Faulty::new(once("create lock", Fault::ActsAndHangs));
    let guard = lock_on(&store, config())
        .acquire(Duration::ZERO)
        .await
        .expect("it is ours");
    assert_eq!(all(&store).await, [PATH]);
    assert!(guard.release().await.expect("removed").is_clean());
}

#[tokio::test(start_paused = true)]
async fn an_outage_shorter_than_the_lease_is_survived_and_a_longer_one_is_not() {
    for (outage, survives) in [(12, true), (60, false)] {
        let store = Faulty::new(|_| None);
        let mut config = config();
        config.ttl = Some(Duration::from_secs(30));
        let lock = lock_on(&store, config);
        let guard = lock.acquire(Duration::ZERO).await.expect("free");
        let (start, outage) = (Instant::now(), Duration::from_secs(outage));
        store.set(move |_| (start.elapsed() < outage).then_some(Fault::Fails));
        sleep(Duration::from_secs(70)).await;
        assert_eq!(guard.ensure_held().is_ok(), survives);
        let release = guard.release().await.expect("it is back");
        let expected = if survives {
            Release::Released
        } else {
            Release::Lapsed
        };
        assert_eq!(release, expected);
        assert_eq!(all(&store).await, [] as [&str; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_during_an_outage_ends_in_time_and_says_so() {
    let store = Faulty::new(|_| None);
    let guard = lock_on(&store, config())
        .acquire(Duration::ZERO)
        .await
        .expect("free");
    store.set(|_| Some(Fault::ActsAndHangs));
    let begun = Instant::now();
    let error = guard.release().await.expect_err("no answer");
    assert_eq!(error.kind(), LockErrorKind::Unreachable);
    assert!(
        begun.elapsed() <= Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_lands_after_the_release_brings_nothing_back() {
    let store = Faulty::new(|_| None);
    let mut config = config();
    config.ttl = Some(Duration::from_secs(30));
    let guard = lock_on(&store, config)
        .acquire(Duration::ZERO)
        .await
        .expect("free");
    store.set(once("update lock", Fault::Late(Duration::from_secs(60))));
    sleep(Duration::from_millis(10_500)).await;
    assert!(guard.release().await.expect("removed").is_clean());
    sleep(Duration::from_secs(120)).await;
    assert_eq!(all(&store).await, [] as [&str; 0]);
}

fn leased() -> LockConfig {
    let mut config = config();
    config.ttl = Some(Duration::from_secs(30));
    config
}

/// Takes a lock of 30 s at which no renewal arrives, and returns its id. Its
/// holder thinks that it has it until its own clock says otherwise.
async fn abandoned(store: &Arc<Faulty>, clock: WallClock) -> LockGuard {
    let lock = with_clock(store, leased(), clock);
    let guard = lock.acquire(Duration::ZERO).await.expect("free");
    store.set(|name| (name == "update lock").then_some(Fault::Fails));
    guard.lost().await;
    store.set(|_| None);
    guard
}

#[tokio::test(start_paused = true)]
async fn an_expired_lock_is_taken_over_after_the_grace_and_not_before() {
    let store = Faulty::new(|_| None);
    let guard = abandoned(&store, store.clock.clone()).await;
    let lock = lock_on(&store, leased());
    // It was lost at 28 s by its holder; it ends at 30 s, and the grace at 60 s.
    sleep(Duration::from_secs(31)).await;
    let error = lock.acquire(Duration::ZERO).await.expect_err("59 s");
    assert_eq!(error.kind(), LockErrorKind::Held);
    assert_eq!(error.holders().listed[0].id, guard.id());
    sleep(Duration::from_secs(2)).await;
    let next = lock.acquire(Duration::ZERO).await.expect("61 s");
    assert_ne!(next.id(), guard.id());
    assert_eq!(all(&store).await, [PATH]);
    match guard.release().await.expect("it answers") {
        Release::TakenOver(holder) => assert_eq!(holder.id, next.id()),
        release => panic!("{release}"),
    }
    next.ensure_held().expect("left alone");
    assert!(next.release().await.expect("removed").is_clean());
    assert_eq!(all(&store).await, [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_lock_without_end_can_take_over_an_expired_one() {
    let store = Faulty::new(|_| None);
    let guard = abandoned(&store, store.clock.clone()).await;
    sleep(Duration::from_secs(60)).await;
    let next = lock_on(&store, config())
        .acquire(Duration::ZERO)
        .await
        .expect("expired");
    assert!(!next.expires());
    assert!(matches!(guard.release().await, Ok(Release::TakenOver(_))));
    assert!(next.release().await.expect("removed").is_clean());
}

#[tokio::test(start_paused = true)]
async fn clocks_that_differ_take_over_no_lock_that_lives() {
    let hours = Duration::from_secs(5 * 3600);
    let store = Faulty::new(|_| None);
    let base = store.clock.clone();
    let ahead = {
        let base = base.clone();
        WallClock::new(move || base.now() + hours)
    };
    let behind = WallClock::new(move || base.now() - hours);
    // The holder's clock is behind, and the other's ahead.
    let guard = with_clock(&store, leased(), behind)
        .acquire(Duration::ZERO)
        .await
        .expect("free");
    let other = with_clock(&store, leased(), ahead);
    let error = other
        .acquire(Duration::from_secs(600))
        .await
        .expect_err("it lives");
    assert_eq!(error.holders().listed[0].id, guard.id());
    guard.ensure_held().expect("it was renewed all the time");
    assert!(guard.release().await.expect("removed").is_clean());
}

#[tokio::test(start_paused = true)]
async fn an_announcement_of_somebody_gone_does_not_stay_for_ever() {
    let store = Faulty::new(|_| None);
    let lock = lock_on(&store, config());
    // It announces, and is gone: nothing reaches the storage any more.
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    store.set(move |name| {
        let is_gone = counted.load(Ordering::Relaxed) > 0;
        counted.fetch_add(usize::from(name == "create intent"), Ordering::Relaxed);
        is_gone.then_some(Fault::Fails)
    });
    lock.acquire(Duration::ZERO).await.expect_err("cut off");
    assert_eq!(all(&store).await.len(), 1, "its announcement");
    store.set(|_| None);
    let other = lock_on(&store, config());
    let error = other
        .acquire(Duration::from_secs(60))
        .await
        .expect_err("it may come back");
    assert_eq!(error.holders().listed[0].kind, HolderKind::Intent);
    let guard = other
        .acquire(Duration::from_secs(600))
        .await
        .expect("it did not");
    assert_eq!(all(&store).await, [PATH]);
    assert!(guard.release().await.expect("removed").is_clean());
}

#[tokio::test(start_paused = true)]
async fn a_store_without_conditions_excludes_by_announcements_and_has_no_lease() {
    for conditions in [
        Conditions::Ignored,
        Conditions::Refused,
        Conditions::OnlyCreate,
    ] {
        let store = Faulty::with(conditions, |_| None);
        let lock = lock_on(&store, leased());
        let guard = lock.acquire(Duration::ZERO).await.expect("free");
        assert!(!guard.expires(), "{conditions:?}");
        let error = lock.acquire(Duration::ZERO).await.expect_err("held");
        assert_eq!(error.kind(), LockErrorKind::Held);
        assert!(guard.release().await.expect("removed").is_clean());
        let contenders: Arc<dyn ObjectStore> = Arc::new(Shared(Arc::clone(&store)));
        contend(&contenders, config(), 5, 50).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_expired_lock_that_cannot_be_replaced_stays() {
    let store = Faulty::new(|_| None);
    let guard = abandoned(&store, store.clock.clone()).await;
    let shared: Arc<dyn ObjectStore> = Arc::new(Shared(Arc::clone(&store)));
    let content = read(&shared, PATH).await.expect("there");
    let plain = Faulty::with(Conditions::OnlyCreate, |_| None);
    let shared: Arc<dyn ObjectStore> = Arc::new(Shared(Arc::clone(&plain)));
    write(&shared, PATH, &content).await;
    sleep(Duration::from_secs(3600)).await;
    let lock = lock_on(&plain, config());
    let error = lock
        .acquire(Duration::ZERO)
        .await
        .expect_err("it cannot be replaced");
    assert_eq!(error.kind(), LockErrorKind::Held, "{error}");
    assert_eq!(all(&plain).await, [PATH]);
    lock.break_lock(guard.id()).await.expect("the way out");
    let next = lock.acquire(Duration::ZERO).await.expect("free");
    assert!(next.release().await.expect("removed").is_clean());
}

/// Contenders on a storage with faults at random: never two holders.
#[tokio::test(start_paused = true)]
async fn faults_at_random_never_let_two_in() {
    let mut taken = 0;
    for seed in 0..40_u64 {
        println!("seed {seed}: replay with 0..40 replaced by {seed}..={seed}");
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let store = Faulty::new(move |_| match random.random_range(0..60) {
            0 => Some(Fault::ActsAndFails),
            1 => Some(Fault::ActsAndHangs),
            2 => Some(Fault::Late(Duration::from_millis(
                random.random_range(1..20_000),
            ))),
            3 => Some(Fault::Fails),
            4 => Some(Fault::Busy),
            _ => None,
        });
        let inside = Arc::new(AtomicUsize::new(0));
        let tasks: Vec<_> = (0..4)
            .map(|number| {
                let mut config = config();
                config.seed = Some(seed * 100 + number);
                config.ttl = (seed % 2 == 0).then_some(Duration::from_secs(30));
                let (lock, inside) = (lock_on(&store, config), Arc::clone(&inside));
                tokio::spawn(async move {
                    let mut taken = 0;
                    for _ in 0..5 {
                        let Ok(guard) = lock.acquire(Duration::from_secs(300)).await else {
                            continue;
                        };
                        let before = inside.fetch_add(1, Ordering::SeqCst);
                        tokio::task::yield_now().await;
                        let is_held = guard.ensure_held().is_ok();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        assert!(before == 0 || !is_held, "seed {seed}: two hold it");
                        drop(guard.release().await);
                        taken += 1;
                    }
                    taken
                })
            })
            .collect();
        for task in tasks {
            taken += task.await.unwrap_or_else(|_| panic!("seed {seed}"));
        }
    }
    println!("taken {taken} times");
    assert!(taken > 400, "the lock was taken {taken} times only");
}
