use crate::cli::exit::Outcome;

pub(crate) const ABOUT: &str = "\
Brings a TiKV cluster into the state in which volume snapshots of all its \
stores fit together, proves it, holds it while they are taken, and says \
afterwards whether it truly held.

It takes no snapshots itself, chooses no backup timestamp, and pauses neither \
GC nor PD's schedulers: that is the caller's part.";

const EXAMPLES: &str = "\
Examples:
  See it work, on a simulated cluster:
    snapshot-prepare demo
  Could a run start now? Looks only:
    snapshot-prepare check --pd 10.0.0.1:2379
  Hold the cluster while a command takes the snapshots:
    snapshot-prepare run --pd 10.0.0.1:2379,10.0.0.2:2379 -- ./take-snapshots.sh
  Hold it until Ctrl-C, with a file that says when:
    snapshot-prepare run --pd 10.0.0.1:2379 --ready-file /run/held

";

pub(crate) fn top() -> String {
    format!(
        "{EXAMPLES}{}\n\
         Logs go to standard error; RUST_LOG=snapshot_prepare=debug tells more.",
        Outcome::table()
    )
}

pub(crate) const RUN: &str = "\
Dials every store, suspends them all (no split, merge, move, bulk load or \
leader transfer), waits until each region's leader has applied its log, proves \
it with a read served by that leader, compares everything once more, and holds.

With a COMMAND: runs it during the hold and then releases. Without one: holds \
until SIGINT or SIGTERM and then releases. Use the snapshots only if the exit \
code is 0.

The command runs in a process group of its own. If the hold is lost the group \
gets SIGTERM and, 10 s later, SIGKILL. SIGINT, SIGTERM and SIGHUP are passed \
on to it. Its standard input is ours, or empty when that is a terminal. In its \
environment:
  SNAPSHOT_PREPARE_CLUSTER_ID  the cluster's id
  SNAPSHOT_PREPARE_STORES      the held stores: id=address,id=address,...
  SNAPSHOT_PREPARE_TSO         PD's timestamp in the hold; absent if PD gave none
  SNAPSHOT_PREPARE_HELD_AT     when the hold began, RFC 3339";

pub(crate) fn run() -> String {
    format!(
        "Examples:\n  \
         snapshot-prepare run --pd pd-0:2379,pd-1:2379 -- ./take-snapshots.sh\n  \
         snapshot-prepare run --pd https://pd-0:2379 --ca ca.pem --cert me.pem --key me.key \\\n      \
         --output json --ready-file /run/held\n\n{}",
        Outcome::table()
    )
}

pub(crate) const CHECK: &str = "\
Lists stores and regions and asks every store for the regions it leads. Opens \
no prepare stream and takes no lease, so it disturbs neither the cluster nor a \
run of somebody else. Exit code 0 when a run could start now, 10 when not.";

pub(crate) const DEMO: &str = "\
Does what `run` does, with the same client over real gRPC, against a simulated \
cluster that lives in this process. At the end the simulation is asked whether \
what was said is true.";

pub(crate) fn demo() -> String {
    format!(
        "Examples:\n  \
         snapshot-prepare demo\n  \
         snapshot-prepare demo --regions 20000 --faults light -- sleep 3\n  \
         snapshot-prepare demo --layout regions.json --output json -- true\n\n{}",
        Outcome::table()
    )
}

pub(crate) const SERVE: &str = "\
Serves a simulated cluster on loopback until SIGINT or SIGTERM. The first line \
on standard output is always a JSON line that says where PD is:
  {\"event\":\"serving\",\"pd\":\"127.0.0.1:41873\",\"stores\":[...],...}";

pub(crate) fn serve() -> String {
    "Examples:\n  \
     snapshot-prepare serve --listen 127.0.0.1:2379\n  \
     snapshot-prepare check --pd 127.0.0.1:2379      (in another terminal)\n  \
     snapshot-prepare run --pd 127.0.0.1:2379 -- sleep 2\n  \
     snapshot-prepare serve --ca ca.pem --cert server.pem --key server.key"
        .to_owned()
}

pub(crate) const SIMULATE: &str = "\
Runs the state machine against the simulated cluster in virtual time, once per \
seed, and asks the simulation each time whether what was said is true. A seed \
decides all of a run: the sizes, what goes wrong and when, the configuration. \
The same seed and options always do the same.

Shows how the runs ended, how often each fault struck and in which phase, and \
for how long the stores were suspended, against the least that is possible \
(1.000 would be perfect). The hash stands for all that happened in all runs: \
two builds of the same source that show the same hash did the same.

If a property was violated the exit code is 1; the seed, all that was drawn \
from it, the last steps and the command that does it again are shown.";

pub(crate) fn simulate() -> String {
    "Examples:\n  \
     snapshot-prepare simulate --seeds 1..1000\n  \
     snapshot-prepare simulate --seeds 42 --faults light --regions 1000\n  \
     snapshot-prepare simulate --trace 42\n  \
     snapshot-prepare simulate --only split,merge,slow_merge\n  \
     snapshot-prepare simulate --faults none --fault store_restart=2\n  \
     snapshot-prepare simulate --list-faults\n  \
     snapshot-prepare simulate --proof claims --faults none --fault lost_quorum=4\n      \
     (shows how a hold by claims alone is deceived)"
        .to_owned()
}

pub(crate) const LOCK: &str = "\
A lock lets one run at a time work on what it stands for. It lies beside a \
backup (s3://, gs://, az://, file://), as an object that TiDB's and TiKV's own \
tools heed and respect, or on etcd (etcd://, etcds://), laid out as etcd's own \
mutex. Credentials come from the environment, as for each cloud's own tools; \
for etcd ETCD_USERNAME and ETCD_PASSWORD, with etcds:// ETCDCTL_CACERT, \
ETCDCTL_CERT, ETCDCTL_KEY.

No lock stops TiKV itself, nor a holder that was paused and does not know yet \
that it lost the lock.";

pub(crate) const LOCK_STATUS: &str = "Writes nothing. Exit code 0 whether the lock is held or not; \
the output says which, and who holds it.";

pub(crate) const LOCK_ACQUIRE: &str = "\
Takes the lock, shows it, and holds it while the COMMAND runs, or until SIGINT \
or SIGTERM without one; then releases it. Exit code 12 when somebody else has \
it, 11 when it was lost, replaced or removed meanwhile: then the command's \
process group gets SIGTERM and, 10 s later, SIGKILL. If this program \
itself is killed so, the command goes on, and does so without the lock once \
that has expired. In the command's environment:
  SNAPSHOT_PREPARE_LOCK_ID     the id of this acquisition
  SNAPSHOT_PREPARE_LOCK_FENCE  a number that grows with each acquisition; only
                               where the lock has one (etcd)";

pub(crate) fn lock_acquire() -> String {
    format!(
        "Examples:\n  \
         snapshot-prepare lock acquire s3://backups/truncating.lock -- ./truncate.sh\n  \
         snapshot-prepare lock acquire etcd://10.0.0.1:2379/backup --ttl 10s --wait 5m -- ./backup.sh\n\n{}",
        Outcome::table()
    )
}

pub(crate) const LOCK_BREAK: &str = "\
Removes the lock with this id, whether its holder lives or not; a holder that \
lives notices at its next renewal at the latest. Nothing else is removed: if \
the lock has changed hands since, its id is another one, and the exit code is \
12. Make sure that the holder is dead. Its host and process are shown to \
people only: they say nothing across machines and containers.";
