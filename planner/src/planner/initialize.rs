//! The first decision of a plan: its first tasks.

use crate::error::PlannerError;
use crate::event::{Command, Event, PlannerConfig, TaskStatus};
use crate::parse::{self, ParsedPlan};
use crate::plan::{Attachment, Mark, Origin, Proposal, SUB_PLAN_DEPTH_MAX, TaskPlan};
use crate::planner::settings::check_config;
use crate::planner::{Planner, end};
use crate::state::Phase;
use crate::validity::validate;

impl Planner {
    /// Accepts the first tasks. Those of a text are checked as all others are.
    pub(super) fn initialize(
        &self,
        proposal: Proposal,
        attachments: Vec<Attachment>,
        config: PlannerConfig,
    ) -> Result<Vec<Event>, PlannerError> {
        if self.state.phase != Phase::Empty {
            return Err(PlannerError::AlreadyPlanned);
        }
        check_config(&config)?;
        // Only agents use tools and ask other agents, and only with the tools against which the plan was checked.
        let agent = proposal.origin.agent.as_ref();
        let may_use = |tool: &String| agent.is_some_and(|agent| agent.tools.contains(tool));
        let is_allowed =
            |task: &&TaskPlan| task.tool.as_ref().is_none_or(may_use) && (task.request().is_none() || agent.is_some());
        if let Some(task) = proposal.tasks.iter().find(|task| !is_allowed(task)) {
            return Err(PlannerError::NotOfAgent(task.name()));
        }
        let depth = proposal.origin.depth;
        if depth > SUB_PLAN_DEPTH_MAX {
            return Err(PlannerError::TooDeep(depth, SUB_PLAN_DEPTH_MAX));
        }
        validate(&proposal.tasks)?;
        Ok(planned(proposal, attachments, config))
    }
}

impl Command {
    /// Begins a plan of a text, read by the rules of its settings; `parallel` ignores the order of lists.
    ///
    /// # Errors
    /// The text is no plan.
    pub fn of_text(source: String, config: PlannerConfig, parallel: bool) -> Result<Self, PlannerError> {
        let ParsedPlan { tasks, title, context, .. } = parse::read(&source, config.file.options(parallel))?;
        let proposal = Box::new(Proposal { tasks, title, source, context, origin: Origin::default() });
        Ok(Self::Initialize { proposal, attachments: Vec::new(), config })
    }
}

fn planned(proposal: Proposal, attachments: Vec<Attachment>, config: PlannerConfig) -> Vec<Event> {
    let Proposal { mut tasks, title, source, context, origin } = proposal;
    for task in &mut tasks {
        // Of two dependencies on one task the stronger stays.
        task.depends_on.sort_unstable();
        task.depends_on.dedup_by_key(|dependency| dependency.task);
    }
    let attachments = attach(&mut tasks, attachments);
    let marked = tasks.iter().filter_map(change_by_mark).collect::<Vec<_>>();
    let config = Box::new(config);
    let planned = Event::TasksPlanned { tasks, title, source, config, context, attachments, origin };
    [vec![planned], marked].concat()
}

/// The change of a task by its box before anything has run: it ends the task, or pauses it until a person resumes it.
pub(super) fn change_by_mark(task: &TaskPlan) -> Option<Event> {
    let paused = |reason: &str| Event::TaskPaused { task_id: task.id, reason: reason.to_owned() };
    match task.mark {
        Mark::Open => None,
        Mark::InProgress => Some(paused("in progress when the plan was read")),
        Mark::Deferred => Some(paused("deferred when the plan was read")),
        Mark::Done => Some(end(task.id, TaskStatus::Completed, Some("done before the plan began".into()), None, true)),
        Mark::Cancelled => {
            let reason = "cancelled before the plan began".into();
            Some(end(task.id, TaskStatus::Cancelled, None, Some(reason), true))
        }
    }
}

/// Adds each attachment to the tasks whose text mentions it, and returns the others, for the plan.
fn attach(tasks: &mut [TaskPlan], attachments: Vec<Attachment>) -> Vec<Attachment> {
    let mut of_the_plan = Vec::new();
    for attachment in attachments {
        let (_, reference) = attachment.kind.parts();
        let mut is_named = false;
        for task in tasks.iter_mut().filter(|task| task.description.contains(reference)) {
            is_named = true;
            if !task.attachments.iter().any(|known| known.kind == attachment.kind) {
                task.attachments.push(attachment.clone());
            }
        }
        if !is_named {
            of_the_plan.push(attachment);
        }
    }
    of_the_plan
}
