use std::sync::Arc;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::list::PaginatedListStore;
use object_store::local::LocalFileSystem;
use object_store::{ObjectStore, RetryConfig};

use super::lock::StorageLock;
use super::options::StorageOptions;
use crate::lock::{LockConfig, LockError, LockErrorKind, StorageService, StorageUrl};

impl StorageLock {
    /// Returns the lock that a URL names. Nothing is asked of the store yet.
    ///
    /// Endpoint, region and credentials come from the environment, by the names
    /// that each cloud's own tools use (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`,
    /// `AWS_REGION`, …; `GOOGLE_APPLICATION_CREDENTIALS`;
    /// `AZURE_STORAGE_ACCOUNT_NAME`, …) or from the machine's own identity. An
    /// endpoint without TLS needs `AWS_ALLOW_HTTP=true`.
    ///
    /// If the process has no default for TLS yet (of the crate `rustls`), this
    /// installs ring's.
    ///
    /// # Errors
    /// [`LockErrorKind::Config`] when the settings cannot work; see
    /// [`StorageLock::new`].
    pub fn open(
        url: &StorageUrl,
        config: LockConfig,
        options: StorageOptions,
    ) -> Result<Self, LockError> {
        // An error means that there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // The lock repeats calls itself, since it knows which of them it may.
        let retry = RetryConfig {
            max_retries: 1,
            retry_timeout: config.call_timeout,
            ..RetryConfig::default()
        };
        let (store, pages): (Arc<dyn ObjectStore>, Option<Arc<dyn PaginatedListStore>>) =
            match url.service {
                StorageService::S3 => {
                    let builder = AmazonS3Builder::from_env()
                        .with_bucket_name(&url.bucket)
                        .with_retry(retry);
                    both(builder.build())?
                }
                StorageService::Gcs => {
                    let builder = GoogleCloudStorageBuilder::from_env()
                        .with_bucket_name(&url.bucket)
                        .with_retry(retry);
                    both(builder.build())?
                }
                StorageService::Azure => {
                    let builder = MicrosoftAzureBuilder::from_env()
                        .with_container_name(&url.bucket)
                        .with_retry(retry);
                    both(builder.build())?
                }
                StorageService::File => (Arc::new(LocalFileSystem::new()), None),
            };
        let lock = Self::new(Arc::clone(&store), &url.path, config, options)?;
        let lock = lock.named(url.to_string());
        Ok(match pages {
            Some(pages) => lock.with_pages(store, pages),
            None => lock,
        })
    }
}

type Both = (Arc<dyn ObjectStore>, Option<Arc<dyn PaginatedListStore>>);

fn both<S: ObjectStore + PaginatedListStore>(
    built: Result<S, object_store::Error>,
) -> Result<Both, LockError> {
    let store = built.map_err(|error| {
        let message = format!("the storage's settings cannot work: {error}");
        LockError::new(LockErrorKind::Config, message).with_source(error)
    })?;
    let store = Arc::new(store);
    Ok((Arc::clone(&store) as _, Some(store)))
}
