//! Reading what `pd-ctl region` and `/pd/api/v1/regions` print.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::error::Category;

use super::error::{Bound, KeyProblem};
use super::generate::{STORE_VERSION, made_up_address};
use super::{Layout, LayoutError, LayoutRegion, RegionProblem, dump_stores};
use crate::range::KeyRange;
use crate::region::{Peer, PeerId, PeerRole, Region, RegionEpoch, RegionId, Store, StoreId};

impl Layout {
    /// Reads a dump of regions, as `pd-ctl region` and PD's HTTP API
    /// `/pd/api/v1/regions` print it. The regions may come in any order.
    ///
    /// The stores are those that hold peers; one that holds learners only is
    /// taken for TiFlash. Their addresses are made up.
    ///
    /// # Errors
    /// What keeps the text from being a dump, or the dump from being a sound
    /// cluster; see [`Layout::check`]. A region without a leader is refused.
    pub fn from_pd_json(regions: &[u8]) -> Result<Self, LayoutError> {
        let regions = read_regions(regions)?;
        let stores = stores_of(&regions);
        Self { stores, regions }.checked()
    }

    /// Reads a dump of regions together with one of stores, as `pd-ctl store`
    /// and `/pd/api/v1/stores` print it. Tombstones are kept.
    ///
    /// # Errors
    /// As [`Layout::from_pd_json`], for either text.
    pub fn from_pd_json_with_stores(regions: &[u8], stores: &[u8]) -> Result<Self, LayoutError> {
        let stores = dump_stores::read(stores)?;
        let regions = read_regions(regions)?;
        Self { stores, regions }.checked()
    }

    fn checked(self) -> Result<Self, LayoutError> {
        self.check()?;
        Ok(self)
    }
}

#[derive(Deserialize)]
struct RegionsDump<'a> {
    count: Option<u64>,
    #[serde(borrow)]
    regions: Option<Vec<DumpedRegion<'a>>>,
}

#[derive(Deserialize)]
struct DumpedRegion<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    start_key: Option<Cow<'a, str>>,
    #[serde(borrow)]
    end_key: Option<Cow<'a, str>>,
    epoch: Option<DumpedEpoch>,
    peers: Option<Vec<DumpedPeer>>,
    leader: Option<DumpedPeer>,
}

/// PD leaves out numbers that are 0.
#[derive(Deserialize)]
struct DumpedEpoch {
    #[serde(default)]
    conf_ver: u64,
    #[serde(default)]
    version: u64,
}

#[derive(Deserialize)]
struct DumpedPeer {
    #[serde(default)]
    id: u64,
    #[serde(default)]
    store_id: u64,
    role_name: Option<String>,
    role: Option<i64>,
    #[serde(default)]
    is_learner: bool,
}

fn read_regions(text: &[u8]) -> Result<Vec<LayoutRegion>, LayoutError> {
    let dump: RegionsDump<'_> = parse(text)?;
    let Some(dumped) = dump.regions else {
        return Err(LayoutError::WrongShape {
            what: "there is no list `regions` at the top".to_owned(),
        });
    };
    check_count("regions", dump.count, dumped.len())?;
    let mut regions = Vec::with_capacity(dumped.len());
    for (index, dumped) in dumped.into_iter().enumerate() {
        let id = dumped.id.map(RegionId).ok_or(LayoutError::MissingId {
            what: "regions",
            index,
        })?;
        let region = read_region(id, dumped).map_err(|problem| LayoutError::region(id, problem))?;
        regions.push(region);
    }
    regions.sort_by(|a, b| a.region.range.cmp(&b.region.range));
    Ok(regions)
}

fn read_region(id: RegionId, dumped: DumpedRegion<'_>) -> Result<LayoutRegion, RegionProblem> {
    let start = read_key(Bound::Start, dumped.start_key)?;
    let end = read_key(Bound::End, dumped.end_key)?;
    let range = KeyRange::from_wire(start, end).ok_or(RegionProblem::EmptyRange)?;
    let epoch = dumped.epoch.ok_or(RegionProblem::Missing("epoch"))?;
    let peers = dumped.peers.ok_or(RegionProblem::Missing("peers"))?;
    let peers = peers.iter().map(read_peer).collect::<Result<Vec<_>, _>>()?;
    let leader = dumped
        .leader
        .filter(|leader| leader.store_id != 0)
        .ok_or(RegionProblem::Missing("leader"))?;
    let store_id = StoreId(leader.store_id);
    let led = |peer: &Peer| peer.id.0 == leader.id && peer.store_id == store_id;
    if !peers.is_empty() && !peers.iter().any(led) {
        return Err(RegionProblem::ForeignLeader(store_id));
    }
    Ok(LayoutRegion {
        region: Region {
            id,
            range,
            epoch: RegionEpoch {
                conf_ver: epoch.conf_ver,
                version: epoch.version,
            },
            peers,
        },
        leader: Some(store_id),
    })
}

