use std::fmt;
use std::str::FromStr;

use super::error::{LockError, LockErrorKind};

/// The name of the lock where a URL names only the folder.
const NAME: &str = "snapshot-prepare.lock";

/// Where a lock lies, as a URL:
///
/// | URL | lock |
/// | --- | --- |
/// | `s3://bucket/path` | an object on S3, or on what speaks its language |
/// | `gs://bucket/path` | an object on Google Cloud Storage |
/// | `az://container/path` | an object on Azure Blob Storage |
/// | `file:///path` | a local file, by its absolute path |
/// | `etcd://host:port,host:port/name` | a key on etcd; `etcds://` with TLS |
///
/// A URL that ends in `/` means the lock `snapshot-prepare.lock` there. Names are
/// taken as they stand, nothing is unescaped. A port that is left out is etcd's
/// usual one, 2379. What follows the first slash after etcd's hosts is the lock's
/// name: one that begins with a slash has two of them.
///
/// Credentials have no place in it: the stores take theirs from the environment.
///
/// ```
/// use snapshot_prepare::lock::{LockUrl, StorageService};
///
/// let url: LockUrl = "s3://backups/cluster-1/".parse()?;
/// assert_eq!(url.to_string(), "s3://backups/cluster-1/snapshot-prepare.lock");
/// let LockUrl::Storage(url) = url else { unreachable!() };
/// assert_eq!(url.service, StorageService::S3);
/// # Ok::<(), snapshot_prepare::lock::LockError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LockUrl {
    /// An object on storage.
    Storage(StorageUrl),
    /// A key on etcd.
    Etcd(EtcdUrl),
}

/// The URL of a lock on storage.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct StorageUrl {
    /// The kind of storage.
    pub service: StorageService,
    /// The bucket, or the container; empty for local files.
    pub bucket: String,
    /// The path of the lock object, without a slash before it.
    pub path: String,
}

/// A kind of storage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StorageService {
    /// S3, or what speaks its language.
    S3,
    /// Google Cloud Storage.
    Gcs,
    /// Azure Blob Storage.
    Azure,
    /// Local files.
    File,
}

/// The URL of a lock on etcd.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct EtcdUrl {
    /// The members, each as host and port.
    pub endpoints: Vec<String>,
    /// Whether to use TLS.
    pub is_tls: bool,
    /// The name of the lock.
    pub name: String,
}

impl FromStr for LockUrl {
    type Err = LockError;

    fn from_str(text: &str) -> Result<Self, LockError> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(wrong(
                "the URL of a lock begins with s3://, gs://, az://, file://, \
                              etcd:// or etcds://",
            ));
        };
        if text.chars().any(|c| c.is_control()) {
            return Err(wrong("the URL of a lock has control characters"));
        }
        if text.contains(['?', '#']) {
            return Err(wrong("the URL of a lock has no part after ? or #"));
        }
        let (authority, path) = match rest.split_once('/') {
            Some((authority, path)) => (authority, path),
            None => (rest, ""),
        };
        if authority.contains('@') {
            return Err(wrong("the URL of a lock has no place for credentials"));
        }
        let service = match scheme {
            "s3" => StorageService::S3,
            "gs" => StorageService::Gcs,
            "az" => StorageService::Azure,
            "file" => StorageService::File,
            "etcd" | "etcds" => return etcd(scheme == "etcds", authority, path),
            _ => {
                let message = format!("{scheme:?} is no kind of lock");
                return Err(wrong(&message));
            }
        };
        storage(service, authority, path)
    }
}

fn wrong(message: &str) -> LockError {
    LockError::new(LockErrorKind::Config, message)
}

fn storage(service: StorageService, bucket: &str, path: &str) -> Result<LockUrl, LockError> {
    match (service, bucket.is_empty()) {
        (StorageService::File, false) => {
            return Err(wrong(
                "a local file is named by its absolute path: file:///path",
            ));
        }
        (StorageService::File, true) | (_, false) => {}
        (_, true) => return Err(wrong("the URL of a lock names no bucket")),
    }
    Ok(LockUrl::Storage(StorageUrl {
        service,
        bucket: bucket.to_owned(),
        path: named(path),
    }))
}

