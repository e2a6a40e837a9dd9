//! The items of plans at rest, kept with the log: a list of many plans reads only those that changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crewlog_mq::{Error, EventStore, Position, Query, Range, Snapshot, Snapshots};
use crewlog_planner::crew::agents::Agents;
use crewlog_planner::crew::asks::Asks;
use crewlog_planner::crew::conflicts::{ConflictEvent, Conflicts};
use crewlog_planner::listing::ListedPlan;
use crewlog_planner::nesting;
use serde::{Deserialize, Serialize};

use super::needs::{Facts, Need, OpenPlan, of_plan, with_crew};
use super::state::Crew;
use crate::agent::Agent;
use crate::caller::host;
use crate::consent::Trust;
use crate::programs::{ProgramConsent, digest};
use crate::roster::Roster;

/// The fewest plans whose items are worth a new snapshot.
const NEW_MIN: usize = 16;

/// The items of the plans of a project that only a decision, another configuration or an event can change: nobody holds
/// their tasks, no timer runs, and no other plan takes part.
pub struct AtRest {
    kept: StoredItems,
    n_new: usize,
    store: EventStore,
    snapshots: Snapshots<StoredItems>,
}

#[derive(Default, Serialize, Deserialize)]
struct StoredItems {
    /// A digest of what the items depend on besides their plan and its folder.
    outside: String,
    plans: BTreeMap<String, Resting>,
}

#[derive(Serialize, Deserialize)]
struct Resting {
    changed_at: Position,
    /// The folder of the plan, and where it is on this host.
    folder: Option<(String, PathBuf)>,
    items: Vec<Need>,
}

impl Snapshot for StoredItems {
    const FOLD: &'static str = "needs";
    const VERSION: u32 = 1;
    const EVERY: u64 = 1;
}

impl AtRest {
    /// The stored items of the open plans of a project, as far as they still hold on this host.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn read(
        crew: &Crew,
        agents: &Agents,
        (asks, conflicts): (&Asks, &Conflicts),
        open: &[ListedPlan],
    ) -> Result<Self, Error> {
        crew.catch_up_decisions().await?;
        let (roster, named) = (crew.roster(), named(asks, conflicts));
        let outside = outside(crew, agents);
        // The list of plans has no texts that are sealed, and these items have none either.
        let store = crew.store().clone().as_stored();
        // Other hosts have other executors and folders.
        let mut snapshots = Snapshots::of(&store, &Query::all()).under(&format!("{}@{}", crew.project(), host()));
        let newest: Option<(StoredItems, _)> = snapshots.newest().await?;
        let mut plans = newest.map(|(kept, _)| kept).filter(|kept| kept.outside == outside).unwrap_or_default().plans;
        let mut kept = StoredItems { outside, plans: BTreeMap::new() };
        let mut here = BTreeMap::new();
        for ListedPlan { id, changed_at, .. } in open.iter().filter(|listed| !named.contains(&listed.id)) {
            let Some(resting) = plans.remove(id).filter(|resting| resting.changed_at == *changed_at) else { continue };
            let is_same =
                || resting.folder.as_ref().is_none_or(|(kept, found)| place(roster, kept).as_ref() == Some(found));
            if *here.entry(resting.folder.clone()).or_insert_with(is_same) {
                kept.plans.insert(id.clone(), resting);
            }
        }
        Ok(Self { kept, n_new: 0, store, snapshots })
    }

    /// The others among the open plans, whose items are not known.
    pub fn changed(&self, open: &[ListedPlan]) -> Vec<String> {
        let changed = open.iter().filter(|listed| !self.kept.plans.contains_key(&listed.id));
        changed.map(|listed| listed.id.clone()).collect()
    }

    /// The items of the plans of the facts, and of those at rest: [`super::needs_you`].
    pub fn needs_you(&mut self, facts: &Facts<'_>) -> Vec<Need> {
        let mut items = Vec::new();
        for open in facts.plans {
            let (of_this, kept) = (of_plan(facts, open), open.view.state().config.folder.as_ref());
            let folder = kept.map(|kept| place(facts.roster, kept).map(|found| (kept.clone(), found)));
            let is_kept = is_at_rest(open) && folder.as_ref().is_none_or(Option::is_some);
            match facts.open.get(open.plan).filter(|listed| is_kept && !listed.is_sealed) {
                Some(listed) => {
                    self.n_new += 1;
                    let (changed_at, folder) = (listed.changed_at, folder.flatten());
                    self.kept.plans.insert(open.plan.to_owned(), Resting { changed_at, folder, items: of_this });
                }
                None => items.extend(of_this),
            }
        }
        let is_stored_again = self.n_new >= NEW_MIN;
        for Resting { items: of_this, .. } in self.kept.plans.values_mut() {
            items.append(&mut if is_stored_again { of_this.clone() } else { std::mem::take(of_this) });
        }
        with_crew(facts, items)
    }

    /// Stores the items if many are new, and nothing changed meanwhile. `at` is the position of the facts.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn keep(mut self, crew: &Crew, agents: &Agents, at: Position) -> Result<(), Error> {
        if self.n_new >= NEW_MIN && self.kept.outside == outside(crew, agents) {
            let last = self.store.read(&Query::all(), Range::up_to(at).backwards(), 1).await?;
            if let Some(last) = last.events.first() {
                // It is due, however few events there were.
                self.snapshots.fold(usize::MAX);
                self.snapshots.keep(&self.kept, last.into()).await;
            }
        }
        Ok(())
    }
}

/// A digest of what the items depend on besides their plan and its folder.
fn outside(crew: &Crew, agents: &Agents) -> String {
    digest(&[format!("{:?} {:?}", crew.presence_of(agents).1, crew.roster().map(standing))])
}

/// The settings and decisions about who may run a task, as text.
fn standing(roster: &Roster) -> String {
    let Roster { takes_commands, knows_tools, registry, trust, .. } = roster;
    let of = |agent: &Agent| {
        let (waits_until, consent) =
            (roster.waits_until(&agent.name), agent.consent.as_ref().map(ProgramConsent::digest));
        (agent.name.clone(), agent.kinds.clone(), agent.shown(true), agent.may_start(), consent, waits_until)
    };
    let agents = roster.agents.iter().map(of).collect::<Vec<_>>();
    format!(
        "{agents:?} {takes_commands} {knows_tools} {} {:?}",
        registry.is_some(),
        trust.as_ref().map(Trust::standing)
    )
}

/// The plans of the tasks in questions and conflicts: their items have the names of these tasks.
fn named(asks: &Asks, conflicts: &Conflicts) -> BTreeSet<String> {
    let asked = asks.open().filter_map(|(_, open)| open.ask.task.as_deref()?.split_once('/'));
    let mut named: BTreeSet<_> = asked.map(|(plan, _)| plan.to_owned()).collect();
    for (_, open) in conflicts.open() {
        if let ConflictEvent::ConflictDetected { holders, .. } = &open.detected {
            named.extend(holders.iter().map(|holder| holder.plan.clone()));
        }
    }
    named
}

/// Where the folder of a plan is on this host.
fn place(roster: Option<&Roster>, kept: &str) -> Option<PathBuf> {
    roster.map_or_else(|| Some(PathBuf::new()), |here| here.find(kept).ok())
}

fn is_at_rest(open: &OpenPlan<'_>) -> bool {
    let state = open.view.state();
    let has_sub_plan = state.dispatched().any(|task| task.plan.is_delegated());
    let is_alone = !has_sub_plan && nesting::parent_task(open.plan, state).is_none();
    is_alone && !open.view.is_held() && !open.view.has_unhandled_report() && state.next_timer().is_none()
}
