//! `run` and `check` with TLS, against servers that demand a client certificate,
//! as PD and TiKV do.

use std::io::ErrorKind;
use std::net::TcpListener;

use serde_json::{Value, json};
use snapshot_prepare::pb::metapb;

use crate::servers::certificates::{Ca, Files, HERE, issue, new_ca, server};
use crate::servers::fake_pd::FakePd;
use crate::servers::fake_store::FakeStore;
use crate::support::{Finished, Running, Serve, program, run};

/// An authority, the files of a server and those of a client that it knows.
struct Pki {
    ca: Ca,
    server: Files,
    client: Files,
}

impl Pki {
    fn new() -> Self {
        let ca = new_ca("root");
        let server = files_of(&ca, HERE, &ca);
        let client = files_of(&ca, &["client"], &ca);
        Self { ca, server, client }
    }

    /// Serves a simulated cluster.
    fn serve(&self) -> Serve {
        let tls = Paths::of(&self.server);
        let mut args = vec!["--regions", "20"];
        args.extend(tls.all());
        Serve::start(&args)
    }
}

/// A certificate that `issuer` gave, for one who trusts `trusted`.
fn files_of(issuer: &Ca, names: &[&str], trusted: &Ca) -> Files {
    Files::new(&trusted.pem(), &issue(issuer, names, ""))
}

/// Where the files of one side are.
struct Paths([String; 3]);

impl Paths {
    fn of(files: &Files) -> Self {
        Self(["ca", "cert", "key"].map(|name| files.path(name).display().to_string()))
    }

    fn all(&self) -> Vec<&str> {
        let Self([ca, cert, key]) = self;
        vec!["--ca", ca, "--cert", cert, "--key", key]
    }

    fn ca_only(&self) -> Vec<&str> {
        vec!["--ca", &self.0[0]]
    }
}

/// The two commands that dial a cluster, for as short as they can.
fn commands(pd: &str, tls: &[&str]) -> [Vec<String>; 2] {
    let run = ["run", "--prepare-timeout", "3s", "--pd", pd];
    let check = ["check", "--timeout", "3s", "--pd", pd];
    [(&run, &["--", "true"][..]), (&check, &[])].map(|(first, last)| {
        let all = first.iter().chain(&["--output", "json"]).chain(tls);
        all.chain(last).map(|&arg| arg.to_owned()).collect()
    })
}

/// Runs the program with all that it can log, and looks for the keys in what it
/// says.
fn tell_all(args: &[String], keys: &[&Files]) -> Finished {
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let mut command = program(&args);
    command.env("RUST_LOG", "trace");
    let finished = Running::start(command).finish();
    for files in keys {
        let key = std::fs::read_to_string(files.path("key")).expect("a key");
        assert_tells_nothing_of(&key, &finished);
    }
    finished
}

/// Looks for each line of a PEM file.
fn assert_tells_nothing_of(key: &str, finished: &Finished) {
    let lines = key.lines().filter(|line| !line.starts_with("-----"));
    let said = format!("{}\n{}", finished.lines.join("\n"), finished.stderr);
    for part in lines.chain(["PRIVATE KEY"]) {
        assert!(part.len() > 4 && !said.contains(part), "{part}: {said}");
    }
}

fn message(result: &Value) -> &str {
    result["message"].as_str().expect("a message")
}

/// Checks that both commands fail at the cluster, with one of the kinds and such
/// words.
fn assert_refused(pd: &str, tls: &[&str], keys: &[&Files], kinds: &[&str], words: &[&str]) {
    for args in commands(pd, tls) {
        let finished = tell_all(&args, keys);
        let result = finished.assert_ended(10, "not_prepared");
        let kind = result["kind"].as_str().expect("a kind");
        assert!(kinds.contains(&kind), "{args:?}: {result}");
        for part in words {
            assert!(message(&result).contains(part), "no {part:?}: {result}");
        }
    }
}

#[test]
fn a_cluster_with_tls_is_held_and_looked_at() {
    let pki = Pki::new();
    let serve = pki.serve();
    let client = Paths::of(&pki.client);
    let with_scheme = format!("https://{}", serve.pd);
    for pd in [&serve.pd, &with_scheme] {
        let [run, check] = commands(pd, &client.all());
        let keys = [&pki.client, &pki.server];
        let result = tell_all(&run, &keys).assert_ended(0, "ok");
        assert_eq!(result["released"], json!([1, 2, 3]));
        assert_eq!(result["unreleased"], json!([]));
        tell_all(&check, &keys).assert_ended(0, "ok");
    }
}

#[test]
fn another_authority_or_name_is_a_tls_failure_that_names_the_endpoint() {
    let pki = Pki::new();
    let serve = pki.serve();
    let other = new_ca("other");
    let distrustful = files_of(&pki.ca, &["client"], &other);
    assert_refused(
        &serve.pd,
        &Paths::of(&distrustful).all(),
        &[&distrustful],
        &["tls"],
        &[&serve.pd, "UnknownIssuer", "no CA certificate"],
    );
    let pki = Pki {
        server: files_of(&pki.ca, &["elsewhere"], &pki.ca),
        ..pki
    };
    let serve = pki.serve();
    assert_refused(
        &serve.pd,
        &Paths::of(&pki.client).all(),
        &[&pki.client],
        &["tls"],
        &[&serve.pd, "not valid for name"],
    );
}

#[test]
fn a_client_that_pd_refuses_is_told_that_it_may_be_its_certificate() {
    let pki = Pki::new();
    let serve = pki.serve();
    let stranger = files_of(&new_ca("other"), &["client"], &pki.ca);
    let (stranger_paths, client) = (Paths::of(&stranger), Paths::of(&pki.client));
    for tls in [stranger_paths.all(), client.ca_only()] {
        let words = [&*serve.pd, "certificate"];
        assert_refused(&serve.pd, &tls, &[&stranger], &["tls"], &words);
    }
}

