use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use tokio::time::Instant;

use crate::cli::output::Reporter;
use crate::cli::process::Signals;

/// Signals that come within this time of the one before mean the same: a
/// terminal that goes away sends several.
const SAME: Duration = Duration::from_secs(1);

/// Waits for work that must not be left half done, such as a release. The
/// first signal gets a word, a further one ends the waiting: `None`. Where
/// `asked` is set, a signal has led here and counts as the first.
pub(super) async fn patiently<T>(
    work: impl Future<Output = T>,
    signals: &mut Signals,
    reporter: &Reporter,
    asked: bool,
) -> Option<T> {
    let mut work = pin!(work);
    let mut first = asked.then(Instant::now);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return Some(done),
            _ = signals.next() => match first {
                Some(at) if at.elapsed() >= SAME => return None,
                Some(_) => {}
                None => {
                    first = Some(Instant::now());
                    reporter.tell(
                        "releasing the stores takes 10 s at the most; a further signal leaves them \
                         suspended until their leases end",
                    );
                }
            },
        }
    }
}
