/// The name of a lock and the keys that belong to it: the layout of etcd's own
/// mutex, so that its locks and ours exclude each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Keys {
    prefix: String,
}

impl Keys {
    /// The keys of the lock `name` in a namespace, which is put before the name
    /// as it is.
    pub(super) fn new(namespace: &str, name: &str) -> Self {
        Self {
            prefix: format!("{namespace}{name}/"),
        }
    }

    /// Returns what all keys of the lock begin with.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns the key of the contender with this lease.
    pub(super) fn of(&self, lease: i64) -> String {
        // As Go's `%x` writes it: lowercase, without padding; a lease is never
        // negative.
        format!("{}{lease:x}", self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_etcds_mutex() {
        for (namespace, name, lease, key) in [
            ("", "backup", 1, "backup/1"),
            (
                "",
                "/tidb/ddl/fg/owner",
                0x2231_9bb5_c55c_db48,
                "/tidb/ddl/fg/owner/22319bb5c55cdb48",
            ),
            (
                "",
                "/tidb/distributeLock/107",
                0x694d_9a2e,
                "/tidb/distributeLock/107/694d9a2e",
            ),
            // The name of TiDB's bootstrap lock ends with a slash.
            ("", "/tidb/bootstrap/", 0xa0b, "/tidb/bootstrap//a0b"),
            ("ks1/", "backup", 0xff, "ks1/backup/ff"),
            ("ks1", "/backup", 0xff, "ks1/backup/ff"),
            ("", "backup", i64::MAX, "backup/7fffffffffffffff"),
        ] {
            let keys = Keys::new(namespace, name);
            assert_eq!(keys.of(lease), key);
            assert!(key.starts_with(keys.prefix()));
        }
    }

    #[test]
    fn a_longer_name_has_keys_of_its_own() {
        let keys = Keys::new("", "backup");
        assert!(!Keys::new("", "backup2").of(1).starts_with(keys.prefix()));
    }
}
