//! All interleavings of two who want the lock, at the grain of single calls to
//! the storage: never two winners.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use super::attempt::{Attempt, Taken};
use super::family::{Family, LockMode};
use super::held::Held;
use super::metadata::Metadata;
use super::options::StorageOptions;
use super::shelf::{Put, Shelf};
use super::support::Support;
use super::txn_id::TxnId;
use crate::lock::{HeldLock, LockConfig};

/// A store on which each call takes a turn of the scheduler before it acts.
#[derive(Debug)]
struct Stepped(InMemory);

impl std::fmt::Display for Stepped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stepped")
    }
}

/// Waits for the next turn.
async fn turn() {
    let mut is_begun = false;
    std::future::poll_fn(|_| match std::mem::replace(&mut is_begun, true) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}

#[async_trait]
impl ObjectStore for Stepped {
    async fn put_opts(
        &self,
        at: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        turn().await;
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
        turn().await;
        self.0.get_opts(at, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let locations = locations.then(|location| async {
            turn().await;
            location
        });
        self.0.delete_stream(locations.boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        turn().await;
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.0.copy_opts(from, to, options).await
    }
}

/// How somebody takes the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Protocol {
    /// As we do.
    Ours,
    /// As we do on a store without atomic creation.
    OursBlind,
    /// Check, announce, check again, write blindly, withdraw.
    PutAndVerify,
    /// A flaw: without the second check.
    PutWithoutCheck,
    /// A flaw: create atomically and read back, announcing nothing.
    CreateOnly,
}

/// What all share.
struct Table {
    store: Arc<Stepped>,
    family: Family,
    config: LockConfig,
    options: StorageOptions,
    inside: Cell<usize>,
    worst: Cell<usize>,
    wins: Cell<usize>,
}

impl Table {
    fn new() -> Self {
        Self {
            store: Arc::new(Stepped(InMemory::new())),
            family: Family::new("truncating.lock", LockMode::Exclusive).expect("a path"),
            config: LockConfig::default(),
            options: StorageOptions {
                settle: Duration::ZERO,
                ..StorageOptions::default()
            },
            inside: Cell::new(0),
            worst: Cell::new(0),
            wins: Cell::new(0),
        }
    }

    fn shelf(&self) -> Arc<Shelf> {
        Arc::new(Shelf::new(self.store.clone(), None, &self.config))
    }

    /// One has the lock from here until the returned value is dropped.
    fn enter(&self) -> Inside<'_> {
        self.wins.set(self.wins.get() + 1);
        self.inside.set(self.inside.get() + 1);
        self.worst.set(self.worst.get().max(self.inside.get()));
        Inside(self)
    }

    async fn others(&self, shelf: &Shelf, own: &Path) -> bool {
        let list = shelf
            .list(self.family.folder(), &self.family.prefix())
            .await;
        let list = list.expect("memory does not fail");
        list.iter().any(|meta| meta.location != *own)
    }
}

struct Inside<'a>(&'a Table);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.set(self.0.inside.get() - 1);
    }
}

/// Tries to take the lock once; who gets it leaves after a turn, or never.
async fn contend(table: Rc<Table>, protocol: Protocol, number: u64, leaves: bool) {
    let txn = TxnId::parse(&format!("{number:032x}")).expect("hex");
    match protocol {
        Protocol::Ours => ours(&table, txn, true, leaves).await,
        Protocol::OursBlind => ours(&table, txn, false, leaves).await,
        Protocol::PutAndVerify => put_and_verify(&table, txn, true, leaves).await,
        Protocol::PutWithoutCheck => put_and_verify(&table, txn, false, leaves).await,
        Protocol::CreateOnly => create_only(&table, txn, leaves).await,
    }
}

async fn ours(table: &Table, txn: TxnId, can_create: bool, leaves: bool) {
    let shelf = table.shelf();
    let attempt = Attempt {
        shelf: &shelf,
        family: &table.family,
        config: &table.config,
        options: &table.options,
        support: &Support::known_to_create(can_create),
        txn,
    };
    let Ok(taken) = attempt.run().await else {
        return;
    };
    let inside = table.enter();
    turn().await;
    if leaves {
        drop(inside);
        let released = held(table, &shelf, txn, taken).release().await;
        assert!(released.expect("memory does not fail").is_clean());
    } else {
        std::mem::forget(inside);
    }
}

fn held(table: &Table, shelf: &Arc<Shelf>, txn: TxnId, taken: Taken) -> Held {
    Held {
        shelf: Arc::clone(shelf),
        family: table.family.clone(),
        options: table.options.clone(),
        txn,
        target: taken.target,
        metadata: taken.metadata,
        version: taken.version,
        lease: taken.lease,
        leftover: taken.leftover,
        release_timeout: table.config.release_timeout,
    }
}

async fn put_and_verify(table: &Table, txn: TxnId, checks: bool, leaves: bool) {
    let (shelf, target) = (table.shelf(), table.family.target(txn));
    let intent = table.family.intent(txn);
    if table.others(&shelf, &intent).await {
        return;
    }
    let store: &dyn ObjectStore = &*table.store;
    store
        .put(&intent, PutPayload::default())
        .await
        .expect("memory");
    if checks && table.others(&shelf, &intent).await {
        store.delete(&intent).await.expect("memory");
        return;
    }
    let content = Metadata::new(&table.config, txn, table.options.wall_clock.now()).to_json();
    store.put(&target, content.into()).await.expect("memory");
    store.delete(&intent).await.expect("memory");
    leave(table, &shelf, &target, txn, leaves).await;
}

