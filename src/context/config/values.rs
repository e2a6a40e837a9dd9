//! Values of the configuration that are checked where they are read.

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

/// An error in the file, and its byte.
#[derive(Debug)]
pub struct Fault {
    pub at: usize,
    pub message: String,
}

impl Fault {
    pub fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }
}

pub fn checked<'de, D: Deserializer<'de>, T: Deserialize<'de>, U>(
    from: D,
    check: impl FnOnce(T) -> Result<U, String>,
) -> Result<U, D::Error> {
    check(T::deserialize(from)?).map_err(D::Error::custom)
}
