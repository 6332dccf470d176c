use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use super::certificates::ServerCertificates;
use super::listener::Listening;
use super::members::Members;
use super::pd::PdService;
use super::stores::StoreListeners;
use crate::pb::pdpb::pd_server::PdServer;
use crate::region::{Store, StoreId};
use crate::sim::fault::FaultPlan;
use crate::sim::hub::Hub;
use crate::sim::layout::Layout;
use crate::sim::model::Cluster;

/// How many members PD has.
const MEMBERS: usize = 3;

/// A simulated cluster that listens.
///
/// It goes on until [`Served::shutdown`]; when it is dropped instead, what
/// listens goes on until the runtime ends.
#[derive(Debug)]
pub struct Served {
    hub: Hub,
    cluster_id: u64,
    members: Arc<Members>,
    pd: Vec<Listening>,
    stores: Arc<StoreListeners>,
    listed: Vec<Store>,
}

impl Served {
    /// Starts a cluster with `layout` that goes through `faults`. PD's first
    /// member, which leads at the start, listens on `listen` (port 0 for a free
    /// one); its other members and the stores listen on free ports of the same
    /// address, of 127.0.0.1 where that is none of its own.
    ///
    /// # Errors
    /// When something cannot listen.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind that matters.
    pub async fn start(
        layout: &Layout,
        faults: FaultPlan,
        seed: u64,
        listen: SocketAddr,
    ) -> io::Result<Self> {
        Self::start_as(layout, faults, seed, listen, None).await
    }

    /// As [`Served::start`], with TLS, and for clients with a certificate only.
    ///
    /// # Errors
    /// When something cannot listen.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind that matters.
    pub async fn start_with_tls(
        layout: &Layout,
        faults: FaultPlan,
        seed: u64,
        listen: SocketAddr,
        certificates: ServerCertificates,
    ) -> io::Result<Self> {
        Self::start_as(layout, faults, seed, listen, Some(certificates)).await
    }

    async fn start_as(
        layout: &Layout,
        faults: FaultPlan,
        seed: u64,
        listen: SocketAddr,
        certificates: Option<ServerCertificates>,
    ) -> io::Result<Self> {
        let hub = Hub::start(layout, faults, seed);
        let cluster_id = cluster_id(seed);
        let ip = if listen.ip().is_unspecified() {
            IpAddr::V4(Ipv4Addr::LOCALHOST)
        } else {
            listen.ip()
        };
        let stores = StoreListeners::new(hub.clone(), ip, cluster_id, certificates.clone());
        let members = Arc::new(Members::default());
        let mut served = Self {
            hub,
            cluster_id,
            members,
            pd: Vec::with_capacity(MEMBERS),
            stores: Arc::new(stores),
            listed: layout.stores.clone(),
        };
        match served.listen(listen, ip, certificates.as_ref()) {
            Ok(()) => Ok(served),
            Err(error) => {
                served.shutdown().await;
                Err(error)
            }
        }
    }

    fn listen(
        &mut self,
        first: SocketAddr,
        ip: IpAddr,
        certificates: Option<&ServerCertificates>,
    ) -> io::Result<()> {
        for store in &mut self.listed {
            if let Some(address) = self.stores.address(store)? {
                store.address = address;
            }
        }
        for me in 0..MEMBERS {
            let service = PdService {
                hub: self.hub.clone(),
                cluster_id: self.cluster_id,
                members: Arc::clone(&self.members),
                stores: Arc::clone(&self.stores),
                me,
            };
            let address = if me == 0 {
                first
            } else {
                SocketAddr::new(ip, 0)
            };
            self.pd
                .push(Listening::start(address, certificates, |server| {
                    server.add_service(PdServer::new(service))
                })?);
        }
        let addresses = self.pd.iter().map(Listening::address);
        self.members.set(addresses, certificates.is_some());
        Ok(())
    }

    /// Returns the cluster's id.
    pub fn cluster_id(&self) -> u64 {
        self.cluster_id
    }

    /// Returns where PD's first member listens, `host:port`.
    pub fn pd_endpoint(&self) -> String {
        self.pd_endpoints().into_iter().next().unwrap_or_default()
    }

    /// Returns where PD's members listen, each `host:port`.
    pub fn pd_endpoints(&self) -> Vec<String> {
        let addresses = self.pd.iter().map(Listening::address);
        addresses.map(|address| address.to_string()).collect()
    }

    /// Returns the stores that the cluster started with, with the addresses at
    /// which they listen.
    pub fn stores(&self) -> &[Store] {
        &self.listed
    }

    /// Looks at the model, or changes it, at the present moment, which is its
    /// [`Cluster::now`]: to ask the oracle, or to let something go wrong.
    pub fn with_model<R>(&self, look: impl FnOnce(&mut Cluster) -> R) -> R {
        self.hub.with_model(look)
    }

    /// Lets the next member of PD lead.
    pub fn move_pd_leader(&self) {
        self.members.move_on();
    }

    /// Breaks every connection that clients have to a store.
    pub fn break_connections(&self, store: StoreId) {
        self.stores.break_connections(store);
    }

    /// Stops listening, breaks all connections, and waits until nothing is left
    /// of them.
    ///
    /// # Cancel safety
    /// What was not stopped yet when the future is dropped goes on listening.
    pub async fn shutdown(self) {
        for listening in self.pd {
            listening.stop().await;
        }
        for listening in self.stores.take() {
            listening.stop().await;
        }
    }
}

/// Makes up an id that looks like PD's: 63 bits, never 0.
fn cluster_id(seed: u64) -> u64 {
    (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1) | 1
}
