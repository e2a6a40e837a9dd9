//! The states of plans and tasks as of a position. At the head they depend on live holders and configured executors.

use std::sync::Arc;

use crewlog_executors::crew::{Crew, TaskSummary, summaries};
use crewlog_mq::Error;
use crewlog_planner::lifecycle::{Observed, State, States, Taker};
use crewlog_planner::plan::TaskPlan;
use crewlog_planner::state::PlannerState;

use super::as_of::Present;
use super::{AsOf, Counts, N_STATES, ViewedPlan};

/// The number of tasks in each state.
pub fn counts_of(states: &States) -> Counts {
    states.tasks.iter().fold([0; N_STATES], |mut counts, (_, task)| {
        counts[task.state as usize] += 1;
        counts
    })
}

impl AsOf {
    /// The states of a plan and its tasks, by those of its sub-plans.
    pub async fn states(&self, plan: &str) -> Result<States, Error> {
        if let Some(states) = self.known_states().get(plan) {
            return Ok(states.clone());
        }
        let present = self.present().await?;
        // Each sub-plan comes before its parent plan.
        for plan in self.family(plan).await?.into_iter().rev() {
            let seen = self.viewed(&plan).await?;
            let known = |plan: &str| self.known_states().get(plan).map(|states| states.plan.state);
            let states = self.observing(present, &known, |it| States::of(&plan, &seen.view, it));
            self.known_states().insert(plan, states);
        }
        Ok(self.known_states()[plan].clone())
    }

    /// A plan and the sub-plans that carry out its tasks now, each after its parent plan.
    pub(super) async fn family(&self, plan: &str) -> Result<Vec<String>, Error> {
        let (mut family, mut n_known) = (vec![plan.to_owned()], 0);
        while let Some(plan) = family.get(n_known).cloned() {
            let seen = self.viewed(&plan).await?;
            family.extend(seen.view.state().dispatched().filter_map(|task| task.sub_plan_id(&plan)));
            n_known += 1;
        }
        Ok(family)
    }

    /// The tasks of the open plans that agents can work on.
    pub async fn tasks(&self) -> Result<Vec<TaskSummary>, Error> {
        let (present, open) = (self.present().await?, self.open().await?);
        let of_plan = |(plan, seen): (&String, &Arc<ViewedPlan>)| {
            self.observing(present, &|_| None, |observed| summaries(plan, &seen.view, observed))
        };
        Ok(open.iter().flat_map(of_plan).collect())
    }

    /// The holders at the head. At a past position each is alive until the event that ends its claim.
    async fn present(&self) -> Result<Option<&Present>, Error> {
        let read = async || {
            if self.is_past {
                return Ok::<_, Error>(None);
            }
            self.crew.catch_up_decisions().await?;
            let holders = self.crew.holders_among(&self.handled(&self.kept.agents).await?.0).await?;
            Ok(Some(Present { holders, leases: self.handled(&self.kept.leases).await? }))
        };
        Ok(self.present.get_or_try_init(read).await?.as_ref())
    }

    fn observing<T>(
        &self,
        present: Option<&Present>,
        sub_plan: &dyn Fn(&str) -> Option<State>,
        judge: impl FnOnce(&Observed<'_>) -> T,
    ) -> T {
        let holders = present.map(|present| &present.holders);
        let lease = |state: &PlannerState, task: &TaskPlan| {
            let folder = self.crew.roster()?.find(state.config.folder.as_deref()?).ok()?;
            Crew::in_the_way_of(&present?.leases.0, &folder, task, self.now).map(|lease| lease.to_string())
        };
        let taker = |task: &TaskPlan| match self.crew.roster() {
            Some(roster) if roster.takes(task) => roster.taker(task),
            _ if holders.is_some_and(|holders| holders.agent_takes(task)) => Taker::Agent,
            Some(_) | None => Taker::Nobody,
        };
        judge(&Observed {
            now: holders.map(|_| self.now),
            is_live: &|holder| holders.is_none_or(|holders| holders.is_live(holder)),
            taker: &taker,
            sub_plan,
            lease: &lease,
        })
    }
}
