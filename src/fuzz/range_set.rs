use arbitrary::{Result, Unstructured};

use crate::range::{EndKey, Key, KeyRange, KeyRangeSet};

/// Changes a set at random and compares it with a row of 256 booleans.
///
/// # Errors
/// The bytes are used up in the middle of a value.
///
/// # Panics
/// The set is wrong.
pub fn range_set(data: &[u8]) -> Result<()> {
    let mut u = Unstructured::new(data);
    let mut set = KeyRangeSet::new();
    let mut model = [false; 256];
    while !u.is_empty() {
        let insert: bool = u.arbitrary()?;
        let from: u8 = u.arbitrary()?;
        let to: u8 = u.arbitrary()?;
        // The keys are `[0]` to `[255]` and what follows them; 255 as an end
        // means unbounded, so that the end of all keys is met.
        let Some(range) = byte_range(from, to) else {
            continue;
        };
        let last = if to == 255 { 255 } else { to - 1 };
        if insert {
            set.insert(&range);
        } else {
            set.remove(&range);
        }
        model[usize::from(from)..=usize::from(last)].fill(insert);
        check_set(&set, &model);
    }
    Ok(())
}

fn byte_range(from: u8, to: u8) -> Option<KeyRange> {
    let end = match to {
        255 => EndKey::Unbounded,
        byte => EndKey::Bounded(Key::from(&[byte])),
    };
    KeyRange::new(Key::from(&[from]), end)
}

fn check_set(set: &KeyRangeSet, model: &[bool; 256]) {
    let mut covered = [false; 256];
    let mut ends: Option<EndKey> = None;
    for range in set.iter() {
        let touches = ends
            .as_ref()
            .is_some_and(|end| !matches!(end, EndKey::Bounded(end) if end < range.start()));
        assert!(!touches, "two ranges of the set touch");
        // Every key of the set is one byte.
        let from = range
            .start()
            .as_bytes()
            .first()
            .copied()
            .map_or(0, usize::from);
        let to = range.end().as_key().map_or(256, |end| {
            end.as_bytes().first().copied().map_or(0, usize::from)
        });
        covered[from..to].fill(true);
        ends = Some(range.end().clone());
    }
    assert_eq!(covered, *model, "{set:?}");
}
