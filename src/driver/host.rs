use std::future::Future;
use std::io;
use std::thread;

use tracing::Dispatch;
use tracing::dispatcher::{get_default, with_default};

use super::status::Ended;
use crate::error::{Error, ErrorKind};

/// Where a loop and its reporter run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Host {
    /// On the runtime of the caller, a task each.
    Shared,
    /// On threads of their own, so that neither the caller nor the reporter can
    /// hold up the loop.
    Isolated,
}

impl Host {
    /// Starts both. `failed` is called instead of `work` when the thread comes
    /// up and its runtime does not.
    ///
    /// # Errors
    /// There is no runtime to run on, or no thread.
    pub(super) fn start(
        self,
        work: impl Future<Output = ()> + Send + 'static,
        reporter: impl Future<Output = ()> + Send + 'static,
        failed: impl FnOnce(Ended) + Send + 'static,
    ) -> Result<(), Error> {
        match self {
            Self::Shared => {
                let runtime = tokio::runtime::Handle::try_current().map_err(|_| {
                    Error::new(
                        ErrorKind::Config,
                        "there is no tokio runtime here; call prepare from one or build the preparer with isolated(true)",
                    )
                })?;
                runtime.spawn(reporter);
                runtime.spawn(work);
                Ok(())
            }
            Self::Isolated => isolate(work, reporter, failed).map_err(|error| {
                Error::new(
                    ErrorKind::Internal,
                    format!("no thread for the driver: {error}"),
                )
            }),
        }
    }
}

fn isolate(
    work: impl Future<Output = ()> + Send + 'static,
    reporter: impl Future<Output = ()> + Send + 'static,
    failed: impl FnOnce(Ended) + Send + 'static,
) -> io::Result<()> {
    let logger = get_default(Dispatch::clone);
    thread::Builder::new()
        .name("prepare-report".to_owned())
        .spawn(move || {
            with_default(&logger, || {
                // Without a runtime nothing is told, which harms nobody's data.
                if let Ok(runtime) = tokio::runtime::Builder::new_current_thread().build() {
                    runtime.block_on(reporter);
                }
            });
        })?;
    thread::Builder::new()
        .name("prepare-driver".to_owned())
        .spawn(move || {
            // Logging from here would run the program's logger, which may block.
            with_default(&Dispatch::none(), || {
                match tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                {
                    Ok(runtime) => {
                        runtime.block_on(work);
                        // A name look-up that hangs must not keep the thread.
                        runtime.shutdown_background();
                    }
                    Err(error) => failed(Ended::Died(Error::new(
                        ErrorKind::Internal,
                        format!("no runtime for the driver: {error}"),
                    ))),
                }
            });
        })?;
    Ok(())
}
