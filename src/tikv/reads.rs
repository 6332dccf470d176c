use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_core::Stream;
use futures_util::stream::{self, StreamExt};
use http::uri::PathAndQuery;
use tonic::client::Grpc;
use tonic::transport::Channel;
use tonic::{Request, Status};

use super::chunks::Chunks;
use super::codec::SmallCodec;
use super::convert;
use super::dial::Connection;
use super::peer::Peer;
use super::region_error::region_error;
use super::status::Place;
use crate::cluster::Batches;
use crate::error::Failure;
use crate::pb::kvrpcpb::{
    BatchGetRequest, BatchGetResponse, Context, KeyError, KvPair, RawBatchGetRequest,
    RawBatchGetResponse,
};
use crate::pb::{errorpb, metapb};
use crate::region::{ReadAnswer, ReadTarget, RegionError, RegionErrorKind, StoreId};

/// The paths of the two reads.
const KV: &str = "/tikvpb.Tikv/KvBatchGet";
const RAW: &str = "/tikvpb.Tikv/RawBatchGet";

/// The answers to leader reads, as they come.
pub struct TikvReads {
    answers: Chunks<Answers, Failure>,
}

type Answers = Pin<Box<dyn Stream<Item = Result<ReadAnswer, Failure>> + Send>>;

/// A store that is read from, and what was learned of it.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    pub(super) peer: Arc<Peer>,
    pub(super) store_id: StoreId,
    pub(super) cluster_id: u64,
    pub(super) max_answer_bytes: usize,
    /// Whether the store refused `KvBatchGet` for its API version, so that
    /// `RawBatchGet` is asked first.
    pub(super) raw: Arc<AtomicBool>,
}

impl TikvReads {
    /// Reads from every target, `in_flight` of them at a time.
    pub(super) async fn start(
        reader: Reader,
        targets: Vec<ReadTarget>,
        in_flight: usize,
    ) -> Result<Self, Failure> {
        let connection = reader.peer.connection().await?;
        let reader = Arc::new(reader);
        let answers = stream::iter(targets)
            // Boxed, since it is large and moved about on its way into the set.
            .map(move |target| Box::pin(Arc::clone(&reader).read(target, Arc::clone(&connection))))
            .buffer_unordered(in_flight);
        Ok(Self {
            answers: Chunks::new(Box::pin(answers)),
        })
    }
}

impl Batches<ReadAnswer> for TikvReads {
    async fn next(&mut self) -> Option<Result<Vec<ReadAnswer>, Failure>> {
        self.answers.next().await
    }
}

impl fmt::Debug for TikvReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TikvReads").finish_non_exhaustive()
    }
}

/// What came back for one read. Data, if any came, is dropped unseen.
#[derive(Debug)]
pub(super) enum Outcome {
    Served,
    Refused(RegionError),
    /// The store does not serve this read to the API version it was asked in.
    WrongApiVersion,
}

impl Outcome {
    pub(super) fn into_result(self) -> Result<(), RegionError> {
        match self {
            Self::Served => Ok(()),
            Self::Refused(error) => Err(error),
            Self::WrongApiVersion => Err(RegionError::new(
                RegionErrorKind::Unsupported,
                "the store serves neither kind of read without keys in its API version",
            )),
        }
    }
}

impl Reader {
    async fn read(
        self: Arc<Self>,
        target: ReadTarget,
        connection: Arc<Connection>,
    ) -> Result<ReadAnswer, Failure> {
        let raw = self.raw.load(Ordering::Relaxed);
        let mut outcome = self.read_as(&target, raw, connection).await?;
        if matches!(outcome, Outcome::WrongApiVersion) {
            let connection = self.peer.connection().await?;
            // Boxed, since it is rare: the future of a read stays small.
            outcome = Box::pin(self.read_as(&target, !raw, connection)).await?;
            if !matches!(outcome, Outcome::WrongApiVersion) {
                self.raw.store(!raw, Ordering::Relaxed);
            }
        }
        Ok(ReadAnswer {
            region_id: target.region_id,
            epoch: target.epoch,
            result: outcome.into_result(),
        })
    }

