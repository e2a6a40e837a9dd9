//! Logs for tests: a new one on every backend, servers that can be stopped, reads that are counted, and the suite that
//! every backend must pass.

pub mod backends;
pub mod cluster;
pub mod conformance;
pub mod counting;

use std::path::Path;

/// True in `./test crash`, where long tests try everything instead of a sample.
pub fn tries_all() -> bool {
    std::env::var("CREWLOG_TEST_SWEEP").is_ok_and(|sweep| sweep == "all")
}

/// A path of a temporary folder as text.
pub fn text(path: &Path) -> String {
    path.to_str().expect("the path is UTF-8").to_owned()
}
