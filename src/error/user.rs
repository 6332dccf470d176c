use std::fmt;

use super::{ErrorKind, Failure};
use crate::range::KeyRange;
use crate::region::{RegionId, StoreId};

/// What a user of the library gets when something went wrong.
///
/// The message is for people and may change; decide by [`Error::kind`]. It
/// never shows keys: where a key range matters it is in [`Error::key_range`].
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Error(Box<Inner>);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    store_id: Option<StoreId>,
    region_id: Option<RegionId>,
    key_range: Option<KeyRange>,
    source: Option<Failure>,
}

impl Error {
    /// Returns an error of `kind` that says `message`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            store_id: None,
            region_id: None,
            key_range: None,
            source: None,
        }))
    }

    /// Names the store it is about.
    #[must_use]
    pub fn with_store(mut self, store_id: StoreId) -> Self {
        self.0.store_id = Some(store_id);
        self
    }

    /// Names the region it is about.
    #[must_use]
    pub fn with_region(mut self, region_id: RegionId) -> Self {
        self.0.region_id = Some(region_id);
        self
    }

    /// Names the keys it is about.
    #[must_use]
    pub fn with_key_range(mut self, range: KeyRange) -> Self {
        self.0.key_range = Some(range);
        self
    }

    /// Names the failure that led to it.
    #[must_use]
    pub fn with_source(mut self, source: Failure) -> Self {
        self.0.source = Some(source);
        self
    }

    /// Returns what it is, for decisions.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns whether the same call can succeed later; see
    /// [`ErrorKind::is_retryable`].
    pub fn is_retryable(&self) -> bool {
        self.0.kind.is_retryable()
    }

    /// Returns the message without anything added.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the store it is about, where there is one.
    pub fn store_id(&self) -> Option<StoreId> {
        self.0.store_id
    }

    /// Returns the region it is about, where there is one.
    pub fn region_id(&self) -> Option<RegionId> {
        self.0.region_id
    }

    /// Returns the keys it is about, where that matters. Keys are user data.
    pub fn key_range(&self) -> Option<&KeyRange> {
        self.0.key_range.as_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .field("store_id", &self.0.store_id)
            .field("region_id", &self.0.region_id)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0
            .source
            .as_ref()
            .map(|failure| failure as &(dyn std::error::Error + 'static))
    }
}
