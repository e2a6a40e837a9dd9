//! Keeping the plans below a plan in step with it: with a plan all ends, pauses and goes on that stands below it, and what
//! limits it limits them. It decides nothing that the plans do not say, and carries nothing out.

use std::collections::BTreeSet;

use crewlog_mq::{Cause, Error, EventStore, Query, Range, Recorded, Runner};
use crewlog_planner::event::{self, Budget, Command, Setting, TaskStatus, under_tag};
use crewlog_planner::plan::sub_plan_id;
use crewlog_planner::planner::Planner;
use crewlog_planner::state::{Measure, Phase, PlannerState};

use crate::planning::{is_for_ever, planner_of};
use crate::subplans::{end_of, put, read_plan};

/// How many steps of the plan above one are followed at a time.
const STEPS_FOLLOWED_MAX: usize = 100;

/// A plan that cannot be read, and was left as it is.
#[derive(Debug)]
pub struct LeftAsItIs {
    /// The plan.
    pub plan: String,
    /// Why.
    pub error: Error,
}

/// Brings the plans below one into step with it, the upper ones first. Those that cannot be read hold up no other, and are
/// told.
///
/// # Errors
/// A fault of the log, after which it may be tried again.
pub async fn keep_in_step(store: &EventStore, plan: &str) -> Result<Vec<LeftAsItIs>, Error> {
    let begun = Query {
        stream_id: event::STREAM.into(),
        event_type: Some("TasksPlanned".into()),
        tags: vec![under_tag(plan)],
        ..Query::default()
    };
    // A plan is made after the one above it. Whether it can be decoded is told with it, and not for all.
    let mut below = Below { plans: Vec::new(), left: Vec::new() };
    let mut seen = BTreeSet::new();
    let mut range = Range::default();
    loop {
        let page = store.read(&begun, range, PAGE).await?;
        for Recorded { aggregate_id, tags, .. } in page.events {
            if seen.insert(aggregate_id.clone()) {
                below.bring(store, aggregate_id, tags).await?;
            }
        }
        range.after = page.next;
        if !page.more {
            break;
        }
    }
    below.share_budgets(store, plan).await?;
    Ok(below.left)
}

/// How many events are read at a time.
const PAGE: usize = 1000;

/// The plans below one.
struct Below {
    /// Those that are open, the upper ones first.
    plans: Vec<(String, Runner<Planner>)>,
    left: Vec<LeftAsItIs>,
}

