use std::sync::Arc;
use std::time::SystemTime;

use tonic::{Request, Response, Status};

use super::convert;
use super::members::Members;
use super::stores::StoreListeners;
use crate::pb::pdpb::pd_server::Pd;
use crate::pb::pdpb::{
    BatchScanRegionsRequest, BatchScanRegionsResponse, Error, ErrorType, GetAllStoresRequest,
    GetAllStoresResponse, GetMembersRequest, GetMembersResponse, GetMinTsRequest, GetMinTsResponse,
    GetRegionByIdRequest, GetRegionResponse, RequestHeader, ResponseHeader, ScanRegionsRequest,
    ScanRegionsResponse, Timestamp,
};
use crate::range::{EndKey, KeyRange};
use crate::region::{RegionId, ScannedRegion, StoreState};
use crate::sim::hub::{Call, Hub};
use crate::sim::model::{Answer, Code, Request as Ask};

/// How many low bits of a timestamp count within a millisecond.
const LOGICAL_BITS: u32 = 18;

/// One member of PD.
#[derive(Clone, Debug)]
pub(super) struct PdService {
    pub(super) hub: Hub,
    pub(super) cluster_id: u64,
    pub(super) members: Arc<Members>,
    pub(super) stores: Arc<StoreListeners>,
    /// Which of the members this is.
    pub(super) me: usize,
}

#[tonic::async_trait]
impl Pd for PdService {
    /// Every member answers, whatever cluster id it is asked with.
    async fn get_members(
        &self,
        _: Request<GetMembersRequest>,
    ) -> Result<Response<GetMembersResponse>, Status> {
        let (members, leader) = self.members.list();
        Ok(Response::new(GetMembersResponse {
            header: self.header(),
            members,
            etcd_leader: leader.clone(),
            leader,
        }))
    }

    async fn get_all_stores(
        &self,
        request: Request<GetAllStoresRequest>,
    ) -> Result<Response<GetAllStoresResponse>, Status> {
        let request = request.into_inner();
        let Answer::Stores(mut stores) = self.ask(request.header, Ask::ListStores).await? else {
            return Err(unexpected());
        };
        if request.exclude_tombstone_stores {
            stores.retain(|store| store.state != StoreState::Tombstone);
        }
        convert::move_heartbeats(&mut stores, SystemTime::now());
        let mut listed = Vec::with_capacity(stores.len());
        for store in stores {
            let address = self.stores.address(&store).map_err(|error| {
                Status::internal(format!("cannot listen as store {}: {error}", store.id))
            })?;
            listed.push(convert::store(store, address));
        }
        Ok(Response::new(GetAllStoresResponse {
            header: self.header(),
            stores: listed,
        }))
    }

    async fn scan_regions(
        &self,
        request: Request<ScanRegionsRequest>,
    ) -> Result<Response<ScanRegionsResponse>, Status> {
        let request = request.into_inner();
        let range = KeyRange::from_wire(request.start_key, request.end_key);
        let regions = self.scan(request.header, range, request.limit).await?;
        let leaders = regions.iter().map(convert::leader);
        Ok(Response::new(ScanRegionsResponse {
            header: self.header(),
            // A real one fills in the fields for old clients too.
            region_metas: regions.iter().map(|r| convert::region(&r.region)).collect(),
            leaders: leaders.map(Option::unwrap_or_default).collect(),
            regions: regions.iter().map(convert::scanned).collect(),
        }))
    }

    async fn batch_scan_regions(
        &self,
        request: Request<BatchScanRegionsRequest>,
    ) -> Result<Response<BatchScanRegionsResponse>, Status> {
        let request = request.into_inner();
        let mut found: Vec<ScannedRegion> = Vec::new();
        let mut has_gap = false;
        for range in request.ranges {
            let left = match usize::try_from(request.limit) {
                Ok(limit) if limit > 0 => limit.saturating_sub(found.len()),
                _ => usize::MAX,
            };
            if left == 0 {
                break;
            }
            let Some(range) = KeyRange::from_wire(range.start_key, range.end_key) else {
                return Err(Status::invalid_argument("invalid key range"));
            };
            let header = request.header.clone();
            // One more, since the first may be the last of the range before.
            let limit = i32::try_from(left.saturating_add(1)).unwrap_or(0);
            let mut page = self.scan(header, Some(range.clone()), limit).await?;
            has_gap |= page.len() <= left && !covers(&page, &range);
            if found.last().map(|r| r.region.id) == page.first().map(|r| r.region.id) {
                page.drain(..page.len().min(1));
            }
            page.truncate(left);
            found.append(&mut page);
        }
        let mut header = self.header();
        if request.contain_all_key_range
            && has_gap
            && let Some(header) = &mut header
        {
            header.error = Some(Error {
                r#type: ErrorType::RegionsNotContainAllKeyRange.into(),
                message: "found regions do not contain all key ranges".to_owned(),
            });
            found.clear();
        }
        Ok(Response::new(BatchScanRegionsResponse {
            header,
            regions: found.iter().map(convert::scanned).collect(),
        }))
    }

