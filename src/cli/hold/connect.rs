use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use crate::cli::args::{PdArgs, show_time};
use crate::cli::process::Signals;
use crate::error::{Error, ErrorKind};
use crate::tikv::{Options, Security, TikvCluster};

const BACKOFF_MIN: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum Stopped {
    Failed(Error),
    /// A signal came.
    Interrupted,
}

/// Returns what the options say of TLS.
pub(crate) fn security_of(args: &PdArgs) -> Security {
    match &args.ca {
        None => Security::none(),
        Some(ca) => Security::tls(ca, args.cert.clone().zip(args.key.clone())),
    }
}

/// Connects to PD. What can pass by itself is tried again until `limit`.
///
/// # Errors
/// What cannot pass, at once; the last error when time is up; a signal.
pub(crate) async fn connect(
    endpoints: &[String],
    security: Security,
    limit: Duration,
    signals: &mut Signals,
) -> Result<TikvCluster, Stopped> {
    let deadline = Instant::now() + limit;
    let mut backoff = BACKOFF_MIN;
    let mut last = None;
    loop {
        let attempt =
            TikvCluster::connect(endpoints.to_vec(), security.clone(), Options::default());
        let outcome = tokio::select! {
            biased;
            _ = signals.next() => return Err(Stopped::Interrupted),
            outcome = timeout_at(deadline, attempt) => outcome,
        };
        match outcome {
            Ok(Ok(cluster)) => return Ok(cluster),
            Ok(Err(error)) if !error.is_retryable() => return Err(Stopped::Failed(error)),
            Ok(Err(error)) => {
                tracing::info!("PD cannot be reached yet: {error}");
                last = Some(error);
            }
            Err(_) => return Err(Stopped::Failed(no_answer(limit, last))),
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left < BACKOFF_MIN {
            return Err(Stopped::Failed(no_answer(limit, last)));
        }
        tokio::select! {
            biased;
            _ = signals.next() => return Err(Stopped::Interrupted),
            // Towards the end the pauses shrink, so that all of the time is used.
            () = sleep(backoff.min(left / 2)) => {}
        }
        backoff = (backoff * 2).min(BACKOFF_MAX);
    }
}

fn no_answer(limit: Duration, last: Option<Error>) -> Error {
    let kind = last.as_ref().map_or(ErrorKind::Unreachable, Error::kind);
    let reason = last.map_or_else(|| "no answer".to_owned(), |error| error.to_string());
    Error::new(
        kind,
        format!(
            "PD could not be reached within {}: {reason}",
            show_time(limit)
        ),
    )
}
