use std::pin::Pin;
use std::sync::Arc;

use futures_core::Stream;
use futures_util::stream::{self, StreamExt};
use http::uri::PathAndQuery;
use prost::Message;
use tonic::client::Grpc;
use tonic::transport::Channel;
use tonic::{Request, Status};

use super::outcome::{Outcome, judge_kv, judge_raw};
use super::reader::Reader;
use crate::error::Failure;
use crate::region::{ReadAnswer, ReadTarget};
use crate::tikv::chunks::Chunks;
use crate::tikv::codec::SmallCodec;
use crate::tikv::dial::Connection;
use crate::tikv::status::Place;

/// The paths of the two reads.
const KV: &str = "/tikvpb.Tikv/KvBatchGet";
const RAW: &str = "/tikvpb.Tikv/RawBatchGet";

/// How many calls are under way at once at the most: a server allows a
/// connection so many, listings included.
const CALLS: usize = 64;

/// Reads that are a call each.
pub(super) type Alone =
    Chunks<Pin<Box<dyn Stream<Item = Result<ReadAnswer, Failure>> + Send>>, Failure>;

/// Reads from every target, each by a call of its own.
pub(super) fn start(
    reader: Arc<Reader>,
    connection: Arc<Connection>,
    targets: Vec<ReadTarget>,
    in_flight: usize,
) -> Alone {
    let answers = stream::iter(targets)
        // Boxed, since it is large and moved about on its way into the set.
        .map(move |target| Box::pin(read(Arc::clone(&reader), target, Arc::clone(&connection))))
        .buffer_unordered(in_flight.min(CALLS));
    Chunks::new(Box::pin(answers))
}

async fn read(
    reader: Arc<Reader>,
    target: ReadTarget,
    connection: Arc<Connection>,
) -> Result<ReadAnswer, Failure> {
    let raw = reader.manner.raw();
    let mut outcome = read_as(&reader, &target, raw, connection).await?;
    if matches!(outcome, Outcome::WrongApiVersion) {
        let connection = reader.peer.connection().await?;
        // Boxed, since it is rare: the future of a read stays small.
        outcome = Box::pin(read_as(&reader, &target, !raw, connection)).await?;
        if !matches!(outcome, Outcome::WrongApiVersion) {
            reader.manner.set_raw(!raw);
        }
    }
    Ok(outcome.answer(&target))
}

async fn read_as(
    reader: &Reader,
    target: &ReadTarget,
    raw: bool,
    connection: Arc<Connection>,
) -> Result<Outcome, Failure> {
    let limit = reader.max_answer_bytes;
    let (outcome, _) = reader
        .peer
        .call_on(connection, Place::Read, |channel| async move {
            if raw {
                let answer = call(channel, reader.raw(target), RAW, limit).await?;
                Ok(judge_raw(answer))
            } else {
                let answer = call(channel, reader.kv(target), KV, limit).await?;
                Ok(judge_kv(answer))
            }
        })
        .await?;
    Ok(outcome)
}

/// What the generated client does, with a codec for small messages.
async fn call<T, U>(
    channel: Channel,
    request: T,
    path: &'static str,
    limit: usize,
) -> Result<U, Status>
where
    T: Message + Send + Sync + 'static,
    U: Message + Default + Send + Sync + 'static,
{
    let mut client = Grpc::new(channel).max_decoding_message_size(limit);
    client
        .ready()
        .await
        .map_err(|error| Status::from_error(error.into()))?;
    let path = PathAndQuery::from_static(path);
    let codec = SmallCodec::<T, U>::default();
    let answer = client.unary(Request::new(request), path, codec).await?;
    Ok(answer.into_inner())
}
