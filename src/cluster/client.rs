use std::future::Future;

use super::{StreamAnswer, StreamRequest};
use crate::error::Failure;
use crate::range::KeyRange;
use crate::region::{Claim, ReadAnswer, ReadTarget, ScannedRegion, Store};

/// A way to talk to PD and to the stores of one cluster.
///
/// Every method is one call. An implementation follows PD's leader by itself
/// but neither repeats a failed call nor gives it a deadline: dropping the
/// future (or the stream of answers) is how the driver ends a call, so
/// everything here has to be safe to drop at any await.
pub trait ClusterClient: Send + Sync + 'static {
    /// The claims of a store, batch by batch.
    type Claims: Batches<Claim>;
    /// The answers to leader reads, batch by batch.
    type Reads: Batches<ReadAnswer>;
    /// The half of a prepare stream that sends.
    type Sender: PrepareSender;
    /// The half of a prepare stream that receives.
    type Receiver: PrepareReceiver;

    /// Lists all stores that PD knows, whatever their state, with their present
    /// addresses (`pdpb.PD/GetAllStores`).
    ///
    /// # Errors
    /// A [`Failure`] when PD's leader gave no usable answer.
    fn list_stores(&self) -> impl Future<Output = Result<Vec<Store>, Failure>> + Send;

    /// Returns at most `limit` regions that overlap `range`, in key order, as
    /// PD sees them (`pdpb.PD/ScanRegions` and its successor). May leave gaps.
    ///
    /// # Errors
    /// A [`Failure`] when PD's leader gave no usable answer.
    fn scan_regions(
        &self,
        range: KeyRange,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<ScannedRegion>, Failure>> + Send;

    /// Asks a store for the regions it believes to lead
    /// (`backup.Backup/CheckPendingAdminOp`). Takes no lease and disturbs
    /// nobody.
    ///
    /// # Errors
    /// A [`Failure`] when the call did not come about; one that ends the
    /// listing halfway comes from [`Batches::next`].
    fn list_claims(
        &self,
        store: &Store,
    ) -> impl Future<Output = Result<Self::Claims, Failure>> + Send;

    /// Sends one linearizable read per region to the peer on `store`, as
    /// leader: no replica read, no stale read, no data
    /// (`KvBatchGet` without keys, alone or many in a message of
    /// `tikvpb.Tikv/BatchCommands`). Answers come in any order, one per target; where one is missing the read counts as unanswered.
    ///
    /// # Errors
    /// A [`Failure`] when the call did not come about; later ones come from
    /// [`Batches::next`].
    fn leader_reads(
        &self,
        store: &Store,
        targets: Vec<ReadTarget>,
    ) -> impl Future<Output = Result<Self::Reads, Failure>> + Send;

    /// Opens a prepare stream on a store (`backup.Backup/PrepareSnapshotBackup`)
    /// and so ends the stream of whoever had one there. Returns when the
    /// connection stands and the call's headers are sent: a store sends its own
    /// headers only with its first answer.
    ///
    /// # Errors
    /// A [`Failure`] when the store cannot be dialled or refuses at once.
    fn open_stream(
        &self,
        store: &Store,
    ) -> impl Future<Output = Result<(Self::Sender, Self::Receiver), Failure>> + Send;
}

/// Answers that arrive in batches.
pub trait Batches<T>: Send + 'static {
    /// Returns the next batch (what has arrived, never empty), `None` at the
    /// end, or the failure that ended it; after that it is not called again.
    ///
    /// # Cancel safety
    /// Dropping the future loses no answer.
    fn next(&mut self) -> impl Future<Output = Option<Result<Vec<T>, Failure>>> + Send;
}

/// The half of a prepare stream that sends. The request side stays open until
/// it is dropped; dropping it early makes the store cancel the stream.
pub trait PrepareSender: Send + 'static {
    /// Hands a request to the stream, waiting while the transport is full. A
    /// request that is larger than the transport allows is split.
    ///
    /// # Errors
    /// A [`Failure`] when the stream is closed; the reason for the close comes
    /// from the receiving half.
    fn send(&mut self, request: StreamRequest) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// The half of a prepare stream that receives.
pub trait PrepareReceiver: Send + 'static {
    /// Returns what has arrived, in order and never empty, or how the stream
    /// ended: [`FailureKind::Finished`](crate::error::FailureKind::Finished)
    /// for a good end. After that it is not called again.
    ///
    /// # Errors
    /// The [`Failure`] that says how the stream ended.
    ///
    /// # Cancel safety
    /// Dropping the future loses no answer.
    fn next(&mut self) -> impl Future<Output = Result<Vec<StreamAnswer>, Failure>> + Send;
}
