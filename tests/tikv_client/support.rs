use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use snapshot_prepare::region::{Store, StoreId};
use snapshot_prepare::tikv::{Options, Security, TikvCluster};
use tokio::net::TcpListener;

/// Far longer than anything here takes; only a hang gets there.
const HANG: Duration = Duration::from_secs(30);

/// Fails the test instead of hanging with it.
pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(HANG, future)
        .await
        .expect("nothing came for half a minute")
}

/// A listener on a port of its own.
pub(crate) async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("bound");
    (listener, address)
}

/// An address on which nothing listens.
pub(crate) async fn dead_address() -> SocketAddr {
    listen().await.1
}

pub(crate) async fn connect(endpoint: impl ToString) -> TikvCluster {
    soon(TikvCluster::connect(
        [endpoint.to_string()],
        Security::none(),
        Options::default(),
    ))
    .await
    .expect("PD is there")
}

pub(crate) fn store_at(address: impl ToString) -> Store {
    Store {
        id: StoreId(1),
        address: address.to_string(),
        ..Store::default()
    }
}

/// A runtime of its own for a server, so that stopping it breaks its connections.
pub(crate) struct Host(Option<tokio::runtime::Runtime>);

impl Host {
    /// Runs what `serve` makes of the listener.
    pub(crate) fn start<F>(
        listener: TcpListener,
        serve: impl FnOnce(TcpListener) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = listener.into_std().expect("a socket");
        runtime.spawn(async move {
            serve(TcpListener::from_std(listener).expect("a socket")).await;
        });
        Self(Some(runtime))
    }

    /// Returns once nothing of the server is left.
    pub(crate) async fn stop(&mut self) {
        if let Some(runtime) = self.0.take() {
            tokio::task::spawn_blocking(move || runtime.shutdown_timeout(HANG))
                .await
                .expect("it stops");
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
