//! Shared by the commands of `task` and `plan set`: changes a plan or report on it, and print what changed.

use crewlog_executors::claiming::claim_of;
use crewlog_executors::{human, planning};
use crewlog_planner::claim::Ending;
use crewlog_planner::event::{Amendment, Command, Event, TaskStatus};
use crewlog_planner::plan::NodeKind;
use crewlog_planner::state;
use serde_json::json;

use crate::cli::typed::InPlan;
use crate::context::Session;
use crate::target;
use crate::target::{Target, order, propagate};
use crate::ui::failure::{Code, Failure};
use crate::ui::terminal::say;
use crate::ui::text::{one_line, visible};

/// `said` follows the name of the task.
pub async fn report(session: &Session, task: &InPlan, ending: Ending, said: &str) -> Result<Code, Failure> {
    let InPlan { plan, name } = task;
    let mut target = Target::find_to_tell(session, plan).await?;
    let task = target.task(session, name)?;
    let (id, attempt, status, is_paused) = (task.plan.id, task.attempts, task.status, task.is_paused);
    let is_delayed = task.retry_ms.is_some();
    if status != TaskStatus::Running {
        let failure =
            Failure::new(Code::Conflict, format!("task {} is {}, not running", target.name(id), status.words()));
        let command = |word| session.command_in(word, &target.plan, &target.name(id));
        return Err(failure.hint(match status {
            TaskStatus::Planned if is_paused => format!("it is paused; to let it begin: {}", command("resume")),
            TaskStatus::Planned if is_delayed => {
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
        }));
    }
    let life = session.place.liveness_lock()?;
    let mut claim = claim_of(&target.store, &target.plan, id, target.tags.clone());
    let now = target.store.now();
    human::report(&mut claim, attempt, &life, now, ending).await?;
    target.planner = planning::catch_up(&target.store, &target.plan, target.tags.clone()).await?;
    propagate(&target.store, &target.plan).await?;
    // Another command may have ended the task first, so that the report counts for nothing.
    let status = target.state().task(id).map_or(status, |task| task.status);
    if matches!(status, TaskStatus::Cancelled | TaskStatus::Skipped | TaskStatus::TimedOut) {
        let message = format!("another report came first: task {} is {}", target.name(id), status.words());
        return Err(Failure::new(Code::Conflict, message));
    }
    let said = format!("task {} {said}", target.name(id));
    target.say(session, &said).await
}

/// Lets only a person change a question.
pub fn check_person(session: &Session, task: &state::Task) -> Result<(), Failure> {
    let is_question = task.plan.kind == NodeKind::Clarification;
    if is_question { session.person_only("skip or change a question") } else { Ok(()) }
}

pub async fn give(session: &Session, mut target: Target, command: Command) -> Result<Code, Failure> {
    let (had_ended, n_known) = (target.state().phase.is_ended(), target.state().tasks.len());
    let moves = |amendment: &Amendment| matches!(amendment, Amendment::Reorder { .. });
    let moved = matches!(&command, Command::Amend { amendments, .. } if amendments.iter().any(moves));
    let executed = order(&mut target.planner, command).await?;
    target::propagate(&target.store, &target.plan).await?;
    if had_ended && !executed.events.is_empty() && !target.state().phase.is_ended() {
        say(&visible(&format!("{} had ended, and is open again with this", &target.plan)));
    }
    tell(session, &target, &executed.events, n_known, if moved { "moved" } else { "changed" })
}

/// Prints the new and changed tasks and the state of the plan. New are those after the known ones.
pub fn tell(session: &Session, target: &Target, events: &[Event], n_known: usize, verb: &str) -> Result<Code, Failure> {
    let mut names = Vec::new();
    let mut said = Vec::new();
    for event in events {
        match event {
            Event::TasksPlanned { tasks: planned, .. } | Event::TasksAmended { tasks: planned, .. } => {
                for task in planned {
                    let (name, is_known) =
                        (task.name(), target.state().tasks.iter().take(n_known).any(|it| it.plan.id == task.id));
                    let after = task.depends_on.iter().map(|on| target.name(on.task)).collect::<Vec<_>>();
                    let after = if after.is_empty() { String::new() } else { format!(" (after {})", after.join(", ")) };
                    said.push(match is_known {
                        true => format!("{verb} {name}{}", if verb == "moved" { &after } else { "" }),
                        false => format!("added {}/{name}: {}{after}", target.plan, one_line(&task.description, 100)),
                    });
                    names.push(name);
                }
            }
            Event::TaskStatusUpdated { task_id, error: Some(reason), .. } => {
                said.push(format!("skipped {}: {reason}", target.name(*task_id)));
            }
            Event::SettingsChanged { config, .. } => {
                let words = config.words().join(", ");
                said.push(format!("settings: {}", if words.is_empty() { "as they are by default" } else { &words }));
            }
            _another_event => {}
        }
    }
    let text = if said.is_empty() { "nothing to change".to_owned() } else { said.join("\n") };
    let settings = target.state().config.words();
    session.print_done(&text, &json!({ "plan": &target.plan, "tasks": names, "settings": settings }))?;
    target.suggest_resume(session);
    Ok(Code::Done)
}
