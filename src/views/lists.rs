//! Lists: the plans, conflicts and statistics of the log, and the marks on the time line.

use crewlog_executors::projecting::Projected;
use crewlog_mq::{Error, Position, Query, Range, Recorded};
use crewlog_planner::claim::{self, TaskEvent};
use crewlog_planner::crew::asks::{self, AskEvent};
use crewlog_planner::crew::conflicts::{self, ConflictEvent, Conflicts, Moment};
use crewlog_planner::crew::statistics::Statistics;
use crewlog_planner::event::{self, Event, plan_tag};
use crewlog_planner::lifecycle::State;
use crewlog_planner::listing::{self, PlanList, PlanSummary};
use crewlog_planner::plan::TaskId;

use super::points::forks_of;
use super::states::counts_of;
use super::{
    AsOf, ConflictHolder, ConflictView, CountsAt, CountsView, ListedPlan, Mark, PlanShown, ProjectFigures, TaskNames,
};
use crate::ui::failure::{Code, Failure};
use crate::ui::text::{one_line, rfc3339};
use crate::views::queries::unless_unreadable;

/// The number of events that a fold of a plan counts as.
const EVENTS_OF_PLAN: usize = 200;
/// The most marks, the newest.
const MARKS_MAX: usize = 500;

impl AsOf {
    /// All plans of the log, oldest first. An unreadable one is omitted with a warning.
    pub async fn plans(&self) -> Result<Vec<ListedPlan>, Error> {
        Ok(self.summaries().await?.into_iter().map(|(plan, summary)| ListedPlan::of(&plan, summary)).collect())
    }

    /// The plans as ids and summaries.
    pub async fn summaries(&self) -> Result<Vec<(String, PlanSummary)>, Error> {
        let mut listed = Vec::new();
        if self.is_server {
            for plan in self.folded(&self.kept.list).await?.0.plans() {
                if let Some((summary, _)) = self.summary(plan).await? {
                    listed.push(self.listed(plan, summary).await?);
                }
            }
            return Ok(listed);
        }
        // The snapshot keeps new summaries for the next command.
        let mut list = Projected::<PlanList>::read(self.store(), Some(self.at)).await?;
        for plan in list.state.plans().cloned().collect::<Vec<_>>() {
            let Some((summary, n_events)) = self.summary(&plan).await? else { continue };
            if n_events > 0 {
                list.fold(n_events);
                list.state.summarize(&plan.id, summary.clone());
            }
            listed.push(self.listed(&plan, summary).await?);
        }
        list.keep().await;
        Ok(listed)
    }

    /// A plan with its state at the head, which a stored summary cannot tell.
    async fn listed(&self, plan: &listing::ListedPlan, summary: PlanSummary) -> Result<(String, PlanSummary), Error> {
        let state = if summary.is_provisional { self.states(&plan.id).await?.plan.state } else { summary.state };
        Ok((plan.id.clone(), PlanSummary { state, ..summary }))
    }

    /// The summary of a plan, and the number of events folded for it.
    async fn summary(&self, plan: &listing::ListedPlan) -> Result<Option<(PlanSummary, usize)>, Error> {
        if let Some(summary) = plan.summary.clone().filter(|_| !plan.has_changed) {
            return Ok(Some((summary, 0)));
        }
        let seen = unless_unreadable(&plan.id, self.viewed(&plan.id).await)?;
        Ok(seen.and_then(|seen| Some((PlanSummary::of(&plan.id, &seen.view)?, EVENTS_OF_PLAN))))
    }

    /// A plan with its tasks, its questions and its forks.
    ///
    /// # Errors
    /// A plan that did not exist yet.
    pub async fn plan(&self, plan: &str) -> Result<PlanShown, Failure> {
        let seen = self.viewed(plan).await?;
        if seen.view.created_at.is_none() {
            return Err(Failure::new(Code::Nothing, format!("{plan} did not exist yet at this position")));
        }
        let forks = forks_of(self.store(), plan, self.at).await?;
        let states = self.states(plan).await?;
        let shown = self.with_outputs(PlanShown::of(plan, self.at, &seen.view, &states), &seen.view);
        Ok(PlanShown { forks, ..shown })
    }

    /// The statistics of each project, or of one: zeros if it has no plans.
    pub async fn statistics(&self, project: Option<String>) -> Result<Vec<ProjectFigures>, Error> {
        let statistics = &self.folded::<Statistics>(&self.kept.statistics).await?.0;
        Ok(match project {
            Some(project) => vec![ProjectFigures { figures: statistics.of(&project), project }],
            None => {
                let figures = statistics.figures();
                figures.map(|(name, figures)| ProjectFigures { project: name.to_owned(), figures }).collect()
            }
        })
    }

    /// The open conflicts, of one plan or of all, and the resolved ones if wanted.
    pub async fn conflicts(&self, plan: Option<&str>, with_resolved: bool) -> Result<Vec<ConflictView>, Failure> {
        let tag = plan.map(plan_tag);
        let mut found: Vec<ConflictView> = match with_resolved {
            true => self.every_conflict().await?.with(tag.as_ref()).collect(),
            false => {
                let open = &self.folded::<Conflicts>(&self.kept.conflicts).await?.0;
                let open = open.open().filter(|(_, open)| tag.as_ref().is_none_or(|tag| open.tags.contains(tag)));
                open.filter_map(|(project, open)| ConflictView::of(project, &open.detected, open.since)).collect()
            }
        };
        self.name_tasks(&mut found).await?;
        found.sort_by(|a, b| (a.position, &a.project, a.conflict).cmp(&(b.position, &b.project, b.conflict)));
        Ok(found)
    }

