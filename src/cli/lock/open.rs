use crate::lock::{EtcdUrl, LockConfig, LockError, LockUrl, RunLock, StorageUrl};

/// Returns the lock that a URL names. Nothing is asked of it yet. The URL is read
/// here and not with the other arguments, whose errors show what was typed: it
/// may have a password in it, where none belongs.
///
/// # Errors
/// The URL is none, the settings cannot work, or this program was built without
/// that kind of lock.
pub(super) fn open(url: &str, config: LockConfig) -> Result<Box<dyn RunLock>, LockError> {
    match url.parse::<LockUrl>()? {
        LockUrl::Storage(url) => storage(&url, config),
        LockUrl::Etcd(url) => etcd(&url, config),
    }
}

fn storage(url: &StorageUrl, config: LockConfig) -> Result<Box<dyn RunLock>, LockError> {
    use crate::lock::storage::{StorageLock, StorageOptions};

    let lock = StorageLock::open(url, config, StorageOptions::default())?;
    Ok(Box::new(lock))
}

#[cfg(feature = "lock-etcd")]
fn etcd(url: &EtcdUrl, config: LockConfig) -> Result<Box<dyn RunLock>, LockError> {
    use crate::lock::etcd::{EtcdConfig, EtcdLock};

    let target = EtcdConfig::from_url(url)?.with_environment(|name| std::env::var(name).ok());
    Ok(Box::new(EtcdLock::new(target, config)?))
}

#[cfg(not(feature = "lock-etcd"))]
fn etcd(url: &EtcdUrl, _: LockConfig) -> Result<Box<dyn RunLock>, LockError> {
    use crate::lock::LockErrorKind;

    let message = format!(
        "{url}: this program was built without locks on etcd; build it with --features \
         cli,lock-etcd, which needs protoc"
    );
    Err(LockError::new(LockErrorKind::Config, message))
}
