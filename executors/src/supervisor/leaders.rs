//! The first processes of the commands that run, which are no strays.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::Pid;

/// Shared by the runs of a supervisor.
#[derive(Clone, Default)]
pub(super) struct Leaders(Arc<Mutex<HashSet<Pid>>>);

impl Leaders {
    pub fn lock(&self) -> MutexGuard<'_, HashSet<Pid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