impl Below {
    /// Brings a plan into step with the one above it.
    async fn bring(&mut self, store: &EventStore, plan: String, tags: Vec<String>) -> Result<(), Error> {
        let brought = async {
            let mut planner = read_plan(store, &plan, tags).await?;
            follow_above(store, &plan, &mut planner).await?;
            Ok(planner)
        };
        match brought.await {
            Ok(planner) if is_open(planner.handler().state()) => self.plans.push((plan, planner)),
            Ok(_) => {}
            Err(error) if is_for_ever(&error) => self.left.push(LeftAsItIs { plan, error }),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Lowers the budgets of the plans within to what is left above them, the upper ones first.
    async fn share_budgets(&mut self, store: &EventStore, plan: &str) -> Result<(), Error> {
        let above = match read_plan(store, plan, Vec::new()).await {
            Ok(above) => above,
            Err(error) if is_for_ever(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut state = above.handler().state().clone();
        let mut name = plan.to_owned();
        for next in 0..=self.plans.len() {
            self.share(&name, &state).await?;
            let Some((plan, planner)) = self.plans.get(next) else { break };
            (name, state) = (plan.clone(), planner.handler().state().clone());
        }
        Ok(())
    }

    /// Shares what a plan has left among those that carry its tasks out, where they may use more together.
    async fn share(&mut self, above: &str, state: &PlannerState) -> Result<(), Error> {
        let total = state.left_for_plans();
        if total.is_unlimited() {
            return Ok(());
        }
        let is_within = |planner: &Runner<Planner>| {
            let parent = planner.handler().state().origin().parent.as_ref().filter(|parent| parent.plan == above);
            let task = parent.and_then(|parent| Some((parent, state.task(parent.task)?)));
            task.is_some_and(|(parent, task)| task.status == TaskStatus::Running && task.attempts == parent.attempt)
        };
        let mut within = self.plans.iter_mut().filter(|(_, planner)| is_within(planner)).collect::<Vec<_>>();
        let known = within.iter().map(|(_, planner)| planner.handler().state());
        let lowered = shares(&total, &known.collect::<Vec<_>>());
        for ((plan, planner), budget) in within.iter_mut().zip(lowered) {
            if budget == planner.handler().state().config().budget {
                continue;
            }
            let reason = format!("plan {above} has no more left");
            let lower = Command::Configure { changes: vec![Setting::Budget(budget)], reason };
            match put(planner, lower, &Cause::request()).await {
                Ok(()) => {}
                Err(error) if is_for_ever(&error) => self.left.push(LeftAsItIs { plan: plan.clone(), error }),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The budgets of plans that may use up so much together: as they are where they do, else each what it has used and an equal
/// share of what is left, and never more than it had.
fn shares(total: &Budget, plans: &[&PlannerState]) -> Vec<Budget> {
    let lowered = |measure: Measure| {
        let limit_of = |state: &&PlannerState| measure.limit(&state.config().budget);
        let known = plans.iter().map(limit_of).collect::<Vec<_>>();
        let Some(total) = measure.limit(total) else { return known };
        let together = known.iter().try_fold(0_u64, |sum, limit| Some(sum.saturating_add((*limit)?)));
        if together.is_some_and(|together| together <= total) {
            return known;
        }
        let used = plans.iter().map(|state| measure.of(&state.spent())).collect::<Vec<_>>();
        let used_together = used.iter().fold(0_u64, |sum, used| sum.saturating_add(*used));
        let share = total.saturating_sub(used_together) / (plans.len() as u64).max(1);
        let limits =
            known.iter().zip(used).map(|(known, used)| known.unwrap_or(u64::MAX).min(used.saturating_add(share)));
        limits.map(Some).collect()
    };
    let [tokens, costs, durations] = Measure::ALL.map(lowered);
    let of_each = tokens.into_iter().zip(costs).zip(durations);
    of_each.map(|((tokens, cost_micros), duration_ms)| Budget { tokens, cost_micros, duration_ms }).collect()
}

fn is_open(state: &PlannerState) -> bool {
    matches!(state.phase(), Phase::Active | Phase::Paused)
}

/// Ends a plan whose task ended while nobody was there to say so, and has it paused while the plan above is. One that
/// answers a request which ran out of time goes on while the plan that asked does: what comes late is recorded. What is
/// undone is undone to its end.
///
/// # Errors
/// A fault of the log.
pub(crate) async fn follow_above(store: &EventStore, plan: &str, planner: &mut Runner<Planner>) -> Result<(), Error> {
    // The plan above may go another step before a command for this one is in the log.
    for _ in 0..STEPS_FOLLOWED_MAX {
        let Some(command) = step_after_above(store, plan, planner.handler().state()).await? else { return Ok(()) };
        put(planner, command, &Cause::request()).await?;
    }
    tracing::warn!(plan, "the plan above it changes faster than it can follow");
    Ok(())
}

/// What brings a plan into step with the one above it, as both stand; nothing when they are.
async fn step_after_above(store: &EventStore, plan: &str, state: &PlannerState) -> Result<Option<Command>, Error> {
    // A fork of such a plan carries no task out.
    let Some(parent) = state.origin().parent.as_ref().filter(|parent| is_open(state) && sub_plan_id(parent) == plan)
    else {
        return Ok(None);
    };
    let mut above = planner_of(store, &parent.plan, Vec::new()).await?;
    above.catch_up().await?;
    let above = above.handler().state();
    let Some(task) = above.task(parent.task) else { return Ok(None) };
    let goes_on = !matches!(above.phase(), Phase::Ended(_));
    let awaits_late = goes_on && task.plan.request.is_some() && task.status == TaskStatus::TimedOut;
    let is_over = task.status.is_end() || task.attempts > parent.attempt;
    Ok(match above.phase() {
        _ if is_over && !awaits_late && !state.is_cancelled() => {
            let reason = format!("task {} of plan {} has ended", parent.task, parent.plan);
            Some(end_of(above.config().compensate, &reason))
        }
        Phase::Paused if state.phase() == Phase::Active => {
            Some(Command::PauseFromAbove { reason: format!("plan {} is paused", parent.plan) })
        }
        Phase::Active if state.is_paused_from_above() => Some(Command::ResumeFromAbove),
        Phase::Empty | Phase::Active | Phase::Paused | Phase::Ended(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use crewlog_mq::Handler;
    use crewlog_planner::event::{Event, PlannerConfig, Usage};
    use crewlog_planner::plan::{NodeKind, TaskId, TaskPlan};
    use crewlog_planner::planner::Planner;

    use super::*;

    #[test]
    fn plans_that_used_up_more_than_a_number_holds_have_nothing_left() {
        let plans = [u64::MAX, 5].map(|tokens| {
            let mut planner = Planner::default();
            let task = TaskPlan::new(TaskId(1), NodeKind::Processing, "think");
            planner.apply(&Event::planned(vec![task], PlannerConfig::default()));
            let usage = Usage { input_tokens: tokens, ..Usage::default() };
            planner.apply(&Event::UsageRecorded { task_id: TaskId(1), attempt: 1, usage });
            planner
        });
        let total = Budget { tokens: Some(9), ..Budget::default() };
        let lowered = shares(&total, &plans.each_ref().map(Planner::state));
        assert_eq!(lowered.iter().map(|budget| budget.tokens).collect::<Vec<_>>(), [Some(u64::MAX), Some(5)]);
    }
}
