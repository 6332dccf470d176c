use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;
use tonic::{Code, Request, Response, Status, Streaming};

use super::replies::Replies;
use super::socket::Breaker;
use super::{convert, region_error};
use crate::cluster::StreamRequest;
use crate::pb::backup::backup_server::Backup;
use crate::pb::backup::{
    CheckAdminRequest, CheckAdminResponse, PrepareSnapshotBackupEventType,
    PrepareSnapshotBackupRequest, PrepareSnapshotBackupRequestType, PrepareSnapshotBackupResponse,
};
use crate::pb::metapb;
use crate::region::StoreId;
use crate::sim::hub::{Call, Hub};
use crate::sim::model::{Answer, Request as Ask, StreamReply};

type Reader<T> = Box<dyn FnMut(Answer) -> Vec<T> + Send>;

/// The services of one store.
#[derive(Clone, Debug)]
pub(super) struct StoreService {
    pub(super) hub: Hub,
    pub(super) store: StoreId,
    pub(super) cluster_id: u64,
}

#[tonic::async_trait]
impl Backup for StoreService {
    type PrepareSnapshotBackupStream =
        Replies<PrepareSnapshotBackupResponse, Reader<PrepareSnapshotBackupResponse>>;
    type CheckPendingAdminOpStream = Replies<CheckAdminResponse, Reader<CheckAdminResponse>>;

    async fn prepare_snapshot_backup(
        &self,
        request: Request<Streaming<PrepareSnapshotBackupRequest>>,
    ) -> Result<Response<Self::PrepareSnapshotBackupStream>, Status> {
        let breaker = breaker_of(&request);
        let call = Call::new(&self.hub, Ask::OpenStream { store: self.store });
        let sent = Arc::new(Sent::default());
        let (opened, is_open) = oneshot::channel();
        // While the first answer is awaited requests have to come in already.
        let reader = read_requests(
            is_open,
            request.into_inner(),
            call.clone(),
            Arc::clone(&sent),
        );
        let reader = tokio::spawn(reader).abort_handle();
        let mut opened = Some(opened);
        let read: Reader<_> = Box::new(move |answer| match answer {
            Answer::Stream(reply) => vec![sent.reply(reply)],
            Answer::Opened => {
                // Nobody to tell when the reader is stopped already.
                let _ = opened.take().map(|opened| opened.send(()));
                Vec::new()
            }
            _ => Vec::new(),
        });
        Replies::new(call, breaker, Some(reader), read)
            .start()
            .await
    }

    async fn check_pending_admin_op(
        &self,
        request: Request<CheckAdminRequest>,
    ) -> Result<Response<Self::CheckPendingAdminOpStream>, Status> {
        let breaker = breaker_of(&request);
        let call = Call::new(&self.hub, Ask::ListClaims { store: self.store });
        let read: Reader<_> = Box::new(|answer| match answer {
            Answer::Claims(claims) => claims.iter().map(convert::claim).collect(),
            _ => Vec::new(),
        });
        Replies::new(call, breaker, None, read).start().await
    }
}

/// Returns what breaks the connection a request came on.
pub(super) fn breaker_of<T>(request: &Request<T>) -> Breaker {
    // It is always there, since all connections are ours.
    request
        .extensions()
        .get::<Breaker>()
        .cloned()
        .unwrap_or_default()
}

/// The regions of the waits of one stream that are not answered yet, as they
/// were sent, by their place among all.
#[derive(Debug, Default)]
struct Sent(Mutex<Regions>);

#[derive(Debug, Default)]
struct Regions {
    next: u64,
    waiting: BTreeMap<u64, metapb::Region>,
}

impl Sent {
    fn note(&self, regions: Vec<metapb::Region>) {
        let mut sent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for region in regions {
            let entry = sent.next;
            sent.next += 1;
            sent.waiting.insert(entry, region);
        }
    }

    fn take(&self, entry: u64) -> Option<metapb::Region> {
        let mut sent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sent.waiting.remove(&entry)
    }

    fn reply(&self, reply: StreamReply) -> PrepareSnapshotBackupResponse {
        match reply {
            StreamReply::LeaseUpdated {
                last_lease_is_valid,
            } => PrepareSnapshotBackupResponse {
                ty: PrepareSnapshotBackupEventType::UpdateLeaseResult.into(),
                last_lease_is_valid,
                ..PrepareSnapshotBackupResponse::default()
            },
            StreamReply::WaitApplyDone {
                entry,
                target,
                result,
            } => PrepareSnapshotBackupResponse {
                ty: PrepareSnapshotBackupEventType::WaitApplyDone.into(),
                region: Some(self.take(entry).unwrap_or_else(|| convert::target(target))),
                error: result.err().map(region_error::to_wire),
                last_lease_is_valid: false,
            },
        }
    }
}

/// Hands what the client sends on to the model, once the stream is open there:
/// on a real connection nothing overtakes the headers.
async fn read_requests(
    is_open: oneshot::Receiver<()>,
    mut requests: Streaming<PrepareSnapshotBackupRequest>,
    call: Call,
    sent: Arc<Sent>,
) {
    if is_open.await.is_err() {
        return;
    }
    loop {
        let ask = match requests.message().await {
            Ok(Some(request)) => match read_request(request, &sent) {
                Some(request) => Ask::StreamSend(request),
                None => Ask::StreamGarbage,
            },
            Ok(None) => Ask::HalfClose,
            Err(status) if is_unreadable(&status) => Ask::StreamGarbage,
            // The client is gone; the call is dropped with its answers.
            Err(_) => return,
        };
        let more = matches!(ask, Ask::StreamSend(_));
        if !call.send(ask) || !more {
            return;
        }
    }
}

/// Returns whether the status says that a message cannot be decoded.
fn is_unreadable(status: &Status) -> bool {
    use std::error::Error;
    // What the transport says has a cause.
    status.source().is_none()
        && matches!(
            status.code(),
            Code::Internal | Code::OutOfRange | Code::Unimplemented
        )
}

/// Returns `None` for a request of an unknown type.
fn read_request(request: PrepareSnapshotBackupRequest, sent: &Sent) -> Option<StreamRequest> {
    Some(
        match PrepareSnapshotBackupRequestType::try_from(request.ty).ok()? {
            PrepareSnapshotBackupRequestType::UpdateLease => StreamRequest::UpdateLease {
                seconds: request.lease_in_seconds,
            },
            PrepareSnapshotBackupRequestType::WaitApply => {
                let regions = request.regions.iter().map(convert::read_target).collect();
                sent.note(request.regions);
                StreamRequest::WaitApply { regions }
            }
            PrepareSnapshotBackupRequestType::Finish => StreamRequest::Finish,
        },
    )
}
