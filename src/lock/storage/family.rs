use object_store::path::Path;

use super::txn_id::TxnId;
use crate::lock::{HolderKind, LockError, LockErrorKind};

/// How the lock is shared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum LockMode {
    /// One holder alone; the lock object lies at the path itself.
    #[default]
    Exclusive,
    /// Shared with other readers, not with a writer; the object lies at the path
    /// and `.READ.` and 16 random hex digits.
    Read,
    /// One holder alone, neither readers nor other writers; the object lies at
    /// the path and `.WRIT`.
    Write,
}

/// The objects that have to do with the lock of one path: all whose name is the
/// path's or begins with it and a dot.
///
/// A longer name without the dot (`truncating.lock2`) is something else. What
/// follows the dot and is not known counts as somebody's lock (`.bak`): it can be
/// the file of a version that we do not know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Family {
    folder: Path,
    name: String,
    mode: LockMode,
}

/// What an object of the family is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Member {
    pub(super) side: Side,
    pub(super) shape: Shape,
}

/// Which lock of the family an object belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    /// The lock at the path itself.
    Plain,
    Read,
    Write,
    /// No way to tell.
    Unknown,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    Lock,
    /// With the transaction id where the name has one.
    Intent(Option<TxnId>),
    Unknown,
}

impl Member {
    pub(super) fn kind(self) -> HolderKind {
        match (self.shape, self.side) {
            (Shape::Intent(_), _) => HolderKind::Intent,
            (Shape::Unknown, _) | (_, Side::Unknown) => HolderKind::Unknown,
            (Shape::Lock, Side::Plain) => HolderKind::Lock,
            (Shape::Lock, Side::Read) => HolderKind::ReadLock,
            (Shape::Lock, Side::Write) => HolderKind::WriteLock,
        }
    }
}

const INTENT: &str = ".INTENT.";

impl Family {
    /// Returns the family of a path, however it is written: without leading
    /// slashes and `./`, without doubled slashes.
    pub(super) fn new(path: &str, mode: LockMode) -> Result<Self, LockError> {
        let wrong = |why: &str| {
            let message = format!("{path:?} is no path of a lock object: {why}");
            LockError::new(LockErrorKind::Config, message)
        };
        let mut parts: Vec<&str> = path
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".")
            .collect();
        if parts.contains(&"..") {
            return Err(wrong("it goes up"));
        }
        let name = match parts.pop() {
            Some(name) if !path.ends_with('/') => name.to_owned(),
            _ => return Err(wrong("it names no object")),
        };
        let parse = |text: &str| match Path::parse(text) {
            Ok(path) if !text.chars().any(char::is_control) => Ok(path),
            _ => Err(wrong("it has characters that stores do not allow")),
        };
        parse(&name)?;
        let folder = parse(&parts.join("/"))?;
        Ok(Self { folder, name, mode })
    }

    /// Returns the path of a name, as it stands: joining would escape it.
    fn in_folder(&self, name: &str) -> Path {
        let text = match self.folder.as_ref() {
            "" => name.to_owned(),
            folder => format!("{folder}/{name}"),
        };
        // What is added to a name that was parsed needs no escaping either.
        Path::parse(&text).unwrap_or_else(|_| Path::from(text))
    }

    /// Returns where the family lies.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns what all names of the family begin with, the folder included.
    pub(super) fn prefix(&self) -> Path {
        self.in_folder(&self.name)
    }

    /// Returns the path of the lock object of one acquisition.
    pub(super) fn target(&self, txn: TxnId) -> Path {
        let name = match self.mode {
            LockMode::Exclusive => self.name.clone(),
            LockMode::Read => format!("{}.READ.{:016x}", self.name, txn.seed()),
            LockMode::Write => format!("{}.WRIT", self.name),
        };
        self.in_folder(&name)
    }

    /// Returns the path of the object that announces the acquisition.
    pub(super) fn intent(&self, txn: TxnId) -> Path {
        let target = self.target(txn);
        let name = target.filename().unwrap_or_default();
        self.in_folder(&format!("{name}{INTENT}{}", txn.hex()))
    }

    /// Returns what an object is, `None` when it is none of the family.
    pub(super) fn member(&self, path: &Path) -> Option<Member> {
        if !path.prefix_matches(&self.folder) || path.parts_count() != self.folder.parts_count() + 1
        {
            return None;
        }
        let rest = path.filename()?.strip_prefix(self.name.as_str())?;
        if !rest.is_empty() && !rest.starts_with('.') {
            return None;
        }
        let (suffix, shape) = match rest.rsplit_once(INTENT) {
            Some((suffix, txn)) => (suffix, Shape::Intent(TxnId::parse(txn))),
            None => (rest, Shape::Lock),
        };
        Some(member_of(suffix, shape))
    }

    /// Returns whether the object stands in the way of our kind of lock.
    pub(super) fn conflicts(&self, member: Member) -> bool {
        match self.mode {
            LockMode::Exclusive => true,
            // A name that neither readers nor writers have is not theirs.
            LockMode::Write => member.side != Side::Unknown,
            LockMode::Read => !matches!(member.side, Side::Unknown | Side::Read),
        }
    }
}