    async fn name_tasks(&self, conflicts: &mut [ConflictView]) -> Result<(), Error> {
        let mut names = TaskNames::up_to(self.at, self.store());
        for conflict in conflicts {
            let holders = conflict.holders.iter_mut().map(|holder| (&holder.plan, &mut holder.task));
            let resolved = conflict.resolved.iter_mut().map(|resolved| (&resolved.plan, &mut resolved.task));
            for (plan, task) in holders.chain(resolved) {
                if let Ok(number) = task.parse() {
                    *task = names.of(plan, TaskId(number)).await?;
                }
            }
        }
        Ok(())
    }

    /// The marks on the time line of the log up to this position: failures, conflicts, questions and checkpoints.
    pub async fn marks(&self) -> Result<Vec<Mark>, Error> {
        let query = Query::stream(claim::STREAM).of_type("TaskFailed");
        let query = query.or(Query::stream(event::STREAM).of_types(["ClarificationRequested", "CheckpointNamed"]));
        let query = query.or(Query::stream(asks::STREAM).of_type("PersonAsked"));
        let query = query.or(Query::all().of_type("ConflictDetected"));
        let page = self.store().read(&query, Range::up_to(self.at).backwards(), MARKS_MAX).await?;
        let (mut marks, mut names) = (Vec::new(), TaskNames::up_to(self.at, self.store()));
        for recorded in page.events.iter().rev() {
            let subject = names.subject(recorded).await?;
            marks.extend(Mark::of(recorded, &subject).ok().flatten());
        }
        Ok(marks)
    }

    /// The number of a plan's tasks in each stage, at `n` positions evenly spaced over the log.
    pub async fn counts(&self, plan: &str, n: usize) -> Result<CountsView, Error> {
        let track = self.track(plan).await?;
        let n = i64::try_from(n.max(1)).unwrap_or(i64::MAX);
        let position = |i: i64| Position(self.at.0.saturating_mul(i) / n);
        let at = |position| CountsAt { position, counts: track.counts_at(position) };
        let mut counts: Vec<_> = (1..=n).map(position).map(at).collect();
        // The last is that of the position itself.
        let present = counts_of(&self.states(plan).await?);
        counts.last_mut().into_iter().for_each(|last| last.counts = present);
        Ok(CountsView { at: self.at, stages: State::ALL.to_vec(), counts })
    }
}

impl ListedPlan {
    pub fn of(plan: &str, summary: PlanSummary) -> Self {
        let PlanSummary { title, state, created_at, parent, is_held_by_budget, waits_for_work, .. } = summary;
        let (plan, status, created_at) = (plan.to_owned(), state, rfc3339(created_at));
        Self { plan, title, status, created_at, parent, is_held_by_budget, waits_for_work }
    }
}

impl ConflictView {
    /// An unresolved conflict.
    pub(super) fn of(project: &str, detected: &ConflictEvent, since: Moment) -> Option<Self> {
        let ConflictEvent::ConflictDetected { conflict, pattern, holders, n_holders } = detected else { return None };
        let holder = |conflicts::ConflictHolder { plan, task, executor, patterns }: &_| ConflictHolder {
            plan: plan.clone(),
            task: task.to_string(),
            executor: executor.to_string(),
            patterns: patterns.clone(),
        };
        Some(Self {
            project: project.to_owned(),
            conflict: *conflict,
            position: since.position,
            since: rfc3339(since.at),
            pattern: pattern.clone(),
            holders: holders.iter().map(holder).collect(),
            n_holders: *n_holders,
            resolved: None,
        })
    }
}

impl Mark {
    fn of(recorded: &Recorded, subject: &str) -> Result<Option<Self>, Error> {
        let (kind, text) = match recorded.event_type.as_str() {
            "TaskFailed" => match recorded.decode()? {
                TaskEvent::TaskFailed { error, .. } => ("failure", format!("{subject}: {error}")),
                _another => return Ok(None),
            },
            "ConflictDetected" => match recorded.decode()? {
                ConflictEvent::ConflictDetected { pattern, .. } => ("conflict", pattern),
                ConflictEvent::ConflictResolved { .. } => return Ok(None),
            },
            "PersonAsked" => match recorded.decode()? {
                AskEvent::PersonAsked { ask, .. } => ("question", format!("{}: {}", ask.agent, ask.text)),
                _another => return Ok(None),
            },
            _of_plan => match recorded.decode()? {
                Event::ClarificationRequested { question, .. } => ("question", format!("{subject}: {question}")),
                Event::CheckpointNamed { name } => ("checkpoint", format!("{subject}: {name}")),
                _another => return Ok(None),
            },
        };
        let (position, at) = (recorded.position, rfc3339(recorded.created_at));
        Ok(Some(Self { position, kind, text: one_line(&text, 160), at }))
    }
}
