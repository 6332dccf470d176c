use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use futures_util::future::ready;
use futures_util::stream::{self, BoxStream, Stream, StreamExt};
use snapshot_prepare::pb::backup::backup_server::{Backup, BackupServer};
use snapshot_prepare::pb::backup::{
    CheckAdminRequest, CheckAdminResponse, PrepareSnapshotBackupEventType,
    PrepareSnapshotBackupRequest, PrepareSnapshotBackupRequestType, PrepareSnapshotBackupResponse,
};
use snapshot_prepare::pb::kvrpcpb::{
    BatchGetRequest, BatchGetResponse, Context, KeyError, KvPair, RawBatchGetRequest,
    RawBatchGetResponse,
};
use snapshot_prepare::pb::tikvpb::batch_commands_request::{Request as Command, request};
use snapshot_prepare::pb::tikvpb::batch_commands_response::{Response as Reply, response};
use snapshot_prepare::pb::tikvpb::tikv_server::{Tikv, TikvServer};
use snapshot_prepare::pb::tikvpb::{BatchCommandsRequest, BatchCommandsResponse};
use snapshot_prepare::pb::{errorpb, metapb};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Server, ServerTlsConfig};
use tonic::{Code, Request, Response, Status, Streaming};

use super::support::{Host, listen};

/// How the store stores, as far as reads without keys show it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Storage {
    #[default]
    V1,
    V1Ttl,
    V2,
    /// Refuses both kinds of read.
    Neither,
}

/// What the store makes of many reads in a message.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum Messages {
    #[default]
    Served,
    /// Ended at once with this code.
    Refused(Code),
    /// Never answered.
    Swallowed,
    /// Each answered as a command that is not known.
    Unknown,
    /// Answered, save that of this region.
    Without(u64),
    /// Answered one and cut off.
    CutAfterOne,
    /// Ended well without an answer.
    Ended,
    /// Answered twice, with numbers that were never sent and ones that have no
    /// answer between.
    Muddled,
}

#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) storage: Storage,
    pub(crate) messages: Messages,
    /// How many commands each message held.
    pub(crate) message_sizes: Vec<usize>,
    /// Regions whose reads are never answered.
    pub(crate) hanging: Vec<u64>,
    /// Regions of which the store is not the leader.
    pub(crate) followed: Vec<u64>,
    /// Why the waits for one region are refused; those for others are confirmed.
    pub(crate) refused_wait: Option<(u64, errorpb::Error)>,
    /// What listings answer, or why not.
    pub(crate) claims: Vec<CheckAdminResponse>,
    pub(crate) listing_fails: Option<Status>,
    pub(crate) listing_ends_in: Option<Status>,
    pub(crate) reads: Vec<(Context, u64, bool)>,
    pub(crate) keys_seen: usize,
    pub(crate) now: usize,
    pub(crate) most_at_once: usize,
    pub(crate) listings: usize,
}

/// A store: listings, reads, and prepare streams. It lets anybody lease it and
/// suspends nothing.
#[derive(Clone)]
pub(crate) struct FakeStore {
    pub(crate) address: SocketAddr,
    script: Arc<Mutex<Script>>,
    host: Arc<tokio::sync::Mutex<Host>>,
    /// While false, reads wait.
    pub(crate) gate: Arc<watch::Sender<bool>>,
}

impl FakeStore {
    pub(crate) async fn start() -> Self {
        let (listener, _) = listen().await;
        Self::start_on(listener, None)
    }

    pub(crate) async fn start_with(tls: ServerTlsConfig) -> Self {
        let (listener, _) = listen().await;
        Self::start_on(listener, Some(tls))
    }

    pub(crate) fn start_on(listener: TcpListener, tls: Option<ServerTlsConfig>) -> Self {
        let address = listener.local_addr().expect("bound");
        let script = Arc::new(Mutex::new(Script::default()));
        let gate = Arc::new(watch::Sender::new(true));
        let service = Service {
            script: script.clone(),
            gate: gate.clone(),
        };
        let mut server = Server::builder();
        if let Some(tls) = tls {
            server = server.tls_config(tls).expect("sound TLS");
        }
        let router = server
            .add_service(BackupServer::new(service.clone()))
            .add_service(TikvServer::new(service));
        let host = Host::start(listener, |listener| async move {
            let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
            router.serve_with_incoming(incoming).await.expect("serving");
        });
        Self {
            address,
            script,
            host: Arc::new(tokio::sync::Mutex::new(host)),
            gate,
        }
    }

    pub(crate) fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().expect("no panic before")
    }

    pub(crate) async fn stop(&self) {
        self.host.lock().await.stop().await;
    }
}

/// A claim of a region that spans `[id, id + 1)` in decimal digits.
pub(crate) fn claim(id: u64) -> CheckAdminResponse {
    CheckAdminResponse {
        error: None,
        region: Some(metapb::Region {
            id,
            start_key: format!("{id:020}").into(),
            end_key: format!("{:020}", id + 1).into(),
            region_epoch: Some(metapb::RegionEpoch {
                conf_ver: 1,
                version: 2,
            }),
            peers: vec![metapb::Peer {
                id: id + 1000,
                store_id: 1,
                role: metapb::PeerRole::IncomingVoter.into(),
                is_witness: false,
            }],
        }),
        has_pending_admin: id % 2 == 1,
    }
}

