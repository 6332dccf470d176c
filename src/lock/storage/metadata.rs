use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::txn_id::TxnId;
use crate::lock::LockConfig;

/// The content of a lock object, as all versions of the tools write it.
///
/// The order of the fields is theirs; what we add comes after, and only where
/// the lock expires. Fields that we do not know are kept.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Metadata {
    #[serde(with = "rfc3339")]
    pub(super) locked_at: SystemTime,
    #[serde(default)]
    pub(super) locker_host: String,
    #[serde(default)]
    pub(super) locker_pid: u64,
    /// Missing in the first version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) txn_id: Option<TxnId>,
    #[serde(default)]
    pub(super) hint: String,
    /// When the lock ends unless it is renewed, by the holder's clock.
    #[serde(
        default,
        with = "rfc3339::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub(super) expire_at: Option<SystemTime>,
    /// For how long it was granted, in milliseconds: ours alone. Only a lock
    /// that has it is ever taken over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lease_ms: Option<u64>,
    #[serde(flatten)]
    pub(super) other: Map<String, Value>,
}

impl Metadata {
    /// Returns what we say of ourselves.
    pub(super) fn new(config: &LockConfig, txn: TxnId, now: SystemTime) -> Self {
        let hint = match (config.purpose.as_str(), config.hint.as_str()) {
            (purpose, "") => purpose.to_owned(),
            ("", hint) => hint.to_owned(),
            (purpose, hint) => format!("{purpose}: {hint}"),
        };
        Self {
            locked_at: now,
            locker_host: config.host.clone(),
            locker_pid: u64::from(config.pid),
            txn_id: Some(txn),
            hint,
            expire_at: None,
            lease_ms: None,
            other: Map::new(),
        }
    }

    /// Says that it ends `lease` after `now` unless it is renewed.
    #[must_use]
    pub(super) fn expiring(mut self, lease: Duration, now: SystemTime) -> Self {
        self.expire_at = now.checked_add(lease);
        self.lease_ms = u64::try_from(lease.as_millis()).ok();
        self
    }

    /// Reads the content of an object.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn parse(content: &[u8]) -> Result<Self, String> {
        if content.is_empty() {
            return Err("it is empty".to_owned());
        }
        serde_json::from_slice(content).map_err(|error| format!("it cannot be read: {error}"))
    }

    pub(super) fn to_json(&self) -> Vec<u8> {
        // Strings and numbers only: there is nothing in it that can fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Returns what else is known, in words.
    pub(super) fn note(&self) -> Option<String> {
        let known = ["owner_id", "lock_type"];
        let parts: Vec<String> = known
            .iter()
            .filter_map(|name| Some(format!("{name} {}", self.other.get(*name)?.as_str()?)))
            .collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// Times as the tools write them: RFC 3339 with any offset and up to nine digits
/// of a second when read, UTC when written.
mod rfc3339 {
    use std::time::SystemTime;

    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        time: &SystemTime,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let time = Timestamp::try_from(*time).map_err(serde::ser::Error::custom)?;
        serializer.collect_str(&time)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<SystemTime, D::Error> {
        let text = String::deserialize(deserializer)?;
        let time: Timestamp = text.parse().map_err(serde::de::Error::custom)?;
        Ok(SystemTime::from(time))
    }

    pub(super) mod option {
        use std::time::SystemTime;

        use serde::{Deserialize, Deserializer, Serializer};

        /// How another language writes that there is no time, whatever the
        /// offset.
        const NONE: &str = "0001-01-01T00:00:00Z";

        pub(in super::super) fn serialize<S: Serializer>(
            time: &Option<SystemTime>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            match time {
                Some(time) => super::serialize(time, serializer),
                None => serializer.serialize_str(NONE),
            }
        }

        pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<SystemTime>, D::Error> {
            let Some(text) = Option::<String>::deserialize(deserializer)? else {
                return Ok(None);
            };
            let time: jiff::Timestamp = text.parse().map_err(serde::de::Error::custom)?;
            Ok((time.to_string() != NONE).then(|| SystemTime::from(time)))
        }
    }
}

#[cfg(test)]
mod tests;
