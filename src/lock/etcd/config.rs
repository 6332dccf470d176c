use std::fmt;
use std::path::PathBuf;

use super::address::Address;
use super::key::Keys;
use crate::certificate::CertificateFiles;
use crate::lock::{EtcdUrl, LockError, LockErrorKind};

/// Where a lock on etcd lies, and how to get there.
///
/// `Debug` shows neither user nor password nor the paths of files.
#[derive(Clone)]
pub struct EtcdConfig {
    pub(super) endpoints: Vec<Address>,
    name: String,
    namespace: String,
    wants_tls: bool,
    pub(super) tls: Option<CertificateFiles>,
    pub(super) login: Option<Login>,
}

/// Who we are, where etcd wants to know.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Login {
    pub(super) user: String,
    pub(super) password: String,
}

/// The variables that [`EtcdConfig::with_environment`] looks at: plain ones for
/// the login, and those of etcdctl.
const USERNAME: &str = "ETCD_USERNAME";
const USER_PASSWORD: &str = "ETCD_PASSWORD";
const USER: &str = "ETCDCTL_USER";
const PASSWORD: &str = "ETCDCTL_PASSWORD";
const CA: &str = "ETCDCTL_CACERT";
const CERT: &str = "ETCDCTL_CERT";
const KEY: &str = "ETCDCTL_KEY";

impl EtcdConfig {
    /// A lock of this name on the etcd whose members listen at `endpoints`, each
    /// `host:port` or `host`, then with port 2379. PD's endpoints will do.
    ///
    /// # Errors
    /// [`LockErrorKind::Config`] when there is no endpoint, one is not of that
    /// form, or the name is empty.
    pub fn new<E: AsRef<str>>(
        endpoints: impl IntoIterator<Item = E>,
        name: impl Into<String>,
    ) -> Result<Self, LockError> {
        let endpoints: Vec<Address> = endpoints
            .into_iter()
            .map(|text| Address::parse(text.as_ref()))
            .collect::<Result<_, _>>()
            .map_err(wrong)?;
        let name = name.into();
        if endpoints.is_empty() {
            return Err(wrong("a lock on etcd needs an endpoint"));
        }
        if name.is_empty() {
            return Err(wrong("a lock on etcd needs a name"));
        }
        Ok(Self {
            endpoints,
            name,
            namespace: String::new(),
            wants_tls: false,
            tls: None,
            login: None,
        })
    }

    /// The lock at a URL.
    ///
    /// # Errors
    /// As for [`EtcdConfig::new`].
    pub fn from_url(url: &EtcdUrl) -> Result<Self, LockError> {
        let mut config = Self::new(&url.endpoints, url.name.as_str())?;
        config.wants_tls = url.is_tls;
        Ok(config)
    }

    /// Fills in what is not set yet from the environment: the login from
    /// `ETCD_USERNAME` and `ETCD_PASSWORD`, or else from `etcdctl`'s own
    /// `ETCDCTL_USER` (`name` or `name:password`) and `ETCDCTL_PASSWORD`; and for
    /// a URL `etcds://…` the files from `ETCDCTL_CACERT`, `ETCDCTL_CERT` and
    /// `ETCDCTL_KEY`.
    ///
    /// `lookup` returns the value of a variable; for the real ones
    /// `|name| std::env::var(name).ok()`.
    #[must_use]
    pub fn with_environment(mut self, lookup: impl Fn(&str) -> Option<String>) -> Self {
        let get = |name| lookup(name).filter(|value| !value.is_empty());
        if self.login.is_none() {
            self.login = match get(USERNAME) {
                Some(user) => Some(Login {
                    user,
                    password: get(USER_PASSWORD).unwrap_or_default(),
                }),
                None => get(USER).map(|user| Login::from_parts(&user, get(PASSWORD))),
            };
        }
        if self.wants_tls && self.tls.is_none() {
            let identity = get(CERT).zip(get(KEY));
            self.tls = get(CA).map(|ca| CertificateFiles {
                ca: ca.into(),
                identity: identity.map(|(cert, key)| (cert.into(), key.into())),
            });
        }
        self
    }

    /// Puts a namespace before the name, as it is: locks of the same name in
    /// different namespaces have nothing to do with each other.
    #[must_use]
    pub fn with_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Logs in with this name and password. An etcd that wants no login is fine,
    /// too.
    #[must_use]
    pub fn with_user(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.login = Some(Login {
            user: user.into(),
            password: password.into(),
        });
        self
    }

    /// Uses TLS: trusts the authorities in the PEM file `ca`, and shows the
    /// certificate and the private key in the two PEM files of `identity` to a
    /// server that asks for it. The files are read anew for every connection.
    #[must_use]
    pub fn with_tls(
        mut self,
        ca: impl Into<PathBuf>,
        identity: Option<(PathBuf, PathBuf)>,
    ) -> Self {
        self.wants_tls = true;
        self.tls = Some(CertificateFiles {
            ca: ca.into(),
            identity,
        });
        self
    }

    /// Returns whether connections use TLS.
    pub const fn is_tls(&self) -> bool {
        self.wants_tls
    }

