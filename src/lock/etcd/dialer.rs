use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use etcd_client::{Channel, Client, ConnectOptions};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tonic::codegen::Service;
use tonic::codegen::http::Uri;
use tonic::transport::Endpoint;

use super::address::Address;
use super::config::EtcdConfig;
use super::failure::{Failure, FailureKind, of_transport};

/// How long a connection may lie silent before it is asked for a sign of life,
/// and how long that may take.
const PING_INTERVAL: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// Makes connections to the members in turn, each with certificates read anew
/// and a fresh login.
pub(super) struct Dialer {
    config: EtcdConfig,
    /// The member to try next.
    next: AtomicUsize,
}

/// A connection to one member.
pub(super) struct Connection {
    pub(super) client: Client,
    member: usize,
}

impl Dialer {
    pub(super) fn new(config: EtcdConfig) -> Self {
        Self {
            config,
            next: AtomicUsize::new(0),
        }
    }

    pub(super) fn config(&self) -> &EtcdConfig {
        &self.config
    }

    /// Connects to the next member. The one after it has its turn if this one
    /// does not prove good, whatever the reason: see [`Dialer::prefer`].
    pub(super) async fn dial(&self, budget: Duration) -> Result<Connection, Failure> {
        let endpoints = &self.config.endpoints;
        let member = self.next.load(Ordering::Relaxed) % endpoints.len();
        self.avoid(member);
        let address = &endpoints[member];
        let connected = self.connect(address, budget).await;
        let client = connected.map_err(|failure| failure.within(address.authority()))?;
        Ok(Connection { client, member })
    }

    /// Notes that the member of this connection has answered.
    pub(super) fn prefer(&self, connection: &Connection) {
        self.next.store(connection.member, Ordering::Relaxed);
    }

    /// Notes that the connection is about to be used: until it answers, others
    /// are better.
    pub(super) fn distrust(&self, connection: &Connection) {
        self.avoid(connection.member);
    }

    /// Returns the address of the connection's member.
    pub(super) fn address(&self, connection: &Connection) -> &str {
        self.config.endpoints[connection.member].authority()
    }

    fn avoid(&self, member: usize) {
        self.next.store(member + 1, Ordering::Relaxed);
    }

    async fn connect(&self, address: &Address, budget: Duration) -> Result<Client, Failure> {
        let endpoint = self.endpoint(address, budget).await?;
        let channel = endpoint
            .connect_with_connector(Once::new(address))
            .await
            .map_err(|error| of_transport(&error))?;
        // So that a member that lost its leader says so instead of being silent.
        let options = ConnectOptions::new().with_require_leader(true);
        let plain = Channel::Tonic(channel);
        let Some(login) = &self.config.login else {
            return Ok(Client::from_channel(plain, Some(options)).await?);
        };
        let with_user = options.clone().with_user(&login.user, &login.password);
        let client = Client::from_channel(plain.clone(), Some(with_user)).await;
        match client.map_err(Failure::from) {
            Err(failure) if failure.kind == FailureKind::LoginNotWanted => {
                Ok(Client::from_channel(plain, Some(options)).await?)
            }
            client => client,
        }
    }

    async fn endpoint(&self, address: &Address, budget: Duration) -> Result<Endpoint, Failure> {
        // A file that cannot be read just now may be in the middle of a rotation.
        let tls = match &self.config.tls {
            Some(tls) => Some(tls.load().await.map_err(Failure::unreachable)?),
            None => None,
        };
        let scheme = if tls.is_some() { "https" } else { "http" };
        let endpoint = Endpoint::from_shared(format!("{scheme}://{}", address.authority()))
            .and_then(|endpoint| {
                endpoint.user_agent(concat!("snapshot-prepare/", env!("CARGO_PKG_VERSION")))
            })
            .map_err(|error| of_transport(&error))?
            .connect_timeout(budget)
            .http2_keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT);
        match tls {
            Some(tls) => endpoint
                .tls_config(tls.domain_name(address.host()))
                .map_err(|error| of_transport(&error)),
            None => Ok(endpoint),
        }
    }
}

/// Connects once. Left to itself the transport would make a lost connection anew
/// behind our back, with the certificates, the login and the member of before.
struct Once {
    host: String,
    port: u16,
    is_used: bool,
}

impl Once {
    fn new(address: &Address) -> Self {
        Self {
            host: address.host().to_owned(),
            port: address.port(),
            is_used: false,
        }
    }
}

impl Service<Uri> for Once {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        if std::mem::replace(&mut self.is_used, true) {
            let lost = io::Error::new(io::ErrorKind::NotConnected, "the connection was lost");
            return Box::pin(std::future::ready(Err(lost)));
        }
        let (host, port) = (self.host.clone(), self.port);
        Box::pin(async move {
            let stream = TcpStream::connect((host, port)).await?;
            stream.set_nodelay(true)?;
            Ok(TokioIo::new(stream))
        })
    }
}
