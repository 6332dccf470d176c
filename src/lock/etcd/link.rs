use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use etcd_client::Client;
use tokio::time::{Instant, timeout};

use super::dialer::{Connection, Dialer};
use super::failure::{Failure, FailureKind};

/// The least time one member is given, where several are to be tried.
const SHARE_MIN: Duration = Duration::from_secs(1);

/// The way to etcd: one connection at a time, to whichever member answers.
///
/// A call that brings no answer is made again on another connection, so each has
/// to be harmless when it acts twice.
pub(super) struct Link {
    dialer: Arc<Dialer>,
    /// The longest that a call may take, all members tried.
    call_timeout: Duration,
    connection: Option<Connection>,
}

impl Link {
    pub(super) fn new(dialer: Arc<Dialer>, call_timeout: Duration) -> Self {
        Self {
            dialer,
            call_timeout,
            connection: None,
        }
    }

    /// Makes a call, at another member if one gives no answer, and after a new
    /// login if the old one has expired.
    ///
    /// # Cancel safety
    /// Dropping the future ends the connection, since it may be that which is at
    /// fault; the next call begins with another member.
    pub(super) async fn call<T, F>(
        &mut self,
        call: impl Fn(Client) -> F + Send,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, etcd_client::Error>> + Send,
    {
        let deadline = Instant::now() + self.call_timeout;
        let members = self.dialer.config().endpoints.len();
        let share = self.call_timeout / u32::try_from(members).unwrap_or(u32::MAX);
        let share = share.max(SHARE_MIN.min(self.call_timeout));
        let mut may_log_in = true;
        // One more than there are members: the connection at hand may be stale.
        let mut tries = members + 1;
        loop {
            tries -= 1;
            let left = deadline.saturating_duration_since(Instant::now());
            let attempt = timeout(left.min(share), self.attempt(&call, left.min(share))).await;
            let failure = match attempt {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(failure)) => failure,
                Err(_) => Failure::timeout(),
            };
            if failure.kind == FailureKind::LoginExpired && may_log_in {
                may_log_in = false;
                tries = tries.max(1);
                self.connection = None;
                continue;
            }
            let is_late = Instant::now() >= deadline;
            if !failure.is_of_the_connection() || tries == 0 || is_late {
                return Err(failure);
            }
        }
    }

    /// Returns a client for a call that lasts; should that fail, say so with
    /// [`Link::give_up`].
    pub(super) async fn client(&mut self) -> Result<Client, Failure> {
        self.call(|client| std::future::ready(Ok(client))).await
    }

    /// Ends the connection; the next call begins with another member.
    pub(super) fn give_up(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.dialer.distrust(&connection);
        }
    }

    async fn attempt<T, F>(
        &mut self,
        call: &(impl Fn(Client) -> F + Send),
        budget: Duration,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, etcd_client::Error>> + Send,
    {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.dialer.dial(budget).await?,
        };
        // It comes back only with an answer, so also if this future is dropped.
        self.dialer.distrust(&connection);
        let answer = call(connection.client.clone()).await;
        let answer =
            answer.map_err(|error| Failure::from(error).within(self.dialer.address(&connection)));
        if !matches!(&answer, Err(failure) if failure.is_of_the_connection()) {
            self.dialer.prefer(&connection);
            self.connection = Some(connection);
        }
        answer
    }
}
