//! Answers from raw bytes, read as the calls read them, for fuzzing: first as
//! protobuf, then as what it means here. What is not protobuf is what tonic makes
//! of it, a status.

use prost::Message;
use tonic::{Code, Status};

#[cfg(feature = "cli")]
use super::address::{Address, Scheme};
use super::convert;
use super::members;
use super::pd::Answer;
use super::status::{self, Place};
use super::{listing, reads, stream};
use crate::cluster::StreamAnswer;
use crate::error::Failure;
use crate::pb::{backup, kvrpcpb, pdpb};
use crate::range::KeyRange;
use crate::region::{Claim, RegionError, ScannedRegion, Store};

/// The cluster whose answers are taken.
pub(crate) const CLUSTER_ID: u64 = 7;

fn decode<T: Message + Default>(bytes: &[u8], place: Place) -> Result<T, Failure> {
    T::decode(bytes).map_err(|error| status::failure(&Status::internal(error.to_string()), place))
}

fn decode_pd<T: Message + Default + Answer>(bytes: &[u8]) -> Result<T, Failure> {
    let answer: T = decode(bytes, Place::Pd)?;
    members::check_header(answer.header(), Some(CLUSTER_ID))?;
    Ok(answer)
}

pub(crate) fn stores(bytes: &[u8]) -> Result<Vec<Store>, Failure> {
    let answer: pdpb::GetAllStoresResponse = decode_pd(bytes)?;
    Ok(answer.stores.into_iter().map(convert::store).collect())
}

/// Reads a scan of newer servers, or with `old` one of old ones.
pub(crate) fn regions(
    bytes: &[u8],
    range: &KeyRange,
    old: bool,
) -> Result<Vec<ScannedRegion>, Failure> {
    let mut scan = if old {
        convert::any_scan(decode_pd(bytes)?)?
    } else {
        let answer: pdpb::BatchScanRegionsResponse = decode_pd(bytes)?;
        convert::scan(answer.regions)?
    };
    convert::tidy_scan(&mut scan, range);
    Ok(scan)
}

pub(crate) fn min_ts(bytes: &[u8]) -> Result<u64, Failure> {
    convert::timestamp(decode_pd(bytes)?)
}

/// Returns the cluster's id and how many addresses there are.
pub(crate) fn members(bytes: &[u8]) -> Result<(u64, usize), Failure> {
    let found = members::read(&decode(bytes, Place::Pd)?, None)?;
    Ok((found.cluster_id, found.leader.len() + found.members.len()))
}

pub(crate) fn claim(bytes: &[u8]) -> Result<Claim, Failure> {
    let answer: backup::CheckAdminResponse = decode(bytes, Place::Listing)?;
    listing::claim(answer)
}

pub(crate) fn stream_answer(bytes: &[u8]) -> Result<StreamAnswer, Failure> {
    let answer: backup::PrepareSnapshotBackupResponse = decode(bytes, Place::Stream)?;
    stream::answer(answer)
}

/// Reads the answer to `KvBatchGet`, or to `RawBatchGet`.
pub(crate) fn read(bytes: &[u8], raw: bool) -> Result<Result<(), RegionError>, Failure> {
    let outcome = if raw {
        reads::judge_raw(decode::<kvrpcpb::RawBatchGetResponse>(bytes, Place::Read)?)
    } else {
        reads::judge_kv(decode::<kvrpcpb::BatchGetResponse>(bytes, Place::Read)?)
    };
    Ok(outcome.into_result())
}

/// Reads the status with which a call ended.
pub(crate) fn failure(code: i32, message: &str, place: u8) -> Failure {
    let places = [
        Place::Stream,
        Place::Listing,
        Place::Read,
        Place::Pd,
        Place::PdNewer,
    ];
    let place = places[usize::from(place) % places.len()];
    status::failure(&Status::new(Code::from_i32(code), message), place)
}

/// Reads an address of a server; returns whether it asks for TLS, and what would
/// be dialed.
#[cfg(feature = "cli")]
pub(crate) fn address(text: &str) -> Result<(bool, String), &'static str> {
    let (scheme, address) = Address::parse(text)?;
    Ok((scheme == Scheme::Https, address.authority().to_owned()))
}
