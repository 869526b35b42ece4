//! The address of a PostgreSQL server: how to reach it, and what its errors mean.

use std::error::Error as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Config, Error};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::core::housekeeping::rights::Right;
use crate::store::error::{Result, StoreError};
use crate::store::sql::engine::object_storage;

/// Marks the errors of the trigger that refuses changes: this is their constraint, their column is the missing right,
/// and their detail the directory of the chain, or `host` and the host of another user.
pub(crate) const REFUSED: &str = "agent_cli_rights";

/// Begins the end of the error that the tables have another version: that version and the known one follow.
pub(crate) const OTHER_VERSION: &str = "agent_cli_version";

/// A server, and how to reach it.
pub(crate) struct Address {
    pub(crate) config: Config,
    /// Whether a pooler may assign another connection of the server to each transaction.
    pub(crate) is_pooled: bool,
    /// The object storage for the files of agents; `None`: the database has them.
    pub(crate) copies: Option<String>,
}

impl Address {
    /// Parses the address of a server.
    pub(crate) fn parse(url: &str) -> Result<Self> {
        let (server, options) = url.split_once('?').unwrap_or((url, ""));
        let (mut others, mut is_pooled, mut copies) = (Vec::new(), false, None);
        for option in options.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("pooler", "session")) => is_pooled = false,
                Some(("pooler", "transaction")) => is_pooled = true,
                Some(("pooler", _)) => {
                    return Err(StoreError::BadStore { why: "pooler must be session or transaction".to_owned() });
                }
                Some(("copies", place)) => {
                    let place = place.trim_end_matches('/');
                    object_storage::check_address(place)?;
                    copies = Some(place.to_owned());
                }
                _ => others.push(option),
            }
        }
        let options = if others.is_empty() { String::new() } else { format!("?{}", others.join("&")) };
        Ok(Self { config: config(&format!("{server}{options}"))?, is_pooled, copies })
    }
}

fn config(url: &str) -> Result<Config> {
    let wrong = |why: String| StoreError::BadStore { why };
    if !["postgres://", "postgresql://"].iter().any(|start| url.starts_with(start)) {
        return Err(wrong("it does not begin with postgres://".to_owned()));
    }
    if url.chars().any(char::is_control) {
        return Err(wrong("it contains a line break or another control character".to_owned()));
    }
    let authority = url.split("://").nth(1).and_then(|rest| rest.split(['/', '?']).next()).unwrap_or_default();
    if authority.matches('@').count() > 1 {
        return Err(wrong("it contains more than one @: write %40 in a password".to_owned()));
    }
    let mut config: Config = url.parse().map_err(|error: Error| wrong(detail(&error)))?;
    if config.get_hosts().is_empty() {
        return Err(wrong("it names no host".to_owned()));
    }
    config.application_name("agent-cli");
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(Duration::from_secs(10));
    }
    // A connection that was dropped silently is replaced before a lease ends.
    config.keepalives_idle(Duration::from_secs(10));
    config.tcp_user_timeout(Duration::from_secs(10));
    Ok(protected(config))
}

fn detail(error: &Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

/// Requires encryption, with a certificate that this machine trusts, if the server is on another machine and the address
/// does not say otherwise.
fn protected(mut config: Config) -> Config {
    let is_here = |host: &Host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()),
    };
    if config.get_ssl_mode() == SslMode::Prefer
        && !(config.get_hosts().iter().all(is_here) && config.get_hostaddrs().iter().all(IpAddr::is_loopback))
    {
        config.ssl_mode(SslMode::Require);
    }
    config
}

/// How to encrypt a connection; `None`: without encryption. [`protected`] decides which.
pub(super) fn tls(config: &Config) -> Option<MakeRustlsConnect> {
    if config.get_ssl_mode() != SslMode::Require {
        return None;
    }
    let mut roots = RootCertStore::empty();
    // Certificates that cannot be read are not trusted.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = versions.expect("the provider has them").with_root_certificates(roots).with_no_client_auth();
    Some(MakeRustlsConnect::new(config))
}

/// The address of a server, without its password.
pub(crate) fn place(config: &Config) -> String {
    let host = config.get_hosts().first().map_or_else(String::new, |host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string(),
    });
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let user = config.get_user().map_or_else(String::new, |user| format!("{user}@"));
    let name = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("postgres://{user}{host}:{port}/{name}")
}

/// Names an error by what a person can do about it.
pub(super) fn explain(config: &Config, error: &Error) -> StoreError {
    let place = place(config);
    let path = || place.clone().into();
    let Some(found) = error.as_db_error() else {
        let mut why = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            why = format!("{why}: {cause}");
            source = cause.source();
        }
        return StoreError::Server { place, why };
    };
    if found.constraint() == Some(REFUSED) {
        let user = config.get_user().unwrap_or_default().to_owned();
        let detail = found.detail().unwrap_or_default().to_owned();
        if found.column() == Some("host") {
            return StoreError::OthersHost { host: detail, user };
        }
        let right = found.column().and_then(|right| right.parse().ok()).unwrap_or(Right::Start);
        return StoreError::NoRight { user, right, directory: detail };
    }
    if let Some((_, versions)) = found.message().split_once(OTHER_VERSION) {
        let mut versions = versions.trim_matches(['"', ' ']).split(' ').map(str::parse);
        return match (versions.next(), versions.next()) {
            (Some(Ok(found)), Some(Ok(known))) => StoreError::Newer { path: path(), found, known },
            _ => StoreError::NotADatabase(path()),
        };
    }
    match *found.code() {
        SqlState::DISK_FULL => StoreError::Full(path()),
        SqlState::LOCK_NOT_AVAILABLE | SqlState::QUERY_CANCELED => StoreError::Busy(path()),
        SqlState::READ_ONLY_SQL_TRANSACTION | SqlState::INSUFFICIENT_PRIVILEGE => {
            StoreError::Server { place, why: found.message().to_owned() }
        }
        // A connection that another client has used, or a user who may not use the tables any longer.
        SqlState::UNDEFINED_TABLE | SqlState::DUPLICATE_PSTATEMENT | SqlState::INVALID_SQL_STATEMENT_NAME => {
            let why = "a pooler that assigns a connection to each transaction needs ?pooler=transaction in the address";
            let rights = match *found.code() {
                SqlState::UNDEFINED_TABLE => ", or this user has no rights any longer",
                _ => "",
            };
            StoreError::Server { place, why: format!("{} ({why}{rights})", found.message()) }
        }
        _ => StoreError::Server { place, why: found.message().to_owned() },
    }
}