fn read_peer(dumped: &DumpedPeer) -> Result<Peer, RegionProblem> {
    let id = PeerId(dumped.id);
    let unknown = RegionProblem::UnknownRole(id);
    let role = match (dumped.role_name.as_deref(), dumped.role) {
        (Some("Voter"), _) | (None, Some(0)) => PeerRole::Voter,
        (Some("Learner"), _) | (None, Some(1)) => PeerRole::Learner,
        (Some("IncomingVoter"), _) | (None, Some(2)) => PeerRole::IncomingVoter,
        (Some("DemotingVoter"), _) | (None, Some(3)) => PeerRole::DemotingVoter,
        (None, None) if dumped.is_learner => PeerRole::Learner,
        (None, None) => PeerRole::Voter,
        (Some(_), _) | (None, Some(_)) => return Err(unknown),
    };
    Ok(Peer {
        id,
        store_id: StoreId(dumped.store_id),
        role,
    })
}

fn read_key(bound: Bound, text: Option<Cow<'_, str>>) -> Result<Vec<u8>, RegionProblem> {
    let text = text.ok_or(RegionProblem::Missing(match bound {
        Bound::Start => "start_key",
        Bound::End => "end_key",
    }))?;
    read_hex(text.as_bytes()).map_err(|problem| RegionProblem::BadKey { bound, problem })
}

fn read_hex(text: &[u8]) -> Result<Vec<u8>, KeyProblem> {
    if text.contains(&b'\\') {
        return Err(KeyProblem::EscapedText);
    }
    let digits: Vec<u8> = text
        .iter()
        .map(|&c| char::from(c).to_digit(16).map(|digit| digit as u8))
        .collect::<Option<_>>()
        .ok_or(KeyProblem::NotHex)?;
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(KeyProblem::OddHex);
    }
    Ok(pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

/// Returns the stores that hold the peers; those that hold learners only are
/// labeled as TiFlash.
fn stores_of(regions: &[LayoutRegion]) -> Vec<Store> {
    let mut votes: BTreeMap<StoreId, bool> = BTreeMap::new();
    for peer in regions.iter().flat_map(|entry| &entry.region.peers) {
        *votes.entry(peer.store_id).or_default() |= peer.role.is_voter();
    }
    let as_store = |(id, votes): (StoreId, bool)| Store {
        id,
        address: made_up_address(id),
        version: STORE_VERSION.to_owned(),
        labels: if votes {
            BTreeMap::new()
        } else {
            BTreeMap::from([("engine".to_owned(), "tiflash".to_owned())])
        },
        ..Store::default()
    };
    votes
        .into_iter()
        .filter(|(id, _)| !id.is_none())
        .map(as_store)
        .collect()
}

/// Parses JSON. What an error says of the text itself is left behind, since it
/// could be a key.
pub(super) fn parse<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, LayoutError> {
    serde_json::from_slice(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        match error.classify() {
            Category::Eof => LayoutError::CutOff { line, column },
            Category::Syntax | Category::Io => LayoutError::NotJson { line, column },
            Category::Data => {
                let text = error.to_string();
                let wanted = text
                    .find("expected ")
                    .and_then(|at| text.get(at..))
                    .map_or_else(
                        || format!("an entry is not as expected at line {line} column {column}"),
                        str::to_owned,
                    );
                LayoutError::WrongShape { what: wanted }
            }
        }
    })
}

pub(super) fn check_count(
    what: &'static str,
    said: Option<u64>,
    found: usize,
) -> Result<(), LayoutError> {
    match said {
        Some(said) if said != found as u64 => Err(LayoutError::CountMismatch { what, said, found }),
        _ => Ok(()),
    }
}