#[derive(Clone)]
struct Service {
    script: Arc<Mutex<Script>>,
    gate: Arc<watch::Sender<bool>>,
}

impl Service {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().expect("no panic before")
    }

    async fn read(&self, context: Context, version: u64, raw: bool, keys: usize) -> Read {
        let region_id = context.region_id;
        let (storage, followed, hanging) = {
            let mut script = self.script();
            script.reads.push((context, version, raw));
            script.keys_seen += keys;
            script.now += 1;
            script.most_at_once = script.most_at_once.max(script.now);
            (
                script.storage,
                script.followed.contains(&region_id),
                script.hanging.contains(&region_id),
            )
        };
        let mut gate = self.gate.subscribe();
        gate.wait_for(|open| *open).await.expect("the gate stands");
        if hanging {
            std::future::pending::<()>().await;
        }
        self.script().now -= 1;
        let refused = match storage {
            Storage::V1 => false,
            Storage::V1Ttl => !raw,
            Storage::V2 => raw,
            Storage::Neither => true,
        };
        if refused {
            Read::WrongApiVersion
        } else if followed {
            Read::NotLeader(Box::new(errorpb::Error {
                message: "not leader".to_owned(),
                not_leader: Some(errorpb::NotLeader {
                    region_id,
                    leader: None,
                }),
                ..errorpb::Error::default()
            }))
        } else {
            Read::Served
        }
    }
}

enum Read {
    Served,
    NotLeader(Box<errorpb::Error>),
    WrongApiVersion,
}

fn api_version_error() -> KeyError {
    KeyError {
        abort: "Error(ApiVersionNotMatched { storage_api_version: V2, req_api_version: V1 })"
            .to_owned(),
        ..KeyError::default()
    }
}

fn error_pair() -> KvPair {
    KvPair {
        error: Some(api_version_error()),
        ..KvPair::default()
    }
}

fn kv_answer(read: Read) -> BatchGetResponse {
    let mut answer = BatchGetResponse::default();
    match read {
        Read::Served => {}
        Read::NotLeader(error) => answer.region_error = Some(*error),
        Read::WrongApiVersion => {
            answer.error = Some(api_version_error());
            answer.pairs = vec![error_pair()];
        }
    }
    answer
}

fn raw_answer(read: Read) -> RawBatchGetResponse {
    let mut answer = RawBatchGetResponse::default();
    match read {
        Read::Served => {}
        Read::NotLeader(error) => answer.region_error = Some(*error),
        Read::WrongApiVersion => answer.pairs = vec![error_pair()],
    }
    answer
}

impl Service {
    async fn command(self, id: u64, command: Command) -> (u64, Reply) {
        let cmd = match command.cmd.expect("a read") {
            request::Cmd::BatchGet(get) => {
                let context = get.context.unwrap_or_default();
                let read = self.read(context, get.version, false, get.keys.len());
                response::Cmd::BatchGet(kv_answer(read.await))
            }
            request::Cmd::RawBatchGet(get) => {
                let context = get.context.unwrap_or_default();
                let read = self.read(context, 0, true, get.keys.len());
                response::Cmd::RawBatchGet(raw_answer(read.await))
            }
        };
        (id, Reply { cmd: Some(cmd) })
    }

    /// The commands of a call as they come, each to be answered.
    fn commands(
        &self,
        requests: Streaming<BatchCommandsRequest>,
    ) -> impl Stream<Item = (u64, Command)> + Send + 'static {
        let service = self.clone();
        requests.flat_map(move |message| {
            // A client that went away sends no more.
            let message = message.unwrap_or_default();
            service.script().message_sizes.push(message.requests.len());
            stream::iter(message.request_ids.into_iter().zip(message.requests))
        })
    }
}

fn one((id, reply): (u64, Reply)) -> BatchCommandsResponse {
    BatchCommandsResponse {
        responses: vec![reply],
        request_ids: vec![id],
    }
}

fn region_of(command: &Command) -> u64 {
    let context = match command.cmd.as_ref().expect("a read") {
        request::Cmd::BatchGet(get) => &get.context,
        request::Cmd::RawBatchGet(get) => &get.context,
    };
    context.as_ref().expect("a context").region_id
}

#[tonic::async_trait]
impl Tikv for Service {
    type BatchCommandsStream = BoxStream<'static, Result<BatchCommandsResponse, Status>>;

