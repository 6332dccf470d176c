use std::io::{Read, Write, pipe};
use std::process::Stdio;

use crate::support::{program, run};

const DEMO: [&str; 7] = [
    "demo",
    "--regions",
    "20",
    "--hold",
    "100ms",
    "--output",
    "json",
];

#[test]
fn a_closed_standard_output_stops_nothing() {
    let (reader, writer) = pipe().expect("a pipe");
    drop(reader);
    let mut child = program(&DEMO)
        .stdout(writer)
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    assert_eq!(child.wait().expect("waited for").code(), Some(0));
}

#[test]
fn closed_streams_stop_nothing_in_text_mode() {
    let [(_, out), (_, err)] = [(); 2].map(|()| pipe().expect("a pipe"));
    let mut child = program(&["demo", "--regions", "20", "--hold", "100ms"])
        .stdout(out)
        .stderr(err)
        .env("RUST_LOG", "debug")
        .spawn()
        .expect("starts");
    assert_eq!(child.wait().expect("waited for").code(), Some(0));
}

#[test]
fn a_standard_output_that_nobody_reads_stops_nothing() {
    let (mut reader, mut writer) = pipe().expect("a pipe");
    // Filled to the brim, so that the first line is stuck already.
    rustix::io::ioctl_fionbio(&writer, true).expect("a pipe can do that");
    let mut filled = 0;
    while let Ok(written) = writer.write(&[b' '; 512]) {
        filled += written;
    }
    rustix::io::ioctl_fionbio(&writer, false).expect("a pipe can do that");
    let mut child = program(&DEMO)
        .stdout(writer)
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    assert_eq!(child.wait().expect("waited for").code(), Some(0));
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).expect("read");
    assert!(bytes.len() >= filled);
}

#[test]
fn logs_are_chosen_by_the_environment_and_stay_off_standard_output() {
    let mut command = program(&DEMO);
    command.env("RUST_LOG", "not,a=filter=at all");
    let finished = crate::support::Running::start(command).finish();
    finished.assert_ended(0, "ok");
    assert!(finished.stderr.contains("RUST_LOG"), "{finished:#?}");
    let finished = run(&DEMO);
    assert_eq!(finished.stderr, "");
}
