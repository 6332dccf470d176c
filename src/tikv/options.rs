use std::time::Duration;

use crate::error::{Error, ErrorKind};

/// How the client talks to PD and the stores. Start from the defaults and set
/// what shall be different:
///
/// ```
/// # use snapshot_prepare::tikv::Options;
/// let mut options = Options::default();
/// options.reads_in_flight = 32;
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Options {
    /// How long a TCP connection, and again a TLS handshake, may take; in
    /// [`TikvCluster::connect`](super::TikvCluster::connect) also how long a PD
    /// endpoint may take to answer. 5 s.
    pub connect_timeout: Duration,
    /// How often a connection with calls on it is pinged, `None` for never.
    /// Idle connections are not pinged. 10 s, as TiDB's own clients do.
    pub keepalive_interval: Option<Duration>,
    /// How long the answer to a ping may take before the connection counts as
    /// broken. 20 s: a busy store may take long, and what tells whether a lease is
    /// in force are its renewals.
    pub keepalive_timeout: Duration,
    /// The largest request sent on a prepare stream, in bytes with the five of
    /// its frame; larger ones are split, down to one region each. 3 MiB: servers
    /// that keep gRPC's default refuse what is above 4 MiB.
    pub max_request_bytes: usize,
    /// The largest single answer that is accepted, in bytes. It bounds what a
    /// page of a region scan may take. 64 MiB.
    pub max_answer_bytes: usize,
    /// How many leader reads are under way at once in one call of
    /// [`leader_reads`](crate::cluster::ClusterClient::leader_reads). A store that
    /// takes them only one by one is asked at most 64 at a time. 512.
    pub reads_in_flight: usize,
    /// The HTTP/2 window, in bytes, of the connections that carry listings and
    /// reads. Half of it is what the HTTP/2 library grants to small answers that
    /// lie unread, at 256 bytes each, before it closes the connection. 64 MiB.
    pub connection_window: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            keepalive_interval: Some(Duration::from_secs(10)),
            keepalive_timeout: Duration::from_secs(20),
            max_request_bytes: 3 << 20,
            max_answer_bytes: 64 << 20,
            reads_in_flight: 512,
            connection_window: 64 << 20,
        }
    }
}

/// The largest window that HTTP/2 knows.
const MAX_WINDOW: u32 = (1 << 31) - 1;
/// The window that every HTTP/2 connection starts with.
const MIN_WINDOW: u32 = 65_535;

impl Options {
    /// Says what cannot work, before anything is dialled.
    pub(super) fn check(&self) -> Result<(), Error> {
        let wrong = if self.connect_timeout.is_zero() {
            "connect_timeout must not be zero"
        } else if self.keepalive_interval.is_some_and(|every| every.is_zero()) {
            "keepalive_interval must not be zero"
        } else if self.keepalive_timeout.is_zero() {
            "keepalive_timeout must not be zero"
        } else if self.max_request_bytes == 0 || self.max_answer_bytes == 0 {
            "max_request_bytes and max_answer_bytes must not be zero"
        } else if self.reads_in_flight == 0 {
            "reads_in_flight must not be zero"
        } else if !(MIN_WINDOW..=MAX_WINDOW).contains(&self.connection_window) {
            "connection_window must lie between 65535 and 2147483647 bytes"
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::Config, wrong))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_work_and_zeros_do_not() {
        assert_eq!(Options::default().check(), Ok(()));
        let spoils: [fn(&mut Options); 8] = [
            |options| options.connect_timeout = Duration::ZERO,
            |options| options.keepalive_interval = Some(Duration::ZERO),
            |options| options.keepalive_timeout = Duration::ZERO,
            |options| options.max_request_bytes = 0,
            |options| options.max_answer_bytes = 0,
            |options| options.reads_in_flight = 0,
            |options| options.connection_window = 1 << 31,
            |options| options.connection_window = 65_534,
        ];
        for spoil in spoils {
            let mut options = Options::default();
            spoil(&mut options);
            let error = options.check().expect_err("must be refused");
            assert_eq!(error.kind(), ErrorKind::Config, "{options:?}");
        }
    }
}