    async fn batch_commands(
        &self,
        request: Request<Streaming<BatchCommandsRequest>>,
    ) -> Result<Response<Self::BatchCommandsStream>, Status> {
        let messages = self.script().messages.clone();
        let without = match messages {
            Messages::Without(region) => Some(region),
            _ => None,
        };
        let commands = self.commands(request.into_inner());
        let service = self.clone();
        let replies = commands
            .filter(move |(_, command)| ready(Some(region_of(command)) != without))
            .map(move |(id, command)| service.clone().command(id, command))
            .buffer_unordered(1 << 20)
            .map(|reply| Ok(one(reply)));
        let answers = match messages {
            Messages::Served | Messages::Without(_) => replies.boxed(),
            Messages::Refused(code) => return Err(Status::new(code, "not here")),
            Messages::Swallowed => std::future::pending().await,
            Messages::Unknown => replies
                .map(|reply: Result<BatchCommandsResponse, _>| {
                    reply.map(|mut reply| {
                        reply.responses[0].cmd = None;
                        reply
                    })
                })
                .boxed(),
            Messages::Ended => stream::empty().boxed(),
            Messages::Muddled => replies
                .map(|reply: Result<BatchCommandsResponse, _>| {
                    reply.map(|mut reply| {
                        let again = [reply.responses[0].clone(), reply.responses[0].clone()];
                        reply.responses.extend(again);
                        let id = reply.request_ids[0];
                        reply.request_ids.extend([id, u64::MAX, id + 1]);
                        reply
                    })
                })
                .boxed(),
            Messages::CutAfterOne => replies
                .take(1)
                .chain(stream::iter([Err(Status::internal("cut"))]))
                .boxed(),
        };
        Ok(Response::new(answers))
    }

    async fn kv_batch_get(
        &self,
        request: Request<BatchGetRequest>,
    ) -> Result<Response<BatchGetResponse>, Status> {
        let request = request.into_inner();
        let context = request.context.unwrap_or_default();
        let read = self.read(context, request.version, false, request.keys.len());
        Ok(Response::new(kv_answer(read.await)))
    }

    async fn raw_batch_get(
        &self,
        request: Request<RawBatchGetRequest>,
    ) -> Result<Response<RawBatchGetResponse>, Status> {
        let request = request.into_inner();
        let context = request.context.unwrap_or_default();
        let read = self.read(context, 0, true, request.keys.len());
        Ok(Response::new(raw_answer(read.await)))
    }
}

/// Returns the answers to one request of a stream; `None` ends it.
fn answer_stream(
    request: &PrepareSnapshotBackupRequest,
    refused: Option<&(u64, errorpb::Error)>,
    is_leased: &mut bool,
) -> Vec<Option<Result<PrepareSnapshotBackupResponse, Status>>> {
    if request.ty() != PrepareSnapshotBackupRequestType::WaitApply {
        let last_lease_is_valid = std::mem::replace(is_leased, true);
        let mut answers = vec![Some(Ok(PrepareSnapshotBackupResponse {
            ty: PrepareSnapshotBackupEventType::UpdateLeaseResult.into(),
            last_lease_is_valid,
            ..PrepareSnapshotBackupResponse::default()
        }))];
        if request.ty() == PrepareSnapshotBackupRequestType::Finish {
            answers.push(None);
        }
        return answers;
    }
    let regions = request.regions.iter();
    regions
        .map(|region| {
            let refused = refused.filter(|(id, _)| *id == region.id);
            Some(Ok(PrepareSnapshotBackupResponse {
                ty: PrepareSnapshotBackupEventType::WaitApplyDone.into(),
                region: Some(region.clone()),
                error: refused.map(|(_, error)| error.clone()),
                ..PrepareSnapshotBackupResponse::default()
            }))
        })
        .collect()
}

#[tonic::async_trait]
impl Backup for Service {
    type PrepareSnapshotBackupStream =
        BoxStream<'static, Result<PrepareSnapshotBackupResponse, Status>>;
    type CheckPendingAdminOpStream = BoxStream<'static, Result<CheckAdminResponse, Status>>;

    async fn prepare_snapshot_backup(
        &self,
        request: Request<Streaming<PrepareSnapshotBackupRequest>>,
    ) -> Result<Response<Self::PrepareSnapshotBackupStream>, Status> {
        let refused = self.script().refused_wait.clone();
        let mut is_leased = false;
        let answers = request.into_inner().flat_map(move |request| {
            let answers = match request {
                Ok(request) => answer_stream(&request, refused.as_ref(), &mut is_leased),
                Err(status) => vec![Some(Err(status))],
            };
            stream::iter(answers)
        });
        let answers = answers.take_while(|answer| ready(answer.is_some()));
        let answers = answers.filter_map(ready);
        Ok(Response::new(answers.boxed()))
    }

    async fn check_pending_admin_op(
        &self,
        _: Request<CheckAdminRequest>,
    ) -> Result<Response<Self::CheckPendingAdminOpStream>, Status> {
        let mut script = self.script();
        script.listings += 1;
        if let Some(status) = script.listing_fails.clone() {
            return Err(status);
        }
        let ending = script.listing_ends_in.clone().map(Err);
        let claims = script.claims.clone().into_iter().map(Ok);
        Ok(Response::new(stream::iter(claims.chain(ending)).boxed()))
    }
}
