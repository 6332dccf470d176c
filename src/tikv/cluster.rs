use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::time::{Instant, timeout, timeout_at};

use super::address::{Address, Scheme};
use super::convert;
use super::dial::Dialer;
use super::listing::TikvClaims;
use super::members::{self, Membership};
use super::pd::{Pd, summary};
use super::peer::{Peer, REFUSALS};
use super::reads::{Reader, TikvReads};
use super::status::Place;
use super::stores::Stores;
use super::stream::{self, TikvReceiver, TikvSender};
use super::{Options, Security};
use crate::cluster::ClusterClient;
use crate::error::{Error, ErrorKind, Failure, FailureKind};
use crate::pb::pdpb;
use crate::range::KeyRange;
use crate::region::{ReadTarget, ScannedRegion, Store};

/// How long other endpoints are waited for once one of them answered, so that
/// endpoints of different clusters are noticed.
const GRACE: Duration = Duration::from_secs(1);

/// The largest page of a region scan. PD knows no limit, but the size of an
/// answer has one.
const MAX_SCAN_LIMIT: u32 = 65_536;

/// A TiKV cluster, reached through its PD. A cheap handle: clones share their
/// connections.
#[derive(Clone, Debug)]
pub struct TikvCluster {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: Options,
    pd: Pd,
    stores: Stores,
}

