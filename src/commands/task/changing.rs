//! Shared by the commands of `task` and `plan set`: change a plan, or report on a task, and print what changed.

use crewlog_executors::claiming::claim_of;
use crewlog_executors::consent::Consent;
use crewlog_executors::crew::human;
use crewlog_executors::planning;
use crewlog_planner::claim::Ending;
use crewlog_planner::event::{Command, Event, TaskStatus};
use crewlog_planner::plan::NodeKind;
use crewlog_planner::state::Task;
use serde_json::json;

use super::claim::{self, agent};
use crate::cli::typed::{BY_PERSON, InPlan};
use crate::consent::{keep, withdraw};
use crate::context::Session;
use crate::target::{Target, order, propagate};
use crate::ui::failure::{Code, Failure};
use crate::ui::terminal::say;
use crate::ui::text::{one_line, visible};

/// Lets only a person change a question.
pub async fn check_person(session: &Session, task: &Task) -> Result<(), Failure> {
    let is_question = task.plan.kind == NodeKind::Clarification;
    if is_question { session.person_only("skip or change a question").await } else { Ok(()) }
}

/// Changes a plan, and prints what changed; `verb` is for tasks that were there before.
pub async fn give(
    session: &Session,
    mut target: Target,
    mut command: Command,
    verb: &str,
    agreed: Consent,
) -> Result<Code, Failure> {
    let (had_ended, n_known) = (target.state().phase.is_ended(), target.state().tasks.len());
    let first_new = target.state().next_id();
    if !session.is_person().await? {
        if let Command::Amend { reason, .. } = &mut command {
            *reason = reason.replace(BY_PERSON, "by an agent");
        }
        let of = (&*target.plan, &*target.tags);
        let ended = withdraw(session, of, target.planner.handler(), &command).await?;
        ended.iter().for_each(|says| say(&visible(says)));
    }
    let executed = order(&mut target.planner, command).await?;
    keep(session, &target.store, (&target.plan, &target.tags), (target.state(), first_new), agreed).await?;
    propagate(&target.store, &target.plan).await?;
    if had_ended && !executed.events.is_empty() && !target.state().phase.is_ended() {
        say(&visible(&format!("{} had ended, and is open again with this", &target.plan)));
    }
    tell(session, &target, &executed.events, n_known, verb)
}

/// Prints the new and changed tasks and the state of the plan. New are those after the known ones.
pub fn tell(session: &Session, target: &Target, events: &[Event], n_known: usize, verb: &str) -> Result<Code, Failure> {
    let state = target.state();
    let (mut names, mut said) = (Vec::new(), Vec::new());
    for event in events {
        match event {
            Event::TasksPlanned { tasks, .. } | Event::TasksAmended { tasks, .. } => {
                for task in tasks {
                    let name = task.name();
                    let after = task.depends_on.iter().map(|on| state.name(on.task)).collect::<Vec<_>>().join(", ");
                    let after = if after.is_empty() { after } else { format!(" (after {after})") };
                    said.push(match state.tasks.iter().take(n_known).any(|known| known.plan.id == task.id) {
                        true if verb == "moved" => format!("{verb} {name}{after}"),
                        true => format!("{verb} {name}"),
                        false => format!("added {}/{name}: {}{after}", target.plan, one_line(&task.description, 100)),
                    });
                    names.push(name);
                }
            }
            Event::TaskStatusUpdated { task_id, error: Some(reason), .. } => {
                said.push(format!("skipped {}: {reason}", state.name(*task_id)));
            }
            Event::SettingsChanged { config, .. } => {
                let words = config.words().join(", ");
                said.push(format!("settings: {}", if words.is_empty() { "as they are by default" } else { &words }));
            }
            _another_event => {}
        }
    }
    let text = if said.is_empty() { "nothing to change".to_owned() } else { said.join("\n") };
    let json = json!({ "plan": target.plan, "tasks": names, "settings": state.config.words() });
    session.print_done(&text, &json)?;
    target.suggest_resume(session);
    Ok(Code::Done)
}

/// Reports the end of a task; `said` follows its name.
pub async fn report(session: &Session, typed: &InPlan, ending: Ending, said: &str) -> Result<Code, Failure> {
    let mut target = Target::find_to_tell(session, &typed.plan).await?;
    let task = target.task(session, &typed.name)?.clone();
    let (id, name) = (task.plan.id, task.plan.name());
    let claimed = format!("{}/{name}", target.plan);
    if let Some((crew, script)) = agent(session).await?
        && crew.tasks_of(&script.caller().agent).await?.contains(&claimed)
    {
        claim::report(&crew, &script, &claimed, ending).await?;
        target.planner = planning::catch_up(&target.store, &target.plan, target.tags.clone()).await?;
        propagate(&target.store, &target.plan).await?;
        return target.say(session, &format!("task {name} {said}")).await;
    }
    if task.status != TaskStatus::Running {
        let command = |word| session.command_in(word, &target.plan, &name);
        let hint = match task.status {
            TaskStatus::Planned if task.is_paused => format!("it is paused; to let it begin: {}", command("resume")),
            TaskStatus::Planned if task.retry_ms.is_some() => {
                format!("it waits for its retry; to try it at once: {}", command("retry --now"))
            }
            TaskStatus::Planned => "the tasks that it waits for have to end first".to_owned(),
            TaskStatus::NeedsClarification => format!("it waits for an answer: {} \"...\"", command("answer")),
            TaskStatus::Completed => "it is already done".to_owned(),
            TaskStatus::Failed
            | TaskStatus::TimedOut
            | TaskStatus::Cancelled
            | TaskStatus::Skipped
            | TaskStatus::Running => format!("to open it again: {}", command("retry")),
        };
        let message = format!("task {name} is {}, not running", task.status.words());
        return Err(Failure::new(Code::Conflict, message).hint(hint));
    }
    let life = session.place.liveness_lock()?;
    let mut claim = claim_of(&target.store, &target.plan, id, target.tags.clone());
    human::report(&mut claim, task.attempts, &target.store, &life, ending).await?;
    target.planner = planning::catch_up(&target.store, &target.plan, target.tags.clone()).await?;
    propagate(&target.store, &target.plan).await?;
    // Another command may have ended the task first, so that the report counts for nothing.
    let status = target.state().task(id).map_or(task.status, |task| task.status);
    if matches!(status, TaskStatus::Cancelled | TaskStatus::Skipped | TaskStatus::TimedOut) {
        let message = format!("another report came first: task {name} is {}", status.words());
        return Err(Failure::new(Code::Conflict, message));
    }
    target.say(session, &format!("task {name} {said}")).await
}
