//! Keys in the form in which TiDB's tables lie in TiKV.
//!
//! A key is built from a prefix and big-endian integers with the sign bit
//! flipped, then made memcomparable: groups of 8 bytes, the last one padded
//! with zeros, each followed by 0xFF minus the number of padding bytes.

use crate::range::Key;

const GROUP: usize = 8;
const SIGN: u64 = 1 << 63;

/// Returns the key at which TiDB's meta data begins: `m`.
pub(super) fn meta() -> Key {
    memcomparable(b"m")
}

/// Returns the key at which a table begins: `t{table}`.
pub(super) fn table(table: u64) -> Key {
    memcomparable(&table_prefix(table))
}

/// Returns a key within an index of a table: `t{table}_i{index}{value}`.
pub(super) fn index(table: u64, index: u64, value: u64) -> Key {
    let mut raw = table_prefix(table);
    raw.extend_from_slice(b"_i");
    raw.extend_from_slice(&(index ^ SIGN).to_be_bytes());
    // The flag of an encoded integer.
    raw.push(3);
    raw.extend_from_slice(&(value ^ SIGN).to_be_bytes());
    memcomparable(&raw)
}

/// Returns the key of a row: `t{table}_r{handle}`.
pub(super) fn row(table: u64, handle: u64) -> Key {
    let mut raw = table_prefix(table);
    raw.extend_from_slice(b"_r");
    raw.extend_from_slice(&(handle ^ SIGN).to_be_bytes());
    memcomparable(&raw)
}

fn table_prefix(table: u64) -> Vec<u8> {
    let mut raw = Vec::with_capacity(32);
    raw.push(b't');
    raw.extend_from_slice(&(table ^ SIGN).to_be_bytes());
    raw
}

fn memcomparable(raw: &[u8]) -> Key {
    let mut encoded = Vec::with_capacity((raw.len() / GROUP + 1) * (GROUP + 1));
    let mut rest = raw;
    loop {
        let taken = rest.len().min(GROUP);
        let (group, tail) = rest.split_at(taken);
        encoded.extend_from_slice(group);
        let padding = GROUP - taken;
        encoded.resize(encoded.len() + padding, 0);
        // At most 8, so that the marker is 0xF7 at the least.
        encoded.push(0xff - padding as u8);
        rest = tail;
        if padding > 0 {
            return Key::new(encoded);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys as PD shows them for real tables.
    #[test]
    fn keys_look_like_those_of_a_real_cluster() {
        assert_eq!(meta().reveal(), "6D00000000000000F8");
        assert_eq!(table(0xba).reveal(), "7480000000000000FFBA00000000000000F8");
        assert_eq!(
            row(0x1ac, 0x1b_bd1d).reveal(),
            "7480000000000001FFAC5F728000000000FF1BBD1D0000000000FA"
        );
        assert_eq!(
            index(0x218, 1, 0x127_fa27).reveal(),
            "7480000000000002FF185F698000000000FF0000010380000000FF0127FA2700000000FB"
        );
    }

    #[test]
    fn a_full_group_is_followed_by_an_empty_one() {
        assert_eq!(
            memcomparable(b"mDDLJobH").reveal(),
            "6D44444C4A6F6248FF0000000000000000F7"
        );
    }
}