    /// Checks that the settings can work, and reads the files once, to find
    /// mistakes before anything is dialed.
    pub(super) fn validate(&self) -> Result<(), LockError> {
        match &self.tls {
            Some(tls) => tls.load_blocking().map(drop).map_err(wrong),
            None if self.wants_tls => Err(wrong(format!(
                "a lock on etcd with TLS needs the file of a CA ({CA})"
            ))),
            None => Ok(()),
        }
    }

    pub(super) fn keys(&self) -> Keys {
        Keys::new(&self.namespace, &self.name)
    }

    /// Returns where the lock lies, without credentials.
    pub(super) fn location(&self) -> String {
        let scheme = if self.wants_tls { "etcds" } else { "etcd" };
        let endpoints: Vec<_> = self.endpoints.iter().map(Address::authority).collect();
        let (namespace, name) = (&self.namespace, &self.name);
        format!("{scheme}://{}/{namespace}{name}", endpoints.join(","))
    }
}

impl fmt::Debug for EtcdConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdConfig")
            .field("location", &self.location())
            .finish_non_exhaustive()
    }
}

impl Login {
    /// Takes `name:password` apart, unless the password is told elsewhere.
    fn from_parts(user: &str, password: Option<String>) -> Self {
        let (user, password) = match (user.split_once(':'), password) {
            (_, Some(password)) => (user, password),
            (Some((user, password)), None) => (user, password.to_owned()),
            (None, None) => (user, String::new()),
        };
        Self {
            user: user.to_owned(),
            password,
        }
    }
}

fn wrong(message: impl Into<String>) -> LockError {
    LockError::new(LockErrorKind::Config, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::LockUrl;

    fn login(config: &EtcdConfig) -> Option<(&str, &str)> {
        let login = config.login.as_ref()?;
        Some((&login.user, &login.password))
    }

    fn at(url: &str) -> Result<EtcdConfig, LockError> {
        match url.parse()? {
            LockUrl::Etcd(url) => EtcdConfig::from_url(&url),
            other => panic!("{other} is not on etcd"),
        }
    }

    fn environment(
        url: &str,
        variables: &'static [(&'static str, &'static str)],
    ) -> Result<EtcdConfig, LockError> {
        let config = at(url)?;
        Ok(config.with_environment(|name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        }))
    }

    #[test]
    fn credentials_come_from_the_environment() -> Result<(), LockError> {
        let config = environment("etcd://h/n", &[])?;
        assert_eq!(login(&config), None);
        let config = environment("etcd://h/n", &[(USER, "ann:p:w")])?;
        assert_eq!(login(&config), Some(("ann", "p:w")));
        let config = environment("etcd://h/n", &[(USER, "ann"), (PASSWORD, "pw")])?;
        assert_eq!(login(&config), Some(("ann", "pw")));
        let config = environment(
            "etcd://h/n",
            &[(USER, "ann:pw"), (USERNAME, "bob:x"), (USER_PASSWORD, "y")],
        )?;
        assert_eq!(login(&config), Some(("bob:x", "y")));
        // What is set already stays.
        let config = at("etcd://h/n")?.with_user("bob", "x");
        let config = config.with_environment(|_| Some("ann".to_owned()));
        assert_eq!(login(&config), Some(("bob", "x")));
        // Without TLS its files play no part.
        let config = environment("etcd://h/n", &[(CA, "/ca")])?;
        assert!(config.tls.is_none() && !config.is_tls());
        let config = environment("etcds://h/n", &[(CA, "/ca"), (CERT, "/c"), (KEY, "/k")])?;
        let tls = config.tls.expect("there is a CA");
        assert_eq!(tls.ca, PathBuf::from("/ca"));
        assert_eq!(tls.identity, Some(("/c".into(), "/k".into())));
        Ok(())
    }

    #[test]
    fn credentials_do_not_show() -> Result<(), LockError> {
        let config = at("etcds://h1,[::1]:5/a/b")?
            .with_user("ann", "secret")
            .with_namespace("ks/")
            .with_tls("/hidden/ca", Some(("/hidden/c".into(), "/hidden/k".into())));
        let shown = format!("{config:?}");
        for part in ["ann", "secret", "hidden"] {
            assert!(!shown.contains(part), "{shown}");
        }
        assert_eq!(config.location(), "etcds://h1:2379,[::1]:5/ks/a/b");
        assert_eq!(config.keys().of(16), "ks/a/b/10");
        Ok(())
    }

    #[test]
    fn what_cannot_work_is_told_before_anything_is_dialed() {
        let kind = |config: Result<EtcdConfig, LockError>| config.map(drop).map_err(|e| e.kind());
        let none: [&str; 0] = [];
        assert_eq!(
            kind(EtcdConfig::new(none, "name")),
            Err(LockErrorKind::Config)
        );
        assert_eq!(kind(EtcdConfig::new(["h"], "")), Err(LockErrorKind::Config));
        let without_ca = at("etcds://h/name").expect("well formed");
        let error = without_ca.validate().expect_err("no CA");
        assert!(error.message().contains(CA), "{error}");
        let missing = EtcdConfig::new(["h"], "name").expect("well formed");
        let missing = missing.with_tls("/no/such/file", None);
        let error = missing.validate().expect_err("no file");
        assert!(error.message().contains("/no/such/file"), "{error}");
    }
}