fn etcd(is_tls: bool, hosts: &str, name: &str) -> Result<LockUrl, LockError> {
    let mut endpoints = Vec::new();
    for host in hosts.split(',') {
        let (name, port) = match host.rsplit_once(':') {
            // The colons of an address in brackets are no port's.
            Some((name, port)) if !port.ends_with(']') => (name, port),
            _ => (host, "2379"),
        };
        let is_port = port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
        let is_bare_v6 = name.contains(':') && !name.starts_with('[');
        if name.is_empty() || !is_port || is_bare_v6 || host.contains(char::is_whitespace) {
            return Err(wrong(&format!("{host:?} is no host and port of etcd")));
        }
        endpoints.push(format!("{name}:{port}"));
    }
    Ok(LockUrl::Etcd(EtcdUrl {
        endpoints,
        is_tls,
        name: named(name),
    }))
}

/// Adds the usual name where only the folder is given.
fn named(path: &str) -> String {
    match path.is_empty() || path.ends_with('/') {
        true => format!("{path}{NAME}"),
        false => path.to_owned(),
    }
}

impl fmt::Display for LockUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Storage(url) => fmt::Display::fmt(url, f),
            Self::Etcd(url) => fmt::Display::fmt(url, f),
        }
    }
}

impl fmt::Display for StorageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.service {
            StorageService::S3 => "s3",
            StorageService::Gcs => "gs",
            StorageService::Azure => "az",
            StorageService::File => "file",
        };
        write!(f, "{scheme}://{}/{}", self.bucket, self.path)
    }
}

impl fmt::Display for EtcdUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "etcds" } else { "etcd" };
        write!(f, "{scheme}://{}/{}", self.endpoints.join(","), self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_and_written() {
        for (text, expected) in [
            ("s3://b/truncating.lock", "s3://b/truncating.lock"),
            ("s3://b/a/b/", "s3://b/a/b/snapshot-prepare.lock"),
            ("s3://b", "s3://b/snapshot-prepare.lock"),
            ("gs://b/ä b%20", "gs://b/ä b%20"),
            ("az://c/x", "az://c/x"),
            ("file:///tmp/x.lock", "file:///tmp/x.lock"),
            ("file:///tmp/", "file:///tmp/snapshot-prepare.lock"),
            ("etcd://h:1/n", "etcd://h:1/n"),
            ("etcd://h/n", "etcd://h:2379/n"),
            (
                "etcds://h:1,[::1]:2,[::2],1.2.3.4/n/m",
                "etcds://h:1,[::1]:2,[::2]:2379,1.2.3.4:2379/n/m",
            ),
            ("etcd://h:1//tidb/x", "etcd://h:1//tidb/x"),
            ("etcd://h:1/", "etcd://h:1/snapshot-prepare.lock"),
        ] {
            let url: LockUrl = text
                .parse()
                .unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(url.to_string(), expected);
            assert_eq!(expected.parse::<LockUrl>().ok(), Some(url));
        }
    }

    #[test]
    fn etcds_name_is_what_follows_the_first_slash() {
        let Ok(LockUrl::Etcd(url)) = "etcds://a:1,b:2//tidb/x".parse() else {
            panic!("it is one");
        };
        assert_eq!(url.name, "/tidb/x");
        assert_eq!(url.endpoints, ["a:1", "b:2"]);
        assert!(url.is_tls);
    }

    #[test]
    fn what_is_none_is_refused_without_showing_secrets() {
        for text in [
            "",
            "x",
            "/tmp/x",
            "s3:/b/x",
            "s3:///x",
            "ftp://h/x",
            "S3://b/x",
            "file://tmp/x",
            "s3://key:secret@b/x",
            "s3://b/x?secret",
            "s3://b/x#secret",
            "etcd:///x",
            "etcd://h:1,/x",
            "etcd://h:port/x",
            "etcd://h:70000/x",
            "etcd://h:+1/x",
            "etcd://:1/x",
            "etcd://::1/x",
            "etcd://h h:1/x",
            "etcd://user:secret@h:1/x",
            "s3://b/x\n",
        ] {
            let error = text.parse::<LockUrl>().expect_err(text);
            assert_eq!(error.kind(), LockErrorKind::Config);
            assert!(!error.message().contains("secret"), "{error}");
        }
    }
}