async fn create_only(table: &Table, txn: TxnId, leaves: bool) {
    let (shelf, target) = (table.shelf(), table.family.target(txn));
    let content = Metadata::new(&table.config, txn, table.options.wall_clock.now()).to_json();
    if !matches!(
        shelf.put(&target, &content, PutMode::Create).await,
        Put::Done(_)
    ) {
        return;
    }
    let seen = shelf.read(&target).await.expect("memory").expect("there");
    if seen.content == content {
        leave(table, &shelf, &target, txn, leaves).await;
    }
}

/// Has the lock for a turn and removes it if it is still the own one.
async fn leave(table: &Table, shelf: &Shelf, target: &Path, txn: TxnId, leaves: bool) {
    let inside = table.enter();
    turn().await;
    if !leaves {
        std::mem::forget(inside);
        return;
    }
    drop(inside);
    if let Some(seen) = shelf.read(target).await.expect("memory")
        && Metadata::parse(&seen.content).is_ok_and(|seen| seen.txn_id == Some(txn))
    {
        shelf.delete_own(target).await.expect("memory");
    }
}

/// What all schedules showed.
#[derive(Debug, Default)]
struct Found {
    schedules: usize,
    /// The most who were inside at once.
    worst: usize,
    /// In how many schedules nobody, one, both won.
    wins: [usize; 3],
    /// What is left behind when all have left.
    leftover: usize,
}

type Contender = Pin<Box<dyn Future<Output = ()>>>;

/// Runs both by a schedule: at each point where both can go on, a choice. Beyond
/// its end the first goes on. Returns the choices that were made.
fn run(
    protocols: [Protocol; 2],
    leaves: bool,
    schedule: &[usize],
    found: &mut Found,
) -> Vec<usize> {
    let table = Rc::new(Table::new());
    let mut contenders: Vec<Option<Contender>> = (0..2)
        .map(|at| {
            let contender = contend(Rc::clone(&table), protocols[at], at as u64 + 1, leaves);
            Some(Box::pin(contender) as Contender)
        })
        .collect();
    let mut made = Vec::new();
    let mut context = Context::from_waker(Waker::noop());
    loop {
        let at = match (&contenders[0], &contenders[1]) {
            (None, None) => break,
            (Some(_), None) => 0,
            (None, Some(_)) => 1,
            (Some(_), Some(_)) => {
                let choice = schedule.get(made.len()).copied().unwrap_or(0);
                made.push(choice);
                choice
            }
        };
        if let Some(contender) = &mut contenders[at]
            && contender.as_mut().poll(&mut context).is_ready()
        {
            contenders[at] = None;
        }
    }
    found.schedules += 1;
    found.worst = found.worst.max(table.worst.get());
    found.wins[table.wins.get()] += 1;
    found.leftover += usize::from(leaves && !is_empty(&table));
    made
}

fn is_empty(table: &Table) -> bool {
    let mut list = table.store.0.list(None);
    let next = list.next();
    let mut context = Context::from_waker(Waker::noop());
    match Box::pin(next).as_mut().poll(&mut context) {
        Poll::Ready(next) => next.is_none(),
        Poll::Pending => panic!("memory does not wait"),
    }
}

/// Runs all schedules.
fn explore(protocols: [Protocol; 2], leaves: bool) -> Found {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let _entered = runtime.enter();
    let mut found = Found::default();
    let mut schedule = Vec::new();
    loop {
        let made = run(protocols, leaves, &schedule, &mut found);
        // The next one in the order of numbers: the last 0 becomes 1.
        let last = made.iter().rposition(|choice| *choice == 0);
        // Where both do the same, who begins makes no difference.
        let first = usize::from(protocols[0] == protocols[1]);
        let Some(last) = last.filter(|last| *last >= first) else {
            return found;
        };
        schedule = made[..last].to_vec();
        schedule.push(1);
    }
}

use Protocol::{CreateOnly, Ours, OursBlind, PutAndVerify, PutWithoutCheck};

#[test]
fn never_two_winners() {
    for protocols in [
        [Ours, Ours],
        [Ours, PutAndVerify],
        [OursBlind, OursBlind],
        [OursBlind, PutAndVerify],
        [Ours, OursBlind],
        [PutAndVerify, PutAndVerify],
    ] {
        let found = explore(protocols, false);
        println!("{protocols:?}: {found:?}");
        assert_eq!(found.worst, 1, "{protocols:?}: {found:?}");
        assert!(found.wins[1] > 0 && found.wins[2] == 0, "{found:?}");
        assert!(found.schedules > 100, "{found:?}");
    }
}

#[test]
fn who_leaves_lets_the_other_in_and_leaves_nothing() {
    for protocols in [[Ours, Ours], [Ours, PutAndVerify]] {
        let found = explore(protocols, true);
        println!("{protocols:?}: {found:?}");
        assert_eq!(found.worst, 1, "{protocols:?}: {found:?}");
        assert!(found.wins[2] > 0, "one after the other: {found:?}");
        assert_eq!(found.leftover, 0, "{found:?}");
    }
}

#[test]
fn flaws_are_found() {
    for protocols in [
        [PutWithoutCheck, PutWithoutCheck],
        [CreateOnly, PutAndVerify],
        [Ours, PutWithoutCheck],
    ] {
        let found = explore(protocols, false);
        println!("{protocols:?}: {found:?}");
        assert_eq!(found.worst, 2, "{protocols:?}: {found:?}");
    }
}
