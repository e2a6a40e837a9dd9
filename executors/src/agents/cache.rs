//! Plans that were made before, by the hash of all that they were made of. They may be forgotten at any time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crewlog_planner::agents::AgentPlan;
use crewlog_planner::agents::registry::ToolRegistry;
use crewlog_planner::protocol::AgentType;

/// The most plans that are kept.
pub const PLANS_KEPT_MAX: usize = 256;

/// The plans, and how often one was found.
#[derive(Clone, Default)]
pub(super) struct Cache {
    kept: Arc<Kept>,
}

#[derive(Default)]
struct Kept {
    plans: Mutex<HashMap<String, AgentPlan>>,
    n_found: AtomicU64,
}

/// The hash of all that a plan is made of.
pub(super) fn key(agent: AgentType, words: &str, known: &str, registry: &ToolRegistry) -> String {
    let made_of = serde_json::to_vec(&(agent, words, known, registry));
    let made_of = made_of.expect("names, texts and numbers can always be written as JSON");
    blake3::hash(&made_of).to_hex().to_string()
}

impl Cache {
    pub(super) fn find(&self, key: &str) -> Option<AgentPlan> {
        let plans = self.kept.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let found = plans.get(key).cloned();
        self.kept.n_found.fetch_add(u64::from(found.is_some()), Ordering::Relaxed);
        found
    }

    pub(super) fn keep(&self, key: String, plan: AgentPlan) {
        let mut plans = self.kept.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if plans.len() >= PLANS_KEPT_MAX {
            plans.clear();
        }
        plans.insert(key, plan);
    }

    pub(super) fn n_found(&self) -> u64 {
        self.kept.n_found.load(Ordering::Relaxed)
    }
}
