use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::stream::{FuturesUnordered, StreamExt};
use tonic::transport::Channel;
use tonic::{Response, Status};

use super::address::{Address, Scheme};
use super::dial::Dialer;
use super::members::{self, Membership};
use super::peer::Peer;
use super::status::Place;
use crate::error::{Failure, FailureKind};
use crate::pb::pdpb::pd_client::PdClient;
use crate::pb::pdpb::{self, RequestHeader, ResponseHeader};

/// How many members are remembered beside those that were named at the start.
const MAX_KNOWN: usize = 64;

/// The PD of one cluster: follows its leader.
#[derive(Debug)]
pub(super) struct Pd {
    dialer: Dialer,
    cluster_id: u64,
    known: Mutex<BTreeMap<Address, Arc<Peer>>>,
    leader: Mutex<Option<Leader>>,
}

/// The member that leads, as far as is known, and what it lacks.
#[derive(Clone, Debug)]
pub(super) struct Leader {
    peer: Arc<Peer>,
    lacks_batch_scan: Arc<AtomicBool>,
}

impl Leader {
    fn new(peer: Arc<Peer>) -> Self {
        Self {
            peer,
            lacks_batch_scan: Arc::new(AtomicBool::new(false)),
        }
    }
}

/// An answer of PD: all have a header.
pub(super) trait Answer {
    fn header(&self) -> Option<&ResponseHeader>;
}

macro_rules! answers {
    ($($name:ident),*) => {$(
        impl Answer for pdpb::$name {
            fn header(&self) -> Option<&ResponseHeader> {
                self.header.as_ref()
            }
        }
    )*};
}

answers!(
    GetAllStoresResponse,
    ScanRegionsResponse,
    BatchScanRegionsResponse,
    GetMinTsResponse
);

impl Pd {
    pub(super) fn new(dialer: Dialer, cluster_id: u64, peers: Vec<Arc<Peer>>) -> Self {
        let known = peers
            .into_iter()
            .map(|peer| (peer.address().clone(), peer))
            .collect();
        Self {
            dialer,
            cluster_id,
            known: Mutex::new(known),
            leader: Mutex::new(None),
        }
    }

    pub(super) fn cluster_id(&self) -> u64 {
        self.cluster_id
    }

    /// Makes one call to the leader. When it turns out that it leads no more, or
    /// is gone, the new one is looked for and asked, once.
    ///
    /// # Cancel safety
    /// A call that is dropped makes the next one look for the leader anew.
    pub(super) async fn call<T, F, Fut>(&self, place: Place, call: F) -> Result<T, Failure>
    where
        T: Answer,
        F: Fn(PdClient<Channel>, RequestHeader) -> Fut,
        Fut: Future<Output = Result<Response<T>, Status>>,
    {
        let leader = self.leader().await?;
        match self.call_at(&leader, place, &call).await {
            Err(failure) if is_about_leader(failure.kind) => {
                let leader = self.leader().await?;
                self.call_at(&leader, place, &call).await
            }
            result => result,
        }
    }

    /// Whether the present leader was found to lack `BatchScanRegions`.
    pub(super) fn lacks_batch_scan(&self) -> bool {
        self.present_leader()
            .is_some_and(|leader| leader.lacks_batch_scan.load(Ordering::Relaxed))
    }

    /// Remembers that the present leader lacks `BatchScanRegions`.
    pub(super) fn note_lacking_batch_scan(&self) {
        if let Some(leader) = self.present_leader() {
            leader.lacks_batch_scan.store(true, Ordering::Relaxed);
        }
    }

    async fn call_at<T, F, Fut>(
        &self,
        leader: &Leader,
        place: Place,
        call: &F,
    ) -> Result<T, Failure>
    where
        T: Answer,
        F: Fn(PdClient<Channel>, RequestHeader) -> Fut,
        Fut: Future<Output = Result<Response<T>, Status>>,
    {
        let mut doubt = Doubt { pd: Some(self) };
        let limit = self.dialer.options().max_answer_bytes;
        let result = leader
            .peer
            .call(place, |channel| {
                let client = PdClient::new(channel).max_decoding_message_size(limit);
                call(client, members::request_header(self.cluster_id))
            })
            .await;
        let result = result.and_then(|(response, _)| {
            let answer = response.into_inner();
            match members::check_header(answer.header(), Some(self.cluster_id)) {
                Ok(_) => Ok(answer),
                Err(failure) => Err(leader.peer.named(failure)),
            }
        });
        let stays = match &result {
            Ok(_) => true,
            Err(failure) => failure.kind == FailureKind::Unsupported,
        };
        if stays {
            doubt.pd = None;
        }
        result
    }

    fn present_leader(&self) -> Option<Leader> {
        lock(&self.leader).clone()
    }

    async fn leader(&self) -> Result<Leader, Failure> {
        if let Some(leader) = self.present_leader() {
            return Ok(leader);
        }
        let found = Leader::new(self.find_leader().await?);
        *lock(&self.leader) = Some(found.clone());
        Ok(found)
    }

