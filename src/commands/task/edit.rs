//! `task edit`: changes a task that has not started.

use std::time::Duration;

use clap::Args;
use crewlog_executors::consent::Consent;
use crewlog_mq::{ExecuteError, Handler};
use crewlog_planner::event::{Amendment, Command, Edit, Event};
use crewlog_planner::plan::TaskPlan;
use crewlog_planner::planner::Planner;
use crewlog_planner::state::Task;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::changing::{check_person, give};
use crate::cli::settings::{self, FIELDS, help};
use crate::cli::typed::{BY_PERSON, InPlan, Typed, by_person};
use crate::consent::consent;
use crate::context::{Session, roster};
use crate::target::Target;
use crate::ui::failure::{Code, Failure};
use crate::ui::terminal::{Output, say};
use crate::ui::text::visible;

#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EditTask {
    /// The task
    #[arg(value_name = "PLAN/TASK")]
    #[schema(value_type = String)]
    pub task: InPlan,
    /// text, command, kind, label, note, priority, assignee, retry, timeout, ...
    #[arg(required = true, value_name = "KEY=VALUE", long_help = help("Fields of the task", FIELDS))]
    #[schema(value_type = Vec<String>)]
    pub changes: Vec<Typed<Edit>>,
    /// Why
    #[arg(long, default_value = BY_PERSON)]
    #[serde(default = "by_person")]
    pub reason: String,
}

pub async fn edit(session: &Session, EditTask { task, changes, reason }: EditTask) -> Result<Code, Failure> {
    let target = Target::find_to_tell(session, &task.plan).await?;
    let found = target.task(session, &task.name)?;
    check_person(session, found).await?;
    let edits = settings::edits(changes.into_iter().map(|change| change.value).collect());
    let is_reworded = edits.iter().any(|edit| matches!(edit, Edit::Description(_)))
        && !edits.iter().any(|edit| matches!(edit, Edit::Command(_)));
    let kept = found.plan.command.clone().filter(|_| is_reworded && session.output == Output::Text);
    let (id, name, plan) = (found.plan.id, found.plan.name(), target.plan.clone());
    let command = Command::Amend { amendments: vec![Amendment::Edit { task: id, edits }], reason };
    let agreed = consent_to_edits(session, target.planner.handler(), command.clone()).await?;
    let given = give(session, target, command, "changed", agreed).await?;
    if let Some(command) = kept {
        let other = session.command_in("task edit", &plan, &name);
        say(&visible(&format!(
            "task {name} still runs its command: {command}\nto have it run another: {other} command=..."
        )));
    }
    Ok(given)
}

/// Asks before an edit changes what a task executes. It is decided on a copy first, so that no refused edit is asked about.
async fn consent_to_edits(session: &Session, planner: &Planner, command: Command) -> Result<Consent, Failure> {
    let roster = roster::roster(session, Duration::MAX, &[])?;
    let events = planner.clone().process(command);
    let events = events.map_err(ExecuteError::Refused)?;
    let amended = events.into_iter().filter_map(|event| match event {
        Event::TasksAmended { tasks, .. } => Some(tasks),
        _another_event => None,
    });
    let is_told_otherwise = |task: &TaskPlan| {
        let Some(Task { plan: known, .. }) = planner.state().task(task.id) else { return false };
        let by_agent = roster.agent_for(task).is_some()
            && (&task.description, &task.notes, &task.kind) != (&known.description, &known.notes, &known.kind);
        by_agent
            || (&task.command, &task.assignee, &task.sub_plan) != (&known.command, &known.assignee, &known.sub_plan)
    };
    let tasks = amended.flatten().filter(is_told_otherwise).collect::<Vec<_>>();
    let config = &planner.state().config;
    consent(session, &tasks, &roster, (&config.system_prompt, config.folder.as_deref())).await
}
