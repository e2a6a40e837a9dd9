//! The payload of the peers: the same 256 bytes of JSON as a sample of the store.

use serde::{Deserialize, Serialize};

use crate::workload::Sample;

#[derive(Debug, Serialize, Deserialize)]
pub struct Data {
    pub n: u64,
    pub unit: String,
    pub note: String,
}

impl Data {
    pub fn nth(n: u64) -> Self {
        let Sample::Measured { n, unit, note } = Sample::nth(n);
        Self { n, unit, note }
    }
}
