use snapshot_prepare::cluster::ClusterClient;
use snapshot_prepare::driver::Preparer;
use snapshot_prepare::machine::Config;
use snapshot_prepare::region::Store;
use snapshot_prepare::tikv::{Options, Security, TikvCluster};

use super::{Target, runtime};

async fn connect(pd: &str) -> TikvCluster {
    let connecting = TikvCluster::connect([pd], Security::none(), Options::default());
    connecting.await.expect("PD answers")
}

/// Returns the stores as PD lists them.
pub(super) fn stores(pd: &str) -> Vec<Store> {
    runtime().block_on(async { connect(pd).await.list_stores().await.expect("PD answers") })
}

/// Panics if no good hold comes of it, or one of fewer regions than there are.
pub(super) fn prepare(target: &Target) {
    let config = Config {
        window: target.window,
        ..Config::default()
    };
    runtime().block_on(async {
        let preparer = Preparer::builder(connect(&target.pd).await).config(config);
        let preparer = preparer.build().expect("a sound configuration");
        let hold = preparer.prepare().await.expect("a hold");
        assert_eq!(hold.report().regions, target.layout.regions.len() as u64);
        hold.finish().await.expect("a good verdict");
    });
}
