//! The simulated cluster in a process of its own, so that the processor time of
//! a client can be told from the server's.

use std::env;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};

use snapshot_prepare::sim::fault::FaultPlan;
use snapshot_prepare::sim::layout::Layout;
use snapshot_prepare::sim::server::Served;

/// Says to this program that it is to be the server, and of what.
const VARIABLE: &str = "BENCH_SERVES";
/// What the cluster is drawn from.
const SEED: u64 = 5;
/// Voters of each region.
const REPLICAS: u32 = 3;

/// How large the cluster is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) stores: u32,
    pub(crate) regions: u32,
}

impl Size {
    pub(crate) fn layout(self) -> Layout {
        Layout::generate(self.stores, self.regions, REPLICAS, SEED)
    }
}

/// A process that serves a cluster at rest; it ends with this value, or with
/// this process.
pub(crate) struct Server {
    pub(crate) pd: String,
    /// It serves until this is closed.
    stdin: Option<ChildStdin>,
    child: Child,
}

impl Server {
    /// Starts this very program once more, as a server. Panics if it does not
    /// come up.
    pub(crate) fn start(size: Size) -> Self {
        let program = env::current_exe().expect("this program is somewhere");
        let mut child = Command::new(program)
            .env(VARIABLE, format!("{} {}", size.stores, size.regions))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program can be started");
        let stdout = child.stdout.take().expect("it is piped");
        let mut pd = String::new();
        BufReader::new(stdout)
            .read_line(&mut pd)
            .expect("it says where it listens");
        Self {
            pd: pd.trim().to_owned(),
            stdin: child.stdin.take(),
            child,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // It ends by itself now; there is nobody to tell when it does not.
        let _ = self.child.wait();
    }
}

/// Serves, if this process was started for that; returns how that ended. To be
/// called before all else.
pub(crate) fn serve_if_asked() -> Option<ExitCode> {
    let size = env::var(VARIABLE).ok()?;
    let (stores, regions) = size.split_once(' ').expect("two numbers");
    let size = Size {
        stores: stores.parse().expect("a number"),
        regions: regions.parse().expect("a number"),
    };
    serve(size).expect("it can listen");
    Some(ExitCode::SUCCESS)
}

fn serve(size: Size) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let layout = size.layout();
    let local = ([127, 0, 0, 1], 0).into();
    let starting = Served::start(&layout, FaultPlan::none(), SEED, local);
    let served = runtime.block_on(starting)?;
    println!("{}", served.pd_endpoint());
    io::stdin().read_to_end(&mut Vec::new())?;
    runtime.shutdown_background();
    Ok(())
}
