//! The whole client, and one that sends the same waits and reads and only counts
//! the answers, each against a served cluster on a runtime with one thread.

mod counting;
mod whole;

use counting::Manner;
use snapshot_prepare::region::Store;
use snapshot_prepare::sim::layout::Layout;
use tokio::runtime::{Builder, Runtime};

/// What both clients are told.
pub(crate) struct Target {
    /// Where PD is.
    pub(crate) pd: String,
    pub(crate) layout: Layout,
    /// The stores with the addresses at which they listen.
    pub(crate) stores: Vec<Store>,
    /// Waits in flight per store.
    pub(crate) window: u32,
}

impl Target {
    /// Asks PD for the stores.
    pub(crate) fn new(pd: &str, layout: Layout, window: u32) -> Self {
        Self {
            pd: pd.to_owned(),
            layout,
            stores: whole::stores(pd),
            window,
        }
    }

    /// Prepares, holds and releases with this crate's client.
    pub(crate) fn prepare(&self) {
        whole::prepare(self);
    }

    /// Sends the same waits and reads, each read a call of its own, and counts
    /// the answers.
    pub(crate) fn count(&self) {
        counting::count(self, Manner::default());
    }

    /// The same with many reads in a message.
    pub(crate) fn count_in_messages(&self) {
        counting::count(
            self,
            Manner {
                reads_in_messages: true,
                ..Manner::default()
            },
        );
    }

    /// The same, and lists the claims of all stores twice, as the whole client
    /// has to.
    pub(crate) fn count_and_list(&self) {
        counting::count(
            self,
            Manner {
                lists: true,
                ..Manner::default()
            },
        );
    }
}

fn runtime() -> Runtime {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("the system gives a runtime")
}
