use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;

use bytes::Bytes;

/// A key: opaque bytes, compared bytewise, in the form in which the store keeps
/// it (for TiDB the memcomparable encoding; it is never decoded here).
///
/// `Debug` and `Display` hide the bytes; see [`Key::reveal`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Key(Bytes);

impl Key {
    /// The lowest key of all.
    pub const EMPTY: Self = Self(Bytes::new());

    /// Returns the key that is made of `bytes`.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self(bytes.into())
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns whether this is the lowest key of all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the bytes as upper-case hex, the form of PD's tools.
    pub fn reveal(&self) -> String {
        use fmt::Write;
        let mut hex = String::with_capacity(self.0.len() * 2);
        for byte in &self.0 {
            // Writing into a String cannot fail.
            let _ = write!(hex, "{byte:02X}");
        }
        hex
    }
}

impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl From<&[u8]> for Key {
    fn from(bytes: &[u8]) -> Self {
        Self(Bytes::copy_from_slice(bytes))
    }
}

impl<const N: usize> From<&[u8; N]> for Key {
    fn from(bytes: &[u8; N]) -> Self {
        Self(Bytes::copy_from_slice(bytes))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} bytes>", self.0.len())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The end of a key range, exclusive: a key, or no upper bound at all.
///
/// `Unbounded` is greater than every bounded end.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum EndKey {
    /// The range ends before this key.
    Bounded(Key),
    /// The range has no upper bound; an empty end key on the wire.
    Unbounded,
}

impl EndKey {
    /// Reads an end key as the wire has it: empty means unbounded.
    pub fn from_wire(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        if bytes.is_empty() {
            Self::Unbounded
        } else {
            Self::Bounded(Key::new(bytes))
        }
    }

    /// Returns the end key as the wire has it: empty when unbounded.
    pub fn as_wire(&self) -> &[u8] {
        match self {
            Self::Bounded(key) => key.as_bytes(),
            Self::Unbounded => &[],
        }
    }

    /// Returns the key, or `None` when there is no upper bound.
    pub fn as_key(&self) -> Option<&Key> {
        match self {
            Self::Bounded(key) => Some(key),
            Self::Unbounded => None,
        }
    }

    /// Returns whether `key` lies before this end.
    pub fn is_after(&self, key: &Key) -> bool {
        self.cmp_key(key) == Ordering::Greater
    }

    /// Compares this end with a key taken as a bound.
    pub fn cmp_key(&self, key: &Key) -> Ordering {
        match self {
            Self::Bounded(end) => end.cmp(key),
            Self::Unbounded => Ordering::Greater,
        }
    }
}

impl From<Key> for EndKey {
    fn from(key: Key) -> Self {
        Self::Bounded(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unbounded_is_above_every_key() {
        let high = Key::new(vec![0xff; 64]);
        assert!(EndKey::Unbounded > EndKey::Bounded(high.clone()));
        assert!(EndKey::Unbounded.is_after(&high));
        assert!(!EndKey::Bounded(high.clone()).is_after(&high));
    }

    #[test]
    fn empty_end_on_the_wire_is_unbounded() {
        assert_eq!(EndKey::from_wire(Bytes::new()), EndKey::Unbounded);
        assert!(EndKey::Unbounded.as_wire().is_empty());
        assert_eq!(EndKey::from_wire("b").as_wire(), b"b");
    }

    #[test]
    fn keys_are_hidden_unless_revealed() {
        let key = Key::from(b"secret");
        assert_eq!(format!("{key:?} {key}"), "<6 bytes> <6 bytes>");
        assert_eq!(key.reveal(), "736563726574");
    }
}
