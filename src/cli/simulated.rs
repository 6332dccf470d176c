use std::net::SocketAddr;
use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};

use super::args::ClusterArgs;
use super::output::{Event, ServedStore};
use super::seed::fresh_seed;
use crate::sim::fault::FaultLevel;
use crate::sim::server::{Served, ServerCertificates};

/// A simulated cluster that is served from a runtime of its own, so that it
/// and the program do not wait for each other.
#[derive(Debug)]
pub(super) struct Simulated {
    pub(super) served: Arc<Served>,
    pub(super) seed: u64,
    regions: usize,
    level: FaultLevel,
    faults: String,
    runtime: Runtime,
}

/// Why there is no cluster.
#[derive(Debug)]
pub(super) enum NoCluster {
    /// The options are wrong.
    Config(String),
    /// The system gives no runtime or no port.
    System(String),
}

impl Simulated {
    /// Starts the cluster that the options describe, with PD on `listen`, behind
    /// TLS if there are `certificates`.
    pub(super) async fn start(
        args: &ClusterArgs,
        listen: SocketAddr,
        certificates: Option<ServerCertificates>,
    ) -> Result<Self, NoCluster> {
        let seed = args.seed.unwrap_or_else(fresh_seed);
        let layout = args.layout(seed).map_err(NoCluster::Config)?;
        let plan = args.plan(seed);
        let regions = layout.regions.len();
        let faults = plan.to_string();
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("cluster")
            .enable_all()
            .build()
            .map_err(|error| NoCluster::System(format!("the system gives no runtime: {error}")))?;
        let started = runtime
            .spawn(async move {
                match certificates {
                    None => Served::start(&layout, plan, seed, listen).await,
                    Some(certificates) => {
                        Served::start_with_tls(&layout, plan, seed, listen, certificates).await
                    }
                }
            })
            .await;
        let served = match started {
            Ok(Ok(served)) => Arc::new(served),
            Ok(Err(error)) => {
                runtime.shutdown_background();
                let message = format!("the simulated cluster cannot listen on {listen}: {error}");
                let is_chosen = listen != SocketAddr::from(([127, 0, 0, 1], 0));
                return Err(if is_chosen {
                    NoCluster::Config(message)
                } else {
                    NoCluster::System(message)
                });
            }
            Err(error) => {
                runtime.shutdown_background();
                return Err(NoCluster::System(format!(
                    "the simulated cluster does not start: {error}"
                )));
            }
        };
        Ok(Self {
            served,
            seed,
            regions,
            level: args.faults,
            faults,
            runtime,
        })
    }

    /// Returns the line that says where it is.
    pub(super) fn serving(&self) -> Event {
        Event::Serving {
            pd: self.served.pd_endpoint(),
            stores: self
                .served
                .stores()
                .iter()
                .map(|store| ServedStore {
                    id: store.id.0,
                    address: store.address.clone(),
                })
                .collect(),
            regions: self.regions,
            seed: self.seed,
            faults: self.faults.clone(),
        }
    }

    /// Returns what people want to know of it.
    pub(super) fn note(&self) -> String {
        let mut note = format!(
            "simulated cluster: {} stores, {} regions, PD at {}; repeat with --seed {}",
            self.served.stores().len(),
            self.regions,
            self.served.pd_endpoint(),
            self.seed
        );
        if self.level != FaultLevel::None {
            note.push_str(&format!("\n            {}", self.faults));
        }
        note
    }

    /// Ends it.
    pub(super) fn stop(self) {
        self.runtime.shutdown_background();
    }
}
