//! How `serve` serves, as `[serve]` in `crewlog.toml` sets it.

use std::net::IpAddr;
use std::path::PathBuf;

use serde::Deserialize;

/// How to serve, as `[serve]` of the configuration says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServeConfig {
    /// The certificate chain and its key, PEM files: with them everything is over TLS.
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
    /// The addresses of proxies that add TLS: with them, connections from elsewhere are dropped.
    pub proxies: Vec<IpAddr>,
    /// The names, with ports where they are not the usual ones, by which it is called from elsewhere.
    pub hosts: Vec<String>,
}