impl TikvCluster {
    /// Asks PD for the cluster's id. The endpoints are members of PD,
    /// `host:port`, with `http://` or `https://` before it or not. All are asked
    /// at once, once each; one that answers is enough, leader or not. With TLS,
    /// `http://` is taken for `https://`.
    ///
    /// # Errors
    /// - [`ErrorKind::Config`], before anything is dialled: no endpoint, one that
    ///   cannot be read, `https://` without TLS, a certificate or key file that
    ///   cannot be read or used, options that cannot work.
    /// - [`ErrorKind::Unreachable`] when no endpoint answered and one of them may
    ///   later; the message names each with what went wrong. Whoever wants to
    ///   wait for PD calls again.
    /// - [`ErrorKind::WrongCluster`] when two endpoints belong to different
    ///   clusters.
    /// - [`ErrorKind::WrongService`], [`ErrorKind::Tls`],
    ///   [`ErrorKind::Unauthenticated`] when nothing but that came back.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connections.
    pub async fn connect(
        endpoints: impl IntoIterator<Item = impl Into<String>>,
        security: Security,
        options: Options,
    ) -> Result<Self, Error> {
        options.check()?;
        let addresses = read_endpoints(endpoints, security.is_tls())?;
        security.check().await?;
        let dialer = Dialer::new(security, options.clone());
        let peers: Vec<_> = addresses
            .into_iter()
            .map(|address| Arc::new(Peer::pd_member(address, dialer.clone())))
            .collect();
        let cluster_id = learn_cluster_id(&peers, &options).await?;
        let inner = Inner {
            options,
            pd: Pd::new(dialer.clone(), cluster_id, peers),
            stores: Stores::new(dialer),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Returns the cluster's id.
    pub fn cluster_id(&self) -> u64 {
        self.inner.pd.cluster_id()
    }

    /// Asks PD for its lowest timestamp (`pdpb.PD/GetMinTS`): milliseconds since
    /// the Unix epoch, shifted left by 18 bits, and a counter in those bits.
    ///
    /// # Errors
    /// A [`Failure`] when PD's leader gave no usable answer;
    /// [`FailureKind::Unsupported`] when it is too old for the call.
    ///
    /// # Cancel safety
    /// Dropping the future drops the call.
    pub async fn min_ts(&self) -> Result<u64, Failure> {
        let answer = self
            .inner
            .pd
            .call(Place::PdNewer, |mut client, header| async move {
                let header = Some(header);
                client.get_min_ts(pdpb::GetMinTsRequest { header }).await
            })
            .await?;
        convert::timestamp(answer)
    }

    async fn batch_scan(
        &self,
        range: &KeyRange,
        limit: i32,
    ) -> Result<Vec<ScannedRegion>, Failure> {
        let answer = self
            .inner
            .pd
            .call(Place::PdNewer, |mut client, header| {
                let request = pdpb::BatchScanRegionsRequest {
                    header: Some(header),
                    ranges: vec![pdpb::KeyRange {
                        start_key: range.start().as_bytes().to_vec(),
                        end_key: range.end().as_wire().to_vec(),
                    }],
                    limit,
                    ..pdpb::BatchScanRegionsRequest::default()
                };
                async move { client.batch_scan_regions(request).await }
            })
            .await?;
        convert::scan(answer.regions)
    }

    async fn scan(&self, range: &KeyRange, limit: i32) -> Result<Vec<ScannedRegion>, Failure> {
        let answer = self
            .inner
            .pd
            .call(Place::Pd, |mut client, header| {
                let request = pdpb::ScanRegionsRequest {
                    header: Some(header),
                    start_key: range.start().as_bytes().to_vec(),
                    limit,
                    end_key: range.end().as_wire().to_vec(),
                };
                async move { client.scan_regions(request).await }
            })
            .await?;
        convert::any_scan(answer)
    }
}

impl ClusterClient for TikvCluster {
    type Claims = TikvClaims;
    type Reads = TikvReads;
    type Sender = TikvSender;
    type Receiver = TikvReceiver;

    async fn list_stores(&self) -> Result<Vec<Store>, Failure> {
        let answer = self
            .inner
            .pd
            .call(Place::Pd, |mut client, header| async move {
                let request = pdpb::GetAllStoresRequest {
                    header: Some(header),
                    exclude_tombstone_stores: false,
                };
                client.get_all_stores(request).await
            })
            .await?;
        Ok(answer.stores.into_iter().map(convert::store).collect())
    }

    async fn scan_regions(
        &self,
        range: KeyRange,
        limit: u32,
    ) -> Result<Vec<ScannedRegion>, Failure> {
        // Zero would mean all regions there are.
        let limit = limit.clamp(1, MAX_SCAN_LIMIT).cast_signed();
        let pd = &self.inner.pd;
        let mut scan = if pd.lacks_batch_scan() {
            self.scan(&range, limit).await?
        } else {
            match self.batch_scan(&range, limit).await {
                Err(failure) if failure.kind == FailureKind::Unsupported => {
                    pd.note_lacking_batch_scan();
                    self.scan(&range, limit).await?
                }
                result => result?,
            }
        };
        convert::tidy_scan(&mut scan, &range);
        Ok(scan)
    }

    async fn list_claims(&self, store: &Store) -> Result<TikvClaims, Failure> {
        let known = self.inner.stores.get(store)?;
        TikvClaims::ask(known.peer, self.inner.options.max_answer_bytes).await
    }

    async fn leader_reads(
        &self,
        store: &Store,
        targets: Vec<ReadTarget>,
    ) -> Result<TikvReads, Failure> {
        let known = self.inner.stores.get(store)?;
        let reader = Reader {
            peer: known.peer,
            store_id: store.id,
            cluster_id: self.cluster_id(),
            max_answer_bytes: self.inner.options.max_answer_bytes,
            manner: known.manner,
        };
        TikvReads::start(reader, targets, self.inner.options.reads_in_flight).await
    }

    async fn open_stream(&self, store: &Store) -> Result<(TikvSender, TikvReceiver), Failure> {
        let known = self.inner.stores.get(store)?;
        let options = &self.inner.options;
        stream::open(
            known.peer,
            options.max_request_bytes,
            options.max_answer_bytes,
        )
        .await
    }
}

/// Reads the endpoints, each once however often it is named.
fn read_endpoints(
    endpoints: impl IntoIterator<Item = impl Into<String>>,
    tls: bool,
) -> Result<Vec<Address>, Error> {
    let mut addresses = Vec::new();
    for endpoint in endpoints {
        let endpoint = endpoint.into();
        let wrong = |why: &str| {
            Error::new(
                ErrorKind::Config,
                format!("PD endpoint {endpoint:?} cannot be used: {why}"),
            )
        };
        let (scheme, address) = Address::parse(&endpoint).map_err(wrong)?;
        if scheme == Scheme::Https && !tls {
            return Err(wrong("it asks for TLS, but no CA certificate is given"));
        }
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        return Err(Error::new(ErrorKind::Config, "no PD endpoint is given"));
    }
    Ok(addresses)
}

/// Asks all endpoints at once, and compares what they say.
async fn learn_cluster_id(peers: &[Arc<Peer>], options: &Options) -> Result<u64, Error> {
    let mut answers: FuturesUnordered<_> = peers
        .iter()
        .map(|peer| async move {
            let answer = timeout(options.connect_timeout, introduce(peer, options)).await;
            (
                peer,
                answer.unwrap_or_else(|_| Err(no_answer(peer, options))),
            )
        })
        .collect();
    let mut failures = Vec::new();
    let mut first: Option<(&Peer, Membership)> = None;
    let mut grace = None;
    loop {
        let next = match grace {
            None => answers.next().await,
            Some(end) => timeout_at(end, answers.next()).await.unwrap_or(None),
        };
        match (next, &first) {
            (None, _) => break,
            (Some((_, Err(failure))), _) => failures.push(failure),
            (Some((peer, Ok(found))), None) => {
                first = Some((peer, found));
                grace = Some(Instant::now() + GRACE);
            }
            (Some((peer, Ok(found))), Some((other, expected))) => {
                if found.cluster_id != expected.cluster_id {
                    return Err(different_clusters(peer, &found, other, expected));
                }
            }
        }
    }
    first
        .map(|(_, membership)| membership.cluster_id)
        .ok_or_else(|| unreachable(&failures))
}

/// Asks one endpoint. One that closes the connection without a word is asked
/// again until it is clear that it does so to everybody it does not know.
async fn introduce(peer: &Arc<Peer>, options: &Options) -> Result<Membership, Failure> {
    let mut answer = members::ask(peer, None, options.max_answer_bytes).await;
    for _ in 1..REFUSALS {
        match &answer {
            Err(failure) if peer.may_yet_refuse(failure.kind) => {
                answer = members::ask(peer, None, options.max_answer_bytes).await;
            }
            _ => break,
        }
    }
    answer
}

fn no_answer(peer: &Peer, options: &Options) -> Failure {
    let words = format!("no answer within {:?}", options.connect_timeout);
    peer.named(Failure::new(FailureKind::Timeout, words))
}

fn different_clusters(a: &Peer, of_a: &Membership, b: &Peer, of_b: &Membership) -> Error {
    Error::new(
        ErrorKind::WrongCluster,
        format!(
            "the PD endpoints belong to different clusters: {} to {}, {} to {}",
            b.address(),
            of_b.cluster_id,
            a.address(),
            of_a.cluster_id
        ),
    )
}

fn unreachable(failures: &[Failure]) -> Error {
    let whole = summary(failures);
    let (kind, words) = match whole.kind {
        FailureKind::Tls => (ErrorKind::Tls, "no TLS connection with PD came about"),
        FailureKind::Unauthenticated => (ErrorKind::Unauthenticated, "PD refuses our identity"),
        FailureKind::WrongService => (ErrorKind::WrongService, "what answers is not PD"),
        FailureKind::WrongCluster => (ErrorKind::WrongCluster, "PD is that of another cluster"),
        FailureKind::Unsupported => (ErrorKind::Unsupported, "PD cannot be used"),
        _ => (ErrorKind::Unreachable, "PD cannot be reached"),
    };
    Error::new(kind, format!("{words}: {}", whole.message)).with_source(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_read_before_anything_is_dialled() {
        let read = |endpoints: &[&str], tls| {
            read_endpoints(endpoints.iter().copied(), tls).map_err(|error| error.kind())
        };
        assert_eq!(read(&[], false), Err(ErrorKind::Config));
        assert_eq!(read(&["pd"], false), Err(ErrorKind::Config));
        assert_eq!(read(&["https://pd:2379"], false), Err(ErrorKind::Config));
        assert!(read(&["https://pd:2379", "http://pd:2379"], true).is_ok_and(|all| all.len() == 1));
    }
}
