use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::stream::{self, Stream};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tonic::transport::Server;
use tonic::transport::server::Router;

use super::certificates::ServerCertificates;
use super::socket::{Breaker, Socket};

/// How many calls a connection may have under way; TiKV's default.
const CALLS_PER_CONNECTION: u32 = 1024;

/// Something that listens, with all its connections.
#[derive(Debug)]
pub(super) struct Listening {
    address: SocketAddr,
    connections: Arc<Connections>,
    stop: Arc<Notify>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Connections(Mutex<Vec<Breaker>>);

impl Listening {
    /// Binds `address` and serves what `services` puts together there, with TLS
    /// if there are `certificates`.
    pub(super) fn start(
        address: SocketAddr,
        certificates: Option<&ServerCertificates>,
        services: impl FnOnce(&mut Server) -> Router,
    ) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let address = listener.local_addr()?;
        let connections = Arc::new(Connections::default());
        let stop = Arc::new(Notify::new());
        let mut server = Server::builder()
            .max_concurrent_streams(CALLS_PER_CONNECTION)
            // A client that gives up on many reads at once is no attack here.
            .http2_max_pending_accept_reset_streams(Some(CALLS_PER_CONNECTION as usize));
        if let Some(certificates) = certificates {
            server = certificates.secure(server)?;
        }
        let router = services(&mut server);
        let incoming = accept(listener, Arc::clone(&connections));
        let stopped = Arc::clone(&stop);
        let task = tokio::spawn(async move {
            let stopped = async move { stopped.notified().await };
            // It ends with an error when accepting fails for good, which the
            // stream of connections never says.
            let _ = router.serve_with_incoming_shutdown(incoming, stopped).await;
        });
        Ok(Self {
            address,
            connections,
            stop,
            task,
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Breaks every connection that is there now.
    pub(super) fn break_connections(&self) {
        self.connections.trip_all();
    }

    /// Stops listening, breaks all connections, and waits until nothing is left
    /// of it.
    pub(super) async fn stop(self) {
        self.stop.notify_one();
        let mut task = self.task;
        loop {
            // One that was accepted just before may not be on the list yet.
            self.connections.trip_all();
            tokio::select! {
                _ = &mut task => return,
                () = tokio::time::sleep(Duration::from_millis(20)) => {}
            }
        }
    }
}

impl Connections {
    fn add(&self, breaker: Breaker) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.retain(|old| !old.is_unused());
        list.push(breaker);
    }

    fn trip_all(&self) {
        let list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.iter().for_each(Breaker::trip);
    }
}

/// Returns the connections that come in; it never ends by itself.
fn accept(
    listener: TcpListener,
    connections: Arc<Connections>,
) -> impl Stream<Item = io::Result<Socket>> {
    stream::unfold(
        (listener, connections),
        |(listener, connections)| async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        // One that is gone already is none.
                        if let Ok(socket) = Socket::new(stream) {
                            connections.add(socket.breaker());
                            return Some((Ok(socket), (listener, connections)));
                        }
                    }
                    // Too many open files, say: better luck a little later.
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        },
    )
}