#[test]
fn a_store_that_refuses_the_client_is_named() {
    let pki = Pki::new();
    let pair = issue(&pki.ca, HERE, "");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (pd, store) = runtime.block_on(async {
        let pd = FakePd::start_with(Some(server(&pair, &pki.ca.pem()))).await;
        let store = FakeStore::start_with(server(&pair, &new_ca("other").pem())).await;
        (pd, store)
    });
    pd.script().stores = vec![metapb::Store {
        id: 4711,
        address: store.address.to_string(),
        version: "8.5.2".to_owned(),
        ..metapb::Store::default()
    }];
    pd.script().leader = Some(format!("https://{}", pd.address));
    let address = store.address.to_string();
    let words = ["store 4711", &*address, "certificate"];
    let tls = Paths::of(&pki.client);
    let endpoint = pd.address.to_string();
    assert_refused(&endpoint, &tls.all(), &[&pki.client], &["tls"], &words);
}

#[test]
fn plain_text_and_tls_do_not_mix() {
    let pki = Pki::new();
    let secure = pki.serve();
    let plain = Serve::start(&["--regions", "20"]);
    let words = [&*secure.pd, "TLS"];
    // An alert of TLS reads as no HTTP/2; it may be lost with the connection.
    let kinds = ["wrong_service", "unreachable"];
    assert_refused(&secure.pd, &[], &[], &kinds, &words);
    let tls = Paths::of(&pki.client);
    let words = [&*plain.pd, "TLS"];
    assert_refused(&plain.pd, &tls.all(), &[&pki.client], &["tls"], &words);
}

/// What is wrong with the options is found before anybody hears of it.
#[test]
fn options_that_cannot_work_are_found_before_anything_is_dialed() {
    let pki = Pki::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    listener.set_nonblocking(true).expect("a socket");
    let pd = listener.local_addr().expect("bound").to_string();
    let good = Paths::of(&pki.client);
    let [ca, cert, key] = &good.0;
    let text = std::fs::read_to_string(key).expect("a key");
    let write = |name: &str, text: &str| {
        std::fs::write(pki.client.path(name), text).expect("written");
        pki.client.path(name).display().to_string()
    };
    let missing = pki.client.path("missing").display().to_string();
    let garbled = write("garbled", &text.replacen("PRIVATE KEY", "PRIVATE CAT", 2));
    let other = write("other", &issue(&pki.ca, &["other"], "").key);
    let sealed = write("sealed", &text.replace("PRIVATE", "ENCRYPTED PRIVATE"));
    let no_key = format!("{garbled} holds no PEM private key");
    let not_its_key = format!("{other}: the key is not that of the certificate");
    let is_sealed = format!("{sealed} is encrypted");
    let directory = pki.client.path("").display().to_string();
    let https = format!("https://{pd}");
    let rows: Vec<(&str, Vec<&str>, &str)> = vec![
        (&https, vec![], "CA certificate"),
        (&pd, vec!["--ca", &missing], &missing),
        (&pd, vec!["--ca", key], key),
        (&pd, vec!["--cert", cert, "--key", key], "--ca"),
        (&pd, vec!["--ca", ca, "--cert", cert], "--key"),
        (
            &pd,
            vec!["--ca", ca, "--cert", cert, "--key", &missing],
            &missing,
        ),
        (
            &pd,
            vec!["--ca", ca, "--cert", cert, "--key", &directory],
            &directory,
        ),
        (
            &pd,
            vec!["--ca", ca, "--cert", cert, "--key", &garbled],
            &no_key,
        ),
        (
            &pd,
            vec!["--ca", ca, "--cert", cert, "--key", &sealed],
            &is_sealed,
        ),
        (&pd, vec!["--ca", ca, "--cert", cert, "--key", ca], ca),
        (
            &pd,
            vec!["--ca", ca, "--cert", cert, "--key", &other],
            &not_its_key,
        ),
        (&pd, vec!["--ca", ca, "--cert", key, "--key", cert], key),
    ];
    for (pd, tls, named) in rows {
        for args in commands(pd, &tls) {
            let finished = tell_all(&args, &[&pki.client]);
            let result = finished.assert_ended(2, "error");
            assert!(message(&result).contains(named), "no {named:?}: {result}");
            let dialed = listener.accept().map(drop).map_err(|error| error.kind());
            assert_eq!(dialed, Err(ErrorKind::WouldBlock), "{args:?}");
        }
    }
}

#[test]
fn certificates_that_cannot_be_served_are_a_mistake_in_the_options() {
    let pki = Pki::new();
    let good = Paths::of(&pki.server);
    let [ca, cert, key] = &good.0;
    let missing = pki.server.path("missing").display().to_string();
    for (tls, named) in [
        ([ca, cert, &missing], &missing),
        ([&missing, cert, key], &missing),
        ([ca, cert, ca], ca),
        ([key, cert, key], key),
        ([ca, key, key], key),
    ] {
        let [ca, cert, key] = tls;
        let options = ["--ca", ca, "--cert", cert, "--key", key, "--output", "json"];
        let finished = run(&[&["serve"][..], &options].concat());
        let result = finished.assert_ended(2, "error");
        assert!(message(&result).contains(named.as_str()), "{result}");
        let pem = std::fs::read_to_string(pki.server.path("key")).expect("a key");
        assert_tells_nothing_of(&pem, &finished);
    }
    let finished = run(&["serve", "--ca", ca, "--output", "json"]);
    let result = finished.assert_ended(2, "error");
    assert!(message(&result).contains("--cert"), "{result}");
}
