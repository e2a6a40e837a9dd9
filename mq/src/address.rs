//! Which backend a text names. It opens nothing.

use crate::error::Error;
#[cfg(feature = "sqlite")]
use crate::error::Result;

#[cfg(feature = "sqlite")]
const IN_MEMORY: &str = "a log in memory is made by EventStore::in_memory, give a path";

/// Whether a text is the URL of a PostgreSQL server.
#[cfg(feature = "postgres")]
pub(crate) fn is_postgres(url: &str) -> bool {
    let scheme = url.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    scheme.is_some_and(|scheme| scheme == "postgres" || scheme == "postgresql")
}

pub(crate) fn unsupported(url: &str, reason: &str) -> Error {
    Error::Unsupported { url: redacted(url), reason: reason.to_owned() }
}

/// The URL without its password and without its parameters, which may have one too.
fn redacted(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let rest = rest.split_once('?').map_or(rest, |(rest, _)| rest);
    match rest.rsplit_once('@') {
        Some((user, host)) => {
            let user = user.split_once(':').map_or(user, |(user, _)| user);
            format!("{scheme}://{user}@{host}")
        }
        None => format!("{scheme}://{rest}"),
    }
}

/// The file that a path or `sqlite:` URL names.
///
/// # Errors
/// [`Error::Unsupported`] when it names none, with what to give instead.
#[cfg(feature = "sqlite")]
pub fn sqlite_path(url: &str) -> Result<&std::path::Path> {
    let unsupported = |reason: &str| Err(unsupported(url, reason));
    if let Some(path) = url.strip_prefix("sqlite:") {
        let path = path.strip_prefix("//").unwrap_or(path);
        return match path {
            "" => unsupported("the path is empty, write sqlite:PATH"),
            ":memory:" => unsupported(IN_MEMORY),
            path => Ok(std::path::Path::new(path)),
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
