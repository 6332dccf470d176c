//! Members of etcd as processes, stopped when dropped, also by a test that fails.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Long enough for a slow machine under load.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// One etcd of one or several members.
pub(crate) struct Etcd {
    members: Vec<Member>,
    pub(crate) endpoints: Vec<String>,
    tls: Option<TlsFiles>,
    /// `name:password` for etcdctl.
    pub(crate) user: Option<String>,
}

/// The files of a server that wants client certificates.
#[derive(Clone)]
pub(crate) struct TlsFiles {
    pub(crate) ca: String,
    pub(crate) cert: String,
    pub(crate) key: String,
}

struct Member {
    arguments: Vec<String>,
    process: Option<Child>,
    // Outlives the process.
    data: TempDir,
}

impl Etcd {
    pub(crate) fn start() -> Self {
        Self::start_with(1, &[])
    }

    /// Starts so many members with further arguments, and waits until they serve.
    pub(crate) fn start_with(members: usize, more: &[&str]) -> Self {
        Self::launch(members, more, None)
    }

    /// Starts a member that speaks TLS.
    pub(crate) fn start_tls(files: TlsFiles) -> Self {
        Self::launch(1, &[], Some(files))
    }

    fn launch(members: usize, more: &[&str], tls: Option<TlsFiles>) -> Self {
        // A port that was free a moment ago may be taken by now.
        for _ in 0..5 {
            let mut etcd = Self::prepare(members, more, tls.clone());
            for member in &mut etcd.members {
                member.start();
            }
            if etcd.becomes_ready() {
                return etcd;
            }
        }
        panic!("etcd does not start; is it installed (scripts/install-etcd.sh)?");
    }

    fn prepare(members: usize, more: &[&str], tls: Option<TlsFiles>) -> Self {
        let ports = free_ports(members * 2);
        let (client, peer) = ports.split_at(members);
        let scheme = if tls.is_some() { "https" } else { "http" };
        let cluster: Vec<_> = (0..members)
            .map(|n| format!("m{n}=http://127.0.0.1:{}", peer[n]))
            .collect();
        let member = |n: usize| {
            let data = tempfile::tempdir().expect("a folder");
            let client_url = format!("{scheme}://127.0.0.1:{}", client[n]);
            let peer_url = format!("http://127.0.0.1:{}", peer[n]);
            let mut arguments: Vec<String> = [
                ("name", format!("m{n}")),
                ("data-dir", data.path().display().to_string()),
                ("listen-client-urls", client_url.clone()),
                ("advertise-client-urls", client_url),
                ("listen-peer-urls", peer_url.clone()),
                ("initial-advertise-peer-urls", peer_url),
                ("initial-cluster", cluster.join(",")),
                ("log-level", "error".to_owned()),
            ]
            .into_iter()
            .map(|(name, value)| format!("--{name}={value}"))
            .collect();
            arguments.extend(more.iter().map(|&more| more.to_owned()));
            if let Some(tls) = &tls {
                arguments.extend([
                    "--client-cert-auth".to_owned(),
                    format!("--trusted-ca-file={}", tls.ca),
                    format!("--cert-file={}", tls.cert),
                    format!("--key-file={}", tls.key),
                ]);
            }
            Member {
                arguments,
                process: None,
                data,
            }
        };
        Self {
            members: (0..members).map(member).collect(),
            endpoints: client
                .iter()
                .map(|port| format!("127.0.0.1:{port}"))
                .collect(),
            tls,
            user: None,
        }
    }

    /// Waits until it serves, or a member has died.
    fn becomes_ready(&mut self) -> bool {
        let deadline = Instant::now() + LIMIT;
        while Instant::now() < deadline {
            let is_dead = |member: &mut Member| {
                let process = member.process.as_mut().expect("just started");
                process.try_wait().expect("a child").is_some()
            };
            if self.members.iter_mut().any(is_dead) {
                return false;
            }
            let healthy = self.ctl(&["endpoint", "health"]).output();
            if healthy.expect("etcdctl is installed").status.success() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        false
    }

    /// Returns a call of etcdctl, which shares no code with ours.
    pub(crate) fn ctl(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("etcdctl");
        command
            .env("ETCDCTL_API", "3")
            .arg(format!("--endpoints={}", self.endpoints.join(",")))
            .args(arguments)
            .stdin(Stdio::null());
        if let Some(user) = &self.user {
            command.env("ETCDCTL_USER", user);
        }
        if let Some(tls) = &self.tls {
            command.args([
                format!("--cacert={}", tls.ca),
                format!("--cert={}", tls.cert),
                format!("--key={}", tls.key),
            ]);
        }
        command
    }

    /// Runs etcdctl, which has to succeed, and returns what it printed.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let output = self.ctl(arguments).output().expect("etcdctl is installed");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "etcdctl {arguments:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Returns the keys that begin with `prefix`.
    pub(crate) fn keys(&self, prefix: &str) -> Vec<String> {
        let keys = self.run(&["get", "--prefix", "--keys-only", prefix]);
        let keys = keys.lines().filter(|line| !line.is_empty());
        keys.map(str::to_owned).collect()
    }

    /// Returns the ids of the leases there are.
    pub(crate) fn leases(&self) -> Vec<String> {
        // The first line is a heading. Leases are listed with leading zeros, keys
        // name them without.
        let leases = self.run(&["lease", "list"]);
        let ids = leases.lines().skip(1);
        ids.map(|id| id.trim_start_matches('0').to_owned())
            .collect()
    }

    /// Stops a member without it noticing.
    pub(crate) fn pause(&self, member: usize) {
        self.members[member].signal(Signal::STOP);
    }

    pub(crate) fn resume(&self, member: usize) {
        self.members[member].signal(Signal::CONT);
    }

    /// Kills a member.
    pub(crate) fn kill(&mut self, member: usize) {
        self.members[member].kill();
    }

    /// Kills all members and starts them again with the data they have.
    pub(crate) fn restart(&mut self) {
        for member in &mut self.members {
            member.kill();
            member.start();
        }
        assert!(self.becomes_ready(), "etcd does not start again");
    }

    /// As [`Etcd::restart`], with nothing of what it knew.
    pub(crate) fn restart_empty(&mut self) {
        for member in &mut self.members {
            member.kill();
            let data = member.data.path().join("member");
            std::fs::remove_dir_all(data).expect("it had data");
            member.start();
        }
        assert!(self.becomes_ready(), "etcd does not start again");
    }
}

impl Member {
    fn start(&mut self) {
        let process = Command::new("etcd")
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.process = Some(process.expect("etcd is installed (scripts/install-etcd.sh)"));
    }

    fn signal(&self, signal: Signal) {
        let process = self.process.as_ref().expect("it runs");
        let pid = Pid::from_child(process);
        kill_process(pid, signal).expect("our own child");
    }

    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns ports that are free just now, each another.
fn free_ports(count: usize) -> Vec<u16> {
    let listeners: Vec<_> = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port"))
        .collect();
    let port = |listener: &TcpListener| listener.local_addr().expect("bound").port();
    listeners.iter().map(port).collect()
}
