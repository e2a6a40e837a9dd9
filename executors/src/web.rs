//! The HTTP client of this process.

use std::sync::Once;
use std::time::Duration;

/// The longest wait for a connection.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(20);

/// A client builder with common settings.
pub(crate) fn client() -> reqwest::ClientBuilder {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // Another part of the process may already have installed one, which works as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    reqwest::Client::builder().connect_timeout(CONNECT_TIME_MAX)
}
