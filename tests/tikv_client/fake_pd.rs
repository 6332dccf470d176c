use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use snapshot_prepare::pb::metapb;
use snapshot_prepare::pb::pdpb::pd_server::{Pd, PdServer};
use snapshot_prepare::pb::pdpb::{self, ErrorType, Member, ResponseHeader};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Server, ServerTlsConfig};
use tonic::{Request, Response, Status};

use super::support::{Host, listen};

/// What a member does with a call that only the leader answers.
#[derive(Clone, Debug)]
pub(crate) enum Turn {
    Fail(Status),
    HeaderError(ErrorType, &'static str),
    Hang,
}

/// What a member knows and how it behaves.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    pub(crate) cluster_id: u64,
    /// The URL of the leader, as this member names it.
    pub(crate) leader: Option<String>,
    pub(crate) members: Vec<String>,
    /// What happens to the next calls that only the leader answers.
    pub(crate) turns: VecDeque<Turn>,
    /// The same for all calls after those.
    pub(crate) always: Option<Turn>,
    pub(crate) stores: Vec<metapb::Store>,
    pub(crate) regions: Vec<pdpb::Region>,
    pub(crate) old_form: bool,
    pub(crate) no_batch_scan: bool,
    pub(crate) min_ts: Option<pdpb::Timestamp>,
    /// The calls that came, in order, with the limit of scans.
    pub(crate) calls: Vec<(&'static str, i32)>,
    pub(crate) last_scan: Option<(Vec<u8>, Vec<u8>)>,
}

/// One member of PD.
#[derive(Clone)]
pub(crate) struct FakePd {
    pub(crate) address: SocketAddr,
    script: Arc<Mutex<Script>>,
    host: Arc<tokio::sync::Mutex<Host>>,
}

impl FakePd {
    /// A member of cluster 7 that leads.
    pub(crate) async fn start() -> Self {
        Self::start_with(None).await
    }

    pub(crate) async fn start_with(tls: Option<ServerTlsConfig>) -> Self {
        let (listener, address) = listen().await;
        let script = Arc::new(Mutex::new(Script {
            cluster_id: 7,
            leader: Some(format!("http://{address}")),
            members: vec![format!("http://{address}")],
            ..Script::default()
        }));
        let service = PdServer::new(Service(script.clone()));
        let mut server = Server::builder();
        if let Some(tls) = tls {
            server = server.tls_config(tls).expect("sound TLS");
        }
        let router = server.add_service(service);
        let host = Host::start(listener, |listener| async move {
            let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
            router.serve_with_incoming(incoming).await.expect("serving");
        });
        Self {
            address,
            script,
            host: Arc::new(tokio::sync::Mutex::new(host)),
        }
    }

    pub(crate) fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().expect("no panic before")
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Names `other` as the leader from now on.
    pub(crate) fn follow(&self, other: &Self) {
        self.script().leader = Some(other.url());
    }

    /// Stops serving; connections break.
    pub(crate) async fn stop(&self) {
        self.host.lock().await.stop().await;
    }

    pub(crate) fn count(&self, name: &str) -> usize {
        let script = self.script();
        script
            .calls
            .iter()
            .filter(|(call, _)| *call == name)
            .count()
    }
}

struct Service(Arc<Mutex<Script>>);

impl Service {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock().expect("no panic before")
    }

    /// Notes a call that only the leader answers.
    async fn turn(&self, name: &'static str, limit: i32) -> Result<Option<ResponseHeader>, Status> {
        let (turn, cluster_id) = {
            let mut script = self.script();
            script.calls.push((name, limit));
            let turn = script.turns.pop_front().or_else(|| script.always.clone());
            (turn, script.cluster_id)
        };
        match turn {
            None => Ok(Some(ResponseHeader {
                cluster_id,
                error: None,
            })),
            Some(Turn::Fail(status)) => Err(status),
            Some(Turn::Hang) => std::future::pending().await,
            Some(Turn::HeaderError(error, message)) => Ok(Some(ResponseHeader {
                cluster_id,
                error: Some(pdpb::Error {
                    r#type: error.into(),
                    message: message.to_owned(),
                }),
            })),
        }
    }
}

fn member(url: &str) -> Member {
    Member {
        client_urls: vec![url.to_owned()],
        ..Member::default()
    }
}

#[tonic::async_trait]
impl Pd for Service {
    async fn get_members(
        &self,
        _: Request<pdpb::GetMembersRequest>,
    ) -> Result<Response<pdpb::GetMembersResponse>, Status> {
        let mut script = self.script();
        script.calls.push(("GetMembers", 0));
        Ok(Response::new(pdpb::GetMembersResponse {
            header: Some(ResponseHeader {
                cluster_id: script.cluster_id,
                error: None,
            }),
            members: script.members.iter().map(|url| member(url)).collect(),
            leader: script.leader.as_deref().map(member),
            etcd_leader: None,
        }))
    }

    async fn get_all_stores(
        &self,
        _: Request<pdpb::GetAllStoresRequest>,
    ) -> Result<Response<pdpb::GetAllStoresResponse>, Status> {
        let header = self.turn("GetAllStores", 0).await?;
        let stores = self.script().stores.clone();
        Ok(Response::new(pdpb::GetAllStoresResponse { header, stores }))
    }

    async fn scan_regions(
        &self,
        request: Request<pdpb::ScanRegionsRequest>,
    ) -> Result<Response<pdpb::ScanRegionsResponse>, Status> {
        let request = request.into_inner();
        let header = self.turn("ScanRegions", request.limit).await?;
        let mut script = self.script();
        script.last_scan = Some((request.start_key, request.end_key));
        let found = script.regions.iter();
        let mut answer = pdpb::ScanRegionsResponse {
            header,
            region_metas: found
                .clone()
                .filter_map(|each| each.region.clone())
                .collect(),
            leaders: found.map(|each| each.leader.unwrap_or_default()).collect(),
            regions: Vec::new(),
        };
        if !script.old_form {
            answer.regions = script.regions.clone();
        }
        Ok(Response::new(answer))
    }

    async fn batch_scan_regions(
        &self,
        request: Request<pdpb::BatchScanRegionsRequest>,
    ) -> Result<Response<pdpb::BatchScanRegionsResponse>, Status> {
        let request = request.into_inner();
        let header = self.turn("BatchScanRegions", request.limit).await?;
        let mut script = self.script();
        if script.no_batch_scan {
            return Err(Status::unimplemented("unknown method BatchScanRegions"));
        }
        let range = request.ranges[0].clone();
        script.last_scan = Some((range.start_key, range.end_key));
        let regions = script.regions.clone();
        Ok(Response::new(pdpb::BatchScanRegionsResponse {
            header,
            regions,
        }))
    }

    async fn get_region_by_id(
        &self,
        _: Request<pdpb::GetRegionByIdRequest>,
    ) -> Result<Response<pdpb::GetRegionResponse>, Status> {
        Err(Status::unimplemented("not needed"))
    }

    async fn get_min_ts(
        &self,
        _: Request<pdpb::GetMinTsRequest>,
    ) -> Result<Response<pdpb::GetMinTsResponse>, Status> {
        let header = self.turn("GetMinTS", 0).await?;
        let Some(timestamp) = self.script().min_ts else {
            return Err(Status::unimplemented("unknown method GetMinTS"));
        };
        Ok(Response::new(pdpb::GetMinTsResponse {
            header,
            timestamp: Some(timestamp),
        }))
    }
}