/// Tells apart what follows the path: nothing, `.WRIT`, `.READ.` and a number,
/// each also with the number of one acquisition, or something else.
fn member_of(suffix: &str, shape: Shape) -> Member {
    let parts: Vec<&str> = suffix.split('.').skip(1).collect();
    let (side, is_known) = match parts.as_slice() {
        [] => (Side::Plain, true),
        ["WRIT"] => (Side::Write, true),
        ["WRIT", instance] => (Side::Write, is_hex(instance, 32)),
        ["WRIT", ..] => (Side::Write, false),
        ["READ", number] => (Side::Read, is_hex(number, 16) || is_hex(number, 32)),
        ["READ", ..] => (Side::Read, false),
        [instance] if is_hex(instance, 32) => (Side::Plain, true),
        _ => (Side::Unknown, false),
    };
    let shape = match shape {
        Shape::Lock if !is_known => Shape::Unknown,
        shape => shape,
    };
    Member { side, shape }
}

fn is_hex(text: &str, length: usize) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.len() == length && text.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(path: &str, mode: LockMode) -> Family {
        Family::new(path, mode).expect("a path")
    }

    fn kind(family: &Family, path: &str) -> Option<(HolderKind, bool)> {
        let member = family.member(&Path::from(path))?;
        Some((member.kind(), family.conflicts(member)))
    }

    const TXN: &str = "00112233445546778899aabbccddeeff";

    #[test]
    fn paths_are_written_in_one_way() {
        for path in [
            "a/b.lock",
            "/a/b.lock",
            "./a/./b.lock",
            "a//b.lock",
            "//a/b.lock",
        ] {
            let family = family(path, LockMode::Exclusive);
            assert_eq!(family.prefix().as_ref(), "a/b.lock", "{path}");
        }
        let root = family("./truncating.lock", LockMode::Exclusive);
        assert_eq!(root.prefix().as_ref(), "truncating.lock");
        assert_eq!(root.folder().as_ref(), "");
        assert_eq!(
            family("ä b/c d.lock", LockMode::Exclusive)
                .prefix()
                .as_ref(),
            "ä b/c d.lock"
        );
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for path in ["", "/", "a/", "../a", "a/../b", "..", ".", "a\nb"] {
            let error = Family::new(path, LockMode::Exclusive).expect_err(path);
            assert_eq!(error.kind(), LockErrorKind::Config, "{path}");
        }
    }

    #[test]
    fn names_are_those_of_the_other_tools() {
        let txn = TxnId::parse(TXN).expect("a txn");
        let exclusive = family("truncating.lock", LockMode::Exclusive);
        assert_eq!(exclusive.target(txn).as_ref(), "truncating.lock");
        assert_eq!(
            exclusive.intent(txn).as_ref(),
            format!("truncating.lock.INTENT.{TXN}")
        );
        let write = family("v1/LOCK", LockMode::Write);
        assert_eq!(write.target(txn).as_ref(), "v1/LOCK.WRIT");
        assert_eq!(
            write.intent(txn).as_ref(),
            format!("v1/LOCK.WRIT.INTENT.{TXN}")
        );
        let read = family("v1/LOCK", LockMode::Read);
        let target = read.target(txn);
        let number = target
            .as_ref()
            .strip_prefix("v1/LOCK.READ.")
            .expect("a read lock");
        assert!(is_hex(number, 16), "{number}");
        assert_eq!(read.intent(txn).as_ref(), format!("{target}.INTENT.{TXN}"));
    }

    #[test]
    fn an_exclusive_lock_is_blocked_by_its_whole_family_and_by_nothing_else() {
        let family = family("x/truncating.lock", LockMode::Exclusive);
        for (name, expected) in [
            ("truncating.lock", HolderKind::Lock),
            (
                "truncating.lock.00112233445546778899aabbccddeeff",
                HolderKind::Lock,
            ),
            (
                "truncating.lock.INTENT.00112233445546778899aabbccddeeff",
                HolderKind::Intent,
            ),
            (
                "truncating.lock.INTENT.00112233-4455-4677-8899-aabbccddeeff",
                HolderKind::Intent,
            ),
            ("truncating.lock.INTENT.?", HolderKind::Intent),
            ("truncating.lock.WRIT", HolderKind::WriteLock),
            (
                "truncating.lock.READ.0123456789abcdef",
                HolderKind::ReadLock,
            ),
            ("truncating.lock.bak", HolderKind::Unknown),
            ("truncating.lock.", HolderKind::Unknown),
            (
                "truncating.lock.00112233445546778899AABBCCDDEEFF",
                HolderKind::Unknown,
            ),
        ] {
            let seen = kind(&family, &format!("x/{name}"));
            assert_eq!(seen, Some((expected, true)), "{name}");
        }
        for path in [
            "truncating.lock",
            "x/y/truncating.lock",
            "x/truncating.lock/y",
            "x/truncating.lock2",
            "x/truncating.locks.bak",
            "x/truncating-lock",
            "x/atruncating.lock",
            "x/truncating.loc",
            "x",
            "y/truncating.lock",
        ] {
            assert_eq!(kind(&family, path), None, "{path}");
        }
    }

    #[test]
    fn readers_share_and_writers_do_not() {
        let read = family("v1/LOCK", LockMode::Read);
        let write = family("v1/LOCK", LockMode::Write);
        for (name, blocks_reader, blocks_writer) in [
            ("v1/LOCK.READ.0123456789abcdef", false, true),
            ("v1/LOCK.READ.00112233445546778899aabbccddeeff", false, true),
            ("v1/LOCK.READ.0123456789abcdef.INTENT.00", false, true),
            ("v1/LOCK.READ.odd", false, true),
            ("v1/LOCK.READ", false, true),
            ("v1/LOCK.WRIT", true, true),
            ("v1/LOCK.WRIT.00112233445546778899aabbccddeeff", true, true),
            ("v1/LOCK.WRIT.INTENT.00", true, true),
            ("v1/LOCK.WRIT.bak", true, true),
            ("v1/LOCK.WRIT.a.b", true, true),
            ("v1/LOCK", true, true),
            ("v1/LOCK.INTENT.00", true, true),
            ("v1/LOCK.bak", false, false),
            ("v1/LOCK.WRITE", false, false),
        ] {
            let blocks = |family| kind(family, name).map(|(_, blocks)| blocks);
            assert_eq!(blocks(&read), Some(blocks_reader), "reader, {name}");
            assert_eq!(blocks(&write), Some(blocks_writer), "writer, {name}");
        }
        for (name, expected) in [
            ("v1/LOCK.WRIT", HolderKind::WriteLock),
            (
                "v1/LOCK.WRIT.00112233445566778899aabbccddeeff",
                HolderKind::WriteLock,
            ),
            ("v1/LOCK.WRIT.0011", HolderKind::Unknown),
            (
                "v1/LOCK.READ.00112233445566778899aabbccddeeff",
                HolderKind::ReadLock,
            ),
            ("v1/LOCK.READ.0011", HolderKind::Unknown),
        ] {
            let kind = kind(&write, name).map(|(kind, _)| kind);
            assert_eq!(kind, Some(expected), "{name}");
        }
        for name in [
            "v1/LOCKXYZ",
            "v1/APPEND_LOCK.WRIT",
            "v1/LOCK_WRIT",
            "LOCK.WRIT",
        ] {
            assert_eq!(kind(&write, name), None, "{name}");
        }
    }
}
