//! Tells which backend a text names, without opening anything.

#[cfg(any(feature = "sqlite", feature = "postgres"))]
use crate::error::Error;
#[cfg(feature = "sqlite")]
use crate::error::Result;

#[cfg(feature = "sqlite")]
const IN_MEMORY: &str = "a log in memory is made by EventStore::in_memory, give a path";

/// True if a text is the URL of a PostgreSQL server.
#[must_use]
pub fn is_postgres_url(url: &str) -> bool {
    let scheme = url.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    scheme.is_some_and(|scheme| scheme == "postgres" || scheme == "postgresql")
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn unsupported(url: &str, reason: &str) -> Error {
    Error::Unsupported { url: shown_url(url), reason: reason.to_owned() }
}

/// URL parameters that hold no secret.
const SHOWN: [&str; 4] = ["schema", "pooler", "sslmode", "application_name"];

/// A path or URL for display: without the password, and without parameters that might hold one.
#[must_use]
pub fn shown_url(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let is_shown = |parameter: &&str| parameter.split_once('=').is_some_and(|(key, _)| SHOWN.contains(&key));
    let parameters: Vec<&str> = parameters.split('&').filter(is_shown).collect();
    let place = match rest.rsplit_once('@') {
        Some((user, host)) => match user.split_once(':') {
            Some((user, _)) => format!("{user}:***@{host}"),
            None => format!("{user}@{host}"),
        },
        None => rest.to_owned(),
    };
    let mark = if parameters.is_empty() { "" } else { "?" };
    format!("{scheme}://{place}{mark}{}", parameters.join("&"))
}

/// The file that a path or `sqlite:` URL names.
///
/// # Errors
/// [`Error::Unsupported`] if it names no file; the error says which form to use.
#[cfg(feature = "sqlite")]
pub fn sqlite_path(url: &str) -> Result<&std::path::Path> {
    let unsupported = |reason: &str| Err(unsupported(url, reason));
    if let Some(path) = url.strip_prefix("sqlite:") {
        let path = path.strip_prefix("//").unwrap_or(path);
        return match path {
            "" => unsupported("the path is empty, write sqlite:PATH"),
            ":memory:" => unsupported(IN_MEMORY),
            path => match path.split_once('?') {
                // Other programs write `?mode=ro`, which must not create a file of that name.
                Some((_, parameters)) => {
                    unsupported(&format!("sqlite: has no parameters, and {parameters:?} was given"))
                }
                None => Ok(std::path::Path::new(path)),
            },
        };
    }
    match url.split_once("://") {
        Some((scheme, _)) => unsupported(&format!("there is no backend for {scheme}, give a path or sqlite:PATH")),
        None if url.is_empty() => unsupported("the path is empty"),
        None if url == ":memory:" => unsupported(IN_MEMORY),
        None if url.starts_with("file:") => unsupported("SQLite's own URLs are not read, give a path or sqlite:PATH"),
        None => Ok(std::path::Path::new(url)),
    }
}
