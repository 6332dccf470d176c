use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::Mutex;
use tonic::Status;
use tonic::transport::Channel;

use super::address::Address;
use super::dial::{Connection, Dialer, Purpose};
use super::status::{self, Place};
use crate::error::{Failure, FailureKind};

/// How many connections have to be lost in a row, each before the server said
/// anything, until that counts as a refusal.
pub(super) const REFUSALS: u32 = 3;

/// One server, a store or a member of PD: the connection for calls to it, and
/// how often it turned connections away.
#[derive(Debug)]
pub(super) struct Peer {
    address: Address,
    /// Whether failures say where it is: callers know the addresses of stores
    /// and name them, but not those of PD's members.
    names_itself: bool,
    dialer: Dialer,
    calls: Mutex<Option<Arc<Connection>>>,
    /// Connections lost in a row without a word from the server. A client
    /// certificate that is refused shows as nothing else.
    refusals: AtomicU32,
}

impl Peer {
    pub(super) fn store(address: Address, dialer: Dialer) -> Self {
        Self::new(address, dialer, false)
    }

    pub(super) fn pd_member(address: Address, dialer: Dialer) -> Self {
        Self::new(address, dialer, true)
    }

    fn new(address: Address, dialer: Dialer, names_itself: bool) -> Self {
        Self {
            address,
            names_itself,
            dialer,
            calls: Mutex::new(None),
            refusals: AtomicU32::new(0),
        }
    }

    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// Makes one call on the shared connection, dialling it where there is none.
    /// A connection that was used before may have been closed meanwhile, so when
    /// it breaks under the call, the call is made once more on a new one.
    ///
    /// # Cancel safety
    /// A call that is dropped before anything came back on its connection takes
    /// the connection out of use.
    pub(super) async fn call<T, F, Fut>(
        &self,
        place: Place,
        call: F,
    ) -> Result<(T, Arc<Connection>), Failure>
    where
        F: Fn(Channel) -> Fut,
        Fut: Future<Output = Result<T, Status>>,
    {
        let connection = self.connection().await?;
        self.call_on(connection, place, call).await
    }

    /// As [`Peer::call`], on a connection that was found before, unless that is
    /// out of use by now.
    pub(super) async fn call_on<T, F, Fut>(
        &self,
        mut connection: Arc<Connection>,
        place: Place,
        call: F,
    ) -> Result<(T, Arc<Connection>), Failure>
    where
        F: Fn(Channel) -> Fut,
        Fut: Future<Output = Result<T, Status>>,
    {
        if !connection.is_usable() {
            connection = self.connection().await?;
        }
        let mut reused = connection.answers() > 0;
        loop {
            let mut abandoned = Abandoned::watch(&connection);
            let result = call(connection.channel()).await;
            abandoned.disarm();
            match result {
                Ok(answer) => {
                    self.note_answer(&connection);
                    return Ok((answer, connection));
                }
                Err(status) if reused && status::is_local(&status) => {
                    connection.give_up();
                    connection = self.connection().await?;
                    reused = false;
                }
                Err(status) => return Err(self.judge(&status, place, &connection)),
            }
        }
    }

    /// Dials a connection of its own for a prepare stream.
    pub(super) async fn dial_stream(&self) -> Result<Arc<Connection>, Failure> {
        self.dial(Purpose::Stream).await
    }

    /// Returns the shared connection, dialling it where there is none.
    pub(super) async fn connection(&self) -> Result<Arc<Connection>, Failure> {
        let mut shared = self.calls.lock().await;
        if let Some(connection) = shared.as_ref().filter(|found| found.is_usable()) {
            return Ok(connection.clone());
        }
        *shared = None;
        let connection = self.dial(Purpose::Calls).await?;
        *shared = Some(connection.clone());
        Ok(connection)
    }

    /// Notes that the server said something on a connection.
    pub(super) fn note_answer(&self, connection: &Connection) {
        connection.note_answer();
        self.refusals.store(0, Ordering::Relaxed);
    }

    /// Returns whether connections were closed without a word, but not yet often
    /// enough to be sure of a refusal.
    pub(super) fn may_yet_refuse(&self, kind: FailureKind) -> bool {
        let lost = self.refusals.load(Ordering::Relaxed);
        kind != FailureKind::Tls && (1..REFUSALS).contains(&lost)
    }

    /// Returns what a failed call means, in the light of those before it.
    pub(super) fn judge(&self, status: &Status, place: Place, connection: &Connection) -> Failure {
        let failure = self.named(status::failure(status, place));
        if !status::is_local(status) {
            self.note_answer(connection);
            return failure;
        }
        connection.give_up();
        let cut = matches!(
            failure.kind,
            FailureKind::Transport
                | FailureKind::Cancelled
                | FailureKind::Tls
                | FailureKind::WrongService
        );
        if !cut || connection.answers() > 0 {
            return failure;
        }
        if connection.is_first_unanswered_loss() {
            self.refusals.fetch_add(1, Ordering::Relaxed);
        }
        self.suspect(failure)
    }

    async fn dial(&self, purpose: Purpose) -> Result<Arc<Connection>, Failure> {
        match self.dialer.dial(&self.address, purpose).await {
            Ok(connection) => Ok(Arc::new(connection)),
            Err(failure) if status::is_handshake_cut(&failure) => {
                self.refusals.fetch_add(1, Ordering::Relaxed);
                Err(self.suspect(self.named(failure)))
            }
            Err(failure) => {
                self.refusals.store(0, Ordering::Relaxed);
                Err(self.named(failure))
            }
        }
    }

    /// Says in the failure's words which server it is about, where the caller
    /// would not.
    pub(super) fn named(&self, failure: Failure) -> Failure {
        if !self.names_itself {
            return failure;
        }
        let words = format!("{}: {}", self.address, failure.message);
        Failure::new(failure.kind, words)
    }

    /// Says what is likely when a server turned many connections away.
    fn suspect(&self, failure: Failure) -> Failure {
        let lost = self.refusals.load(Ordering::Relaxed);
        if lost < REFUSALS || failure.kind == FailureKind::Tls {
            return failure;
        }
        let (kind, guess) = match (self.dialer.is_tls(), self.dialer.has_identity()) {
            (true, true) => (
                FailureKind::Tls,
                "the server may be refusing the client certificate",
            ),
            (true, false) => (
                FailureKind::Tls,
                "the server may demand a client certificate, and none is given",
            ),
            (false, _) => (failure.kind, "the server may want TLS"),
        };
        let words = failure.message;
        Failure::new(
            kind,
            format!("{words} ({lost} connections in a row were closed without an answer: {guess})"),
        )
    }
}

/// Gives a connection up when a call on it is dropped and nothing came back on
/// the connection since the call began.
struct Abandoned {
    connection: Option<Arc<Connection>>,
    answers: u64,
}

impl Abandoned {
    fn watch(connection: &Arc<Connection>) -> Self {
        Self {
            answers: connection.answers(),
            connection: Some(connection.clone()),
        }
    }

    fn disarm(&mut self) {
        self.connection = None;
    }
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take()
            && connection.answers() == self.answers
        {
            connection.give_up();
        }
    }
}
