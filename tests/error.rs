//! What a user of the library can rely on in its errors.

use std::collections::BTreeSet;
use std::error::Error as _;

use proptest::prelude::*;
use snapshot_prepare::error::{Error, ErrorKind, Failure, FailureKind};
use snapshot_prepare::range::KeyRange;
use snapshot_prepare::region::{RegionId, StoreId};

fn kind() -> impl Strategy<Value = ErrorKind> {
    prop::sample::select(&ErrorKind::ALL)
}

#[test]
fn each_kind_has_a_name_of_its_own_in_snake_case() {
    let names: BTreeSet<_> = ErrorKind::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(names.len(), ErrorKind::ALL.len());
    for kind in ErrorKind::ALL {
        let name = kind.as_str();
        assert_eq!(kind.to_string(), name);
        assert_eq!(name, snake_case(&format!("{kind:?}")));
    }
}

/// Returns the variant's own name with each capital letter as a new word.
fn snake_case(variant: &str) -> String {
    let mut name = String::new();
    for c in variant.chars() {
        if c.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

#[test]
fn trying_again_is_worth_it_where_nothing_has_to_be_changed() {
    let worth: Vec<_> = ErrorKind::ALL
        .into_iter()
        .filter(|kind| kind.is_retryable())
        .collect();
    assert_eq!(
        worth,
        [
            ErrorKind::PrepareTimeout,
            ErrorKind::Unreachable,
            ErrorKind::Superseded,
            ErrorKind::ForeignLease,
            ErrorKind::LeaseLost,
            ErrorKind::StreamLost,
            ErrorKind::HoldTimeout,
            ErrorKind::LockLost,
            ErrorKind::ReleaseUnconfirmed,
            ErrorKind::Locked,
            ErrorKind::StorageFull,
        ]
    );
}

#[test]
fn failure_kinds_are_listed_once_each() {
    let kinds: BTreeSet<_> = FailureKind::ALL.into_iter().collect();
    assert_eq!(kinds.len(), FailureKind::ALL.len());
}

proptest! {
    #[test]
    fn an_error_gives_back_what_it_was_made_of(
        kind in kind(),
        message in ".{0,40}",
        store in prop::option::of(any::<u64>()),
        region in prop::option::of(any::<u64>()),
        source in prop::option::of((prop::sample::select(&FailureKind::ALL), ".{0,40}")),
    ) {
        let mut error = Error::new(kind, message.clone());
        if let Some(id) = store {
            error = error.with_store(StoreId(id));
        }
        if let Some(id) = region {
            error = error.with_region(RegionId(id));
        }
        let failure = source.map(|(kind, message)| Failure::new(kind, message));
        if let Some(failure) = &failure {
            error = error.with_source(failure.clone());
        }
        prop_assert_eq!(error.kind(), kind);
        prop_assert_eq!(error.is_retryable(), kind.is_retryable());
        prop_assert_eq!(error.message(), message.as_str());
        prop_assert_eq!(error.to_string(), message);
        prop_assert_eq!(error.store_id(), store.map(StoreId));
        prop_assert_eq!(error.region_id(), region.map(RegionId));
        prop_assert_eq!(error.key_range(), None);
        let told = error.source().map(ToString::to_string);
        prop_assert_eq!(told, failure.map(|failure| failure.message));
    }

    #[test]
    fn keys_are_never_shown(kind in kind(), key in "[g-z]{8,20}") {
        let range = KeyRange::from_wire(key.clone(), String::new()).expect("not empty");
        let error = Error::new(kind, "stuck").with_key_range(range.clone());
        prop_assert_eq!(error.key_range(), Some(&range));
        let hex = range.start().reveal();
        for shown in [format!("{error}"), format!("{error:?}"), format!("{error:#?}")] {
            prop_assert!(!shown.contains(&key) && !shown.to_uppercase().contains(&hex), "{}", shown);
        }
    }
}