    async fn get_region_by_id(
        &self,
        request: Request<GetRegionByIdRequest>,
    ) -> Result<Response<GetRegionResponse>, Status> {
        let request = request.into_inner();
        let all = self
            .scan(request.header, Some(KeyRange::whole()), 0)
            .await?;
        let id = RegionId(request.region_id);
        let found = all.iter().find(|scanned| scanned.region.id == id);
        Ok(Response::new(GetRegionResponse {
            header: self.header(),
            region: found.map(|scanned| convert::region(&scanned.region)),
            leader: found.and_then(convert::leader),
            down_peers: Vec::new(),
            pending_peers: Vec::new(),
        }))
    }

    async fn get_min_ts(
        &self,
        request: Request<GetMinTsRequest>,
    ) -> Result<Response<GetMinTsResponse>, Status> {
        let request = request.into_inner();
        let Answer::MinTs(timestamp) = self.ask(request.header, Ask::MinTs).await? else {
            return Err(unexpected());
        };
        let logical = timestamp & ((1 << LOGICAL_BITS) - 1);
        Ok(Response::new(GetMinTsResponse {
            header: self.header(),
            timestamp: Some(Timestamp {
                physical: i64::try_from(timestamp >> LOGICAL_BITS).unwrap_or(i64::MAX),
                logical: i64::try_from(logical).unwrap_or(0),
                suffix_bits: 0,
            }),
        }))
    }
}

impl PdService {
    #[allow(clippy::unnecessary_wraps, reason = "the form the messages want")]
    fn header(&self) -> Option<ResponseHeader> {
        Some(ResponseHeader {
            cluster_id: self.cluster_id,
            error: None,
        })
    }

    /// Asks the model what only the leader answers.
    async fn ask(&self, header: Option<RequestHeader>, ask: Ask) -> Result<Answer, Status> {
        if !self.members.leads(self.me) {
            return Err(not_leader());
        }
        let asked = header.unwrap_or_default().cluster_id;
        if asked != self.cluster_id {
            let ours = self.cluster_id;
            return Err(Status::failed_precondition(format!(
                "mismatch cluster id, need {ours} but got {asked}"
            )));
        }
        match Call::new(&self.hub, ask).only().await {
            Some(Answer::End(status)) => {
                if status.code == Code::Unavailable {
                    self.members.resign(self.me);
                }
                Err(convert::status(status))
            }
            Some(answer) => Ok(answer),
            None => Err(unexpected()),
        }
    }

    /// A limit of 0 or less is none.
    async fn scan(
        &self,
        header: Option<RequestHeader>,
        range: Option<KeyRange>,
        limit: i32,
    ) -> Result<Vec<ScannedRegion>, Status> {
        // A range without keys is asked for all the same, for the checks.
        let (range, is_empty) = match range {
            Some(range) => (range, false),
            None => (KeyRange::whole(), true),
        };
        let limit = match u32::try_from(limit) {
            Ok(limit) if limit > 0 => limit,
            _ => u32::MAX,
        };
        let limit = if is_empty { 0 } else { limit };
        match self.ask(header, Ask::ScanRegions { range, limit }).await? {
            Answer::Regions(regions) => Ok(regions),
            _ => Err(unexpected()),
        }
    }
}

fn not_leader() -> Status {
    Status::unavailable("not leader")
}

fn unexpected() -> Status {
    Status::internal("the model answered something else than it was asked")
}

/// Returns whether the regions, in key order, hold every key of the range.
fn covers(regions: &[ScannedRegion], range: &KeyRange) -> bool {
    let mut reached = EndKey::Bounded(range.start().clone());
    for scanned in regions {
        let held = &scanned.region.range;
        if EndKey::Bounded(held.start().clone()) > reached {
            return false;
        }
        reached = reached.max(held.end().clone());
    }
    reached >= *range.end()
}
