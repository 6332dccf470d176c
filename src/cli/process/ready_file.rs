use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that exists exactly while the hold is in force. Also removed when
/// this is dropped.
#[derive(Debug)]
pub(crate) struct ReadyFile {
    path: Option<PathBuf>,
    is_written: bool,
}

impl ReadyFile {
    /// Removes what an earlier run may have left, and checks that the file can
    /// be written later. Without a path it does nothing at all.
    ///
    /// # Errors
    /// What is wrong with the path, for people.
    pub(crate) fn prepare(path: Option<&Path>) -> Result<Self, String> {
        Self::check(path)?;
        if let Some(path) = path {
            clear(path).map_err(|error| format!("--ready-file {}: {error}", path.display()))?;
        }
        Ok(Self {
            path: path.map(Path::to_owned),
            is_written: false,
        })
    }

    /// Checks that the file can be written later, and touches none that is there.
    ///
    /// # Errors
    /// What is wrong with the path, for people.
    pub(crate) fn check(path: Option<&Path>) -> Result<(), String> {
        let Some(path) = path else {
            return Ok(());
        };
        let shown = path.display();
        // A device or a pipe would be removed as if an earlier run had left it.
        if let Ok(there) = fs::symlink_metadata(path) {
            if path.is_dir() {
                return Err(format!("--ready-file {shown}: is a directory"));
            }
            if !there.is_file() && !there.is_symlink() {
                return Err(format!("--ready-file {shown}: is not a regular file"));
            }
        }
        let trial = temporary(path);
        fs::write(&trial, [])
            .and_then(|()| fs::remove_file(&trial))
            .map_err(|error| format!("--ready-file {shown}: cannot be written: {error}"))
    }

    /// Makes the file appear, whole, with `content`.
    ///
    /// # Errors
    /// The file system's.
    pub(crate) fn write(&mut self, content: &str) -> io::Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let temporary = temporary(path);
        let result = fs::File::create(&temporary)
            .and_then(|mut file| {
                file.write_all(content.as_bytes())?;
                file.sync_all()
            })
            .and_then(|()| fs::rename(&temporary, path));
        match &result {
            Ok(()) => self.is_written = true,
            // It may not have come about at all.
            Err(_) => drop(fs::remove_file(&temporary)),
        }
        result
    }

    /// Makes the file disappear.
    pub(crate) fn remove(&mut self) {
        if !std::mem::take(&mut self.is_written) {
            return;
        }
        if let Some(path) = &self.path
            && let Err(error) = clear(path)
        {
            tracing::error!(
                "the ready file {} cannot be removed, though the hold is over: {error}",
                path.display()
            );
        }
    }
}

impl Drop for ReadyFile {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Removes a file that may not be there.
fn clear(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Returns the name under which the file is written before it appears: in the
/// same directory, so that the rename is one step.
fn temporary(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_lives_from_write_to_remove() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("held");
        fs::write(&path, "left by an earlier run").expect("written");
        let mut ready = ReadyFile::prepare(Some(&path)).expect("can be written");
        assert!(!path.exists());
        ready.write("content\n").expect("written");
        assert_eq!(fs::read_to_string(&path).expect("there"), "content\n");
        ready.remove();
        assert_eq!(fs::read_dir(dir.path()).expect("there").count(), 0);
    }

    #[test]
    fn it_is_removed_when_dropped() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("held");
        let mut ready = ReadyFile::prepare(Some(&path)).expect("can be written");
        ready.write("content\n").expect("written");
        drop(ready);
        assert!(!path.exists());
    }

    /// Run by root, it could take a device away from everybody.
    #[test]
    fn what_is_no_regular_file_is_left_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("socket");
        let _socket = std::os::unix::net::UnixListener::bind(&path).expect("bound");
        let message = ReadyFile::prepare(Some(&path)).expect_err("refused");
        assert!(message.contains("is not a regular file"), "{message}");
        assert!(path.exists());
        assert_eq!(fs::read_dir(dir.path()).expect("there").count(), 1);
    }

    /// A link is replaced, not followed.
    #[test]
    fn a_link_is_removed_and_what_it_points_at_is_not() {
        let dir = tempfile::tempdir().expect("a directory");
        let [path, target] = ["held", "target"].map(|name| dir.path().join(name));
        fs::write(&target, "somebody's").expect("written");
        std::os::unix::fs::symlink(&target, &path).expect("linked");
        let mut ready = ReadyFile::prepare(Some(&path)).expect("can be written");
        assert!(!path.exists() && target.exists());
        ready.write("content\n").expect("written");
        ready.remove();
        assert_eq!(fs::read_to_string(&target).expect("there"), "somebody's");
    }

    #[test]
    fn a_bad_place_is_found_at_the_start() {
        let dir = tempfile::tempdir().expect("a directory");
        for bad in [dir.path().join("none/held"), dir.path().to_owned()] {
            let message = ReadyFile::prepare(Some(&bad)).expect_err("refused");
            assert!(message.contains("--ready-file"), "{message}");
        }
    }
}
