use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tonic::transport::{Channel, Endpoint};

use super::address::Address;
use super::status::dial_failure;
use super::{Options, Security};
use crate::error::{Failure, FailureKind};

/// Makes connections, each with key material read anew.
#[derive(Clone, Debug)]
pub(super) struct Dialer {
    security: Security,
    options: Arc<Options>,
}

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// One prepare stream: windows as the library has them.
    Stream,
    /// Listings, reads and PD's calls: a large connection window.
    Calls,
}

/// A connection that stands, and what is known of it.
#[derive(Debug)]
pub(super) struct Connection {
    channel: Channel,
    /// Where its tasks run: another runtime may not be driven any more.
    runtime: tokio::runtime::Id,
    answers: AtomicU64,
    broken: AtomicBool,
    counted: AtomicBool,
}

impl Dialer {
    pub(super) fn new(security: Security, options: Options) -> Self {
        Self {
            security,
            options: Arc::new(options),
        }
    }

    pub(super) fn options(&self) -> &Options {
        &self.options
    }

    pub(super) fn is_tls(&self) -> bool {
        self.security.is_tls()
    }

    pub(super) fn has_identity(&self) -> bool {
        self.security.has_identity()
    }

    /// Connects, with TLS when it is on. The connection stands when this returns
    /// `Ok`, though with TLS 1.3 the server may not have looked at the client's
    /// certificate yet.
    pub(super) async fn dial(
        &self,
        address: &Address,
        purpose: Purpose,
    ) -> Result<Connection, Failure> {
        let endpoint = self.endpoint(address, purpose).await?;
        let channel = endpoint
            .connect()
            .await
            .map_err(|error| dial_failure(&error))?;
        Ok(Connection {
            channel,
            runtime: tokio::runtime::Handle::current().id(),
            answers: AtomicU64::new(0),
            broken: AtomicBool::new(false),
            counted: AtomicBool::new(false),
        })
    }

    async fn endpoint(&self, address: &Address, purpose: Purpose) -> Result<Endpoint, Failure> {
        // A file that cannot be read just now may be in the middle of a rotation,
        // so this is no permanent failure; at the start it is found by `check`.
        let unusable = |wrong: String| Failure::new(FailureKind::Unavailable, wrong);
        let options = &self.options;
        let tls = self.security.load().await.map_err(unusable)?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let mut endpoint = Endpoint::from_shared(format!("{scheme}://{}", address.authority()))
            .and_then(|endpoint| {
                endpoint.user_agent(concat!("snapshot-prepare/", env!("CARGO_PKG_VERSION")))
            })
            .map_err(|error| unusable(super::status::chain(&error)))?
            .connect_timeout(options.connect_timeout)
            .tcp_nodelay(true)
            .keep_alive_timeout(options.keepalive_timeout)
            .keep_alive_while_idle(false);
        if let Some(interval) = options.keepalive_interval {
            endpoint = endpoint.http2_keep_alive_interval(interval);
        }
        if purpose == Purpose::Calls {
            endpoint = endpoint.initial_connection_window_size(options.connection_window);
        }
        if let Some(tls) = tls {
            let tls = tls
                .domain_name(address.host())
                .timeout(options.connect_timeout);
            endpoint = endpoint
                .tls_config(tls)
                .map_err(|error| dial_failure(&error))?;
        }
        Ok(endpoint)
    }
}

impl Connection {
    pub(super) fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// Notes that the server said something.
    pub(super) fn note_answer(&self) {
        self.answers.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how often the server said something.
    pub(super) fn answers(&self) -> u64 {
        self.answers.load(Ordering::Relaxed)
    }

    /// Takes it out of use for later calls.
    pub(super) fn give_up(&self) {
        self.broken.store(true, Ordering::Relaxed);
    }

    /// Returns whether a call of the present runtime may use it.
    pub(super) fn is_usable(&self) -> bool {
        !self.broken.load(Ordering::Relaxed)
            && self.runtime == tokio::runtime::Handle::current().id()
    }

    /// Returns whether it was lost before the server said anything; true once
    /// only, however many calls were on it.
    pub(super) fn is_first_unanswered_loss(&self) -> bool {
        self.answers() == 0 && !self.counted.swap(true, Ordering::Relaxed)
    }
}
