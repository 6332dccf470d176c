use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};

use super::certificates::ServerCertificates;
use super::listener::Listening;
use super::store::StoreService;
use crate::pb::backup::backup_server::BackupServer;
use crate::pb::tikvpb::tikv_server::TikvServer;
use crate::region::{Store, StoreId, StoreState};
use crate::sim::hub::Hub;

/// The listeners of the stores. A store that joins gets one when it is first
/// spoken of.
#[derive(Debug)]
pub(super) struct StoreListeners {
    hub: Hub,
    ip: IpAddr,
    cluster_id: u64,
    certificates: Option<ServerCertificates>,
    listening: Mutex<BTreeMap<StoreId, Listening>>,
}

impl StoreListeners {
    pub(super) fn new(
        hub: Hub,
        ip: IpAddr,
        cluster_id: u64,
        certificates: Option<ServerCertificates>,
    ) -> Self {
        Self {
            hub,
            ip,
            cluster_id,
            certificates,
            listening: Mutex::default(),
        }
    }

    /// Returns where a store listens; a tombstone does not, and keeps the
    /// address it had.
    pub(super) fn address(&self, store: &Store) -> io::Result<Option<String>> {
        let mut listening = self
            .listening
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(listener) = listening.get(&store.id) {
            return Ok(Some(listener.address().to_string()));
        }
        if store.state == StoreState::Tombstone {
            return Ok(None);
        }
        let listener = self.listen(store.id)?;
        let address = listener.address().to_string();
        listening.insert(store.id, listener);
        Ok(Some(address))
    }

    fn listen(&self, store: StoreId) -> io::Result<Listening> {
        let service = StoreService {
            hub: self.hub.clone(),
            store,
            cluster_id: self.cluster_id,
        };
        // Real stores have no limit either.
        let backup = BackupServer::new(service.clone()).max_decoding_message_size(usize::MAX);
        let tikv = TikvServer::new(service).max_decoding_message_size(usize::MAX);
        let address = SocketAddr::new(self.ip, 0);
        Listening::start(address, self.certificates.as_ref(), |server| {
            server.add_service(backup).add_service(tikv)
        })
    }

    /// Breaks every connection to a store.
    pub(super) fn break_connections(&self, store: StoreId) {
        let listening = self
            .listening
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(listener) = listening.get(&store) {
            listener.break_connections();
        }
    }

    /// Takes out all listeners.
    pub(super) fn take(&self) -> Vec<Listening> {
        let mut listening = self
            .listening
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *listening).into_values().collect()
    }
}
