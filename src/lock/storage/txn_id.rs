use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rand::TryRngCore;
use rand::rngs::OsRng;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::lock::{LockError, LockErrorKind};

/// The id of one acquisition: a random UUID.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TxnId([u8; 16]);

impl TxnId {
    /// Returns a new one (a UUID of version 4).
    pub(super) fn random() -> Result<Self, LockError> {
        let mut bytes = [0; 16];
        OsRng.try_fill_bytes(&mut bytes).map_err(|error| {
            LockError::new(LockErrorKind::Other, "the system has no random numbers")
                .with_source(error)
        })?;
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Ok(Self(bytes))
    }

    /// Reads the forms that the tools write: base64 of the bytes (TiDB), the
    /// text with hyphens (TiKV), and 32 hex digits (in names).
    pub(super) fn parse(text: &str) -> Option<Self> {
        if let Ok(bytes) = STANDARD.decode(text)
            && let Ok(bytes) = bytes.try_into()
        {
            return Some(Self(bytes));
        }
        let is_hyphenated = text.len() == 36
            && text.is_ascii()
            && [8, 13, 18, 23]
                .iter()
                .all(|at| text.as_bytes()[*at] == b'-');
        let digits = match is_hyphenated {
            true => text.replace('-', ""),
            false => text.to_owned(),
        };
        let is_hex = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hex {
            return None;
        }
        let number = u128::from_str_radix(&digits, 16).ok()?;
        Some(Self(number.to_be_bytes()))
    }

    /// Returns the 32 hex digits that names use.
    pub(super) fn hex(self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.0))
    }

    /// Returns something to seed jitter with.
    pub(super) fn seed(self) -> u64 {
        let (high, low) = self.0.split_at(8);
        let fold = |bytes: &[u8]| {
            bytes
                .iter()
                .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        };
        fold(high) ^ fold(low)
    }

    fn base64(self) -> String {
        STANDARD.encode(self.0)
    }
}

impl fmt::Display for TxnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = self.hex();
        let (a, b, c, d, e) = (
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..],
        );
        write!(f, "{a}-{b}-{c}-{d}-{e}")
    }
}

impl fmt::Debug for TxnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for TxnId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.base64())
    }
}

impl<'de> Deserialize<'de> for TxnId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text)
            .ok_or_else(|| serde::de::Error::custom(format!("{text:?} is no transaction id")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00112233-4455-4677-8899-aabbccddeeff";

    #[test]
    fn all_forms_mean_the_same() {
        let id = TxnId::parse(TEXT).expect("text");
        assert_eq!(id.to_string(), TEXT);
        assert_eq!(id.hex(), "00112233445546778899aabbccddeeff");
        assert_eq!(id.base64(), "ABEiM0RVRneImaq7zN3u/w==");
        assert_eq!(TxnId::parse(&id.hex()), Some(id));
        assert_eq!(TxnId::parse(&id.base64()), Some(id));
        assert_eq!(TxnId::parse(&TEXT.to_uppercase()), Some(id));
        assert_eq!(id.seed(), 0x8888_8888_8888_a888);
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in [
            "",
            "ABEi",
            "00112233-4455-4677-8899-aabbccddeef",
            "00112233-4455-4677-8899-aabbccddeefg",
            "+0112233445546778899aabbccddeeff",
            "0011223344554-677-8899-aabbccddeeff-",
            "ABEiM0RVRneImaq7zN3u/w=",
            "é0112233-4455-4677-8899-aabbccddeef",
        ] {
            assert_eq!(TxnId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn random_ones_differ_and_are_of_version_4() {
        let (a, b) = (TxnId::random(), TxnId::random());
        let (a, b) = (a.expect("random"), b.expect("random"));
        assert_ne!(a, b);
        assert_ne!(a.seed(), b.seed());
        for _ in 0..64 {
            let hex = TxnId::random().expect("random").hex();
            assert_eq!(&hex[12..13], "4", "{hex}");
            assert!("89ab".contains(&hex[16..17]), "{hex}");
        }
    }
}
