use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::time::Duration;

/// Writes all of `bytes`, or as much as the other end takes. A closed other
/// end is no error to anybody: what cannot be told is left untold.
///
/// Somebody who shares our terminal can have made it non-blocking; then this
/// waits until there is room, as a blocking write would.
pub(crate) fn write_best_effort<W: Write + AsFd>(mut out: W, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match out.write(bytes) {
            Ok(0) => return,
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if wait_for_room(&out).is_err() {
                    return;
                }
            }
            Err(_) => return,
        }
    }
    // What fails here has failed for good, too.
    let _ = out.flush();
}

fn wait_for_room(out: &impl AsFd) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds = [PollFd::new(out, PollFlags::OUT)];
    let limit = Timespec::try_from(Duration::from_secs(1)).ok();
    match poll(&mut fds, limit.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