    async fn read_as(
        &self,
        target: &ReadTarget,
        raw: bool,
        connection: Arc<Connection>,
    ) -> Result<Outcome, Failure> {
        let (outcome, _) = self
            .peer
            .call_on(connection, Place::Read, |channel| {
                let client = Grpc::new(channel);
                let client = client.max_decoding_message_size(self.max_answer_bytes);
                get(client, self.context(target), raw)
            })
            .await?;
        Ok(outcome)
    }

    /// What makes it a read by the leader: neither replica read nor stale read.
    fn context(&self, target: &ReadTarget) -> Context {
        Context {
            region_id: target.region_id.0,
            region_epoch: Some(convert::epoch_to_wire(target.epoch)),
            peer: Some(metapb::Peer {
                id: target.peer_id.0,
                store_id: self.store_id.0,
                ..metapb::Peer::default()
            }),
            not_fill_cache: true,
            request_source: "snapshot-prepare".to_owned(),
            cluster_id: self.cluster_id,
            ..Context::default()
        }
    }
}

/// What the generated client does, with a codec for small messages.
async fn get(mut client: Grpc<Channel>, context: Context, raw: bool) -> Result<Outcome, Status> {
    client
        .ready()
        .await
        .map_err(|error| Status::from_error(error.into()))?;
    if raw {
        let request = RawBatchGetRequest {
            context: Some(context),
            ..RawBatchGetRequest::default()
        };
        let (path, codec) = (PathAndQuery::from_static(RAW), SmallCodec::default());
        let answer = client.unary(Request::new(request), path, codec).await?;
        Ok(judge_raw(answer.into_inner()))
    } else {
        let request = BatchGetRequest {
            context: Some(context),
            // The one large version that does not raise the highest timestamp
            // that the store has seen.
            version: u64::MAX,
            ..BatchGetRequest::default()
        };
        let (path, codec) = (PathAndQuery::from_static(KV), SmallCodec::default());
        let answer = client.unary(Request::new(request), path, codec).await?;
        Ok(judge_kv(answer.into_inner()))
    }
}

pub(super) fn judge_kv(answer: BatchGetResponse) -> Outcome {
    judge(answer.region_error, answer.error, &answer.pairs)
}

pub(super) fn judge_raw(answer: RawBatchGetResponse) -> Outcome {
    judge(answer.region_error, None, &answer.pairs)
}

/// Served is what holds no region error, no error and no pair.
fn judge(region: Option<errorpb::Error>, error: Option<KeyError>, pairs: &[KvPair]) -> Outcome {
    if let Some(error) = region {
        return Outcome::Refused(region_error(&error));
    }
    let of_pairs = pairs.iter().filter_map(|pair| pair.error.as_ref());
    if error
        .iter()
        .chain(of_pairs)
        .any(|error| error.abort.contains("ApiVersionNotMatched"))
    {
        return Outcome::WrongApiVersion;
    }
    let words = if error.is_some() {
        "the store answered the read with an error"
    } else if !pairs.is_empty() {
        "the store answered a read without keys with data"
    } else {
        return Outcome::Served;
    };
    Outcome::Refused(RegionError::new(RegionErrorKind::Other, words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn abort(words: &str) -> KeyError {
        KeyError {
            abort: words.to_owned(),
            ..KeyError::default()
        }
    }

    #[test]
    fn served_is_known_by_what_is_absent() {
        assert!(matches!(judge(None, None, &[]), Outcome::Served));
        let pair = KvPair::default();
        let refused = [
            judge(Some(errorpb::Error::default()), None, &[]),
            judge(None, Some(abort("Key 7A is out of [region 1]")), &[]),
            judge(None, Some(KeyError::default()), &[]),
            judge(None, None, &[pair]),
        ];
        for outcome in refused {
            let Outcome::Refused(error) = outcome else {
                panic!("not refused");
            };
            assert!(!error.message.contains("7A"), "{error}");
        }
    }

    #[test]
    fn the_api_version_is_refused_in_two_places() {
        let error = abort("ApiVersionNotMatched { cmd: raw_batch_get, storage_api_version: V2 }");
        let pair = KvPair {
            error: Some(error.clone()),
            ..KvPair::default()
        };
        for outcome in [judge(None, Some(error), &[]), judge(None, None, &[pair])] {
            assert!(matches!(outcome, Outcome::WrongApiVersion));
        }
    }
}