    /// Asks all known members at once who leads, and takes the first leader that
    /// can be dialled. Where none can, the member that answered is taken: it may
    /// be the leader under another name, as behind a forwarded port.
    async fn find_leader(&self) -> Result<Arc<Peer>, Failure> {
        let peers: Vec<_> = lock(&self.known).values().cloned().collect();
        let limit = self.dialer.options().max_answer_bytes;
        let mut answers: FuturesUnordered<_> = peers
            .into_iter()
            .map(|peer| async move {
                let membership = members::ask(&peer, Some(self.cluster_id), limit).await;
                (peer, membership)
            })
            .collect();
        let mut failures = Vec::new();
        let mut stand_in = None;
        while let Some((peer, membership)) = answers.next().await {
            match membership {
                Ok(membership) => match self.dial_leader(&peer, &membership).await {
                    Ok(leader) => return Ok(leader),
                    Err(failure) => {
                        failures.push(failure);
                        stand_in.get_or_insert(peer);
                    }
                },
                Err(failure) => failures.push(failure),
            }
        }
        stand_in.ok_or_else(|| summary(&failures))
    }

    async fn dial_leader(
        &self,
        answering: &Arc<Peer>,
        membership: &Membership,
    ) -> Result<Arc<Peer>, Failure> {
        self.remember(membership);
        let mut urls = membership.leader.iter();
        if urls.any(|(_, address)| address == answering.address()) {
            return Ok(answering.clone());
        }
        let mut last = Failure::new(
            FailureKind::Unavailable,
            format!("{}: PD has no leader now", answering.address()),
        );
        for (scheme, address) in &membership.leader {
            if *scheme == Scheme::Https && !self.dialer.is_tls() {
                last = Failure::new(
                    FailureKind::Tls,
                    format!("PD's leader listens at https://{address}, but TLS is not configured"),
                );
                continue;
            }
            let peer = self.peer(address);
            match peer.connection().await {
                Ok(_) => return Ok(peer),
                Err(failure) => last = failure,
            }
        }
        Err(last)
    }

    /// Keeps the members' addresses, so that the leader is still found when the
    /// endpoints that were named at the start are gone.
    fn remember(&self, membership: &Membership) {
        for (scheme, address) in &membership.members {
            if *scheme != Scheme::Https || self.dialer.is_tls() {
                self.peer(address);
            }
        }
    }

    fn peer(&self, address: &Address) -> Arc<Peer> {
        let mut known = lock(&self.known);
        if let Some(peer) = known.get(address) {
            return peer.clone();
        }
        let peer = Arc::new(Peer::pd_member(address.clone(), self.dialer.clone()));
        if known.len() < MAX_KNOWN {
            known.insert(address.clone(), peer.clone());
        }
        peer
    }
}

/// Forgets the leader when a call to it fails or is dropped.
struct Doubt<'a> {
    pd: Option<&'a Pd>,
}

impl Drop for Doubt<'_> {
    fn drop(&mut self) {
        if let Some(pd) = self.pd {
            *lock(&pd.leader) = None;
        }
    }
}

/// Whether asking another member can help.
const fn is_about_leader(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::Unavailable | FailureKind::Transport | FailureKind::Cancelled
    )
}

/// Makes one failure of those of several servers. As long as one of them may
/// answer later, the whole may.
pub(super) fn summary(failures: &[Failure]) -> Failure {
    let kind = if failures.iter().all(|failure| is_lasting(failure.kind)) {
        failures.first().map(|failure| failure.kind)
    } else {
        None
    };
    let words: Vec<_> = failures
        .iter()
        .map(|failure| failure.message.as_str())
        .collect();
    Failure::new(kind.unwrap_or(FailureKind::Unavailable), words.join("; "))
}

const fn is_lasting(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::Tls
            | FailureKind::Unauthenticated
            | FailureKind::WrongService
            | FailureKind::WrongCluster
            | FailureKind::Unsupported
    )
}

/// Nothing panics while one of these is locked, so what a poisoned one holds is
/// sound.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_lasts_only_when_all_do() {
        use FailureKind as Kind;
        for (kinds, expected) in [
            (vec![Kind::Tls, Kind::WrongService], Kind::Tls),
            (vec![Kind::Tls, Kind::Transport], Kind::Unavailable),
            (vec![Kind::Timeout], Kind::Unavailable),
            (vec![], Kind::Unavailable),
        ] {
            let failures: Vec<_> = kinds
                .into_iter()
                .map(|kind| Failure::new(kind, kind_words(kind)))
                .collect();
            let whole = summary(&failures);
            assert_eq!(whole.kind, expected, "{failures:?}");
            for failure in &failures {
                assert!(whole.message.contains(&failure.message));
            }
        }
    }

    fn kind_words(kind: FailureKind) -> String {
        format!("{kind:?}")
    }
}
