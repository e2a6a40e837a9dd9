//! Asks before anything runs: shows the commands and agents of a plan.

use crewlog_executors::roster::Roster;
use crewlog_planner::plan::{Mark, SubPlan, TaskPlan};

use crate::context::Session;
use crate::context::roster::command_line;
use crate::ui::failure::{Failure, Why};
use crate::ui::terminal;
use crate::ui::text::{count, one_line, visible};

/// Prose must not become shell unasked: shows what would run, the commands, the agents and their system prompt, and asks
/// once.
pub fn consent(session: &Session, tasks: &[TaskPlan], roster: &Roster, system_prompt: &str) -> Result<(), Failure> {
    // A cancelled task may be reopened by a retry, so it is shown too.
    let runs = tasks.iter().filter(|task| task.mark != Mark::Done).filter_map(|task| {
        let given_up = if task.mark == Mark::Cancelled { "  (given up)" } else { "" };
        let run = match (&task.command, roster.agent_for(task), task.sub_plan.as_ref()) {
            (Some(command), _, _) => command.clone(),
            (None, Some(agent), _) => format!("{} ({})", one_line(&task.description, 60), command_line(agent)),
            (None, None, Some(SubPlan { text, agent, request: Some(_) })) => {
                format!("asks a {} agent: {}", agent.as_deref().unwrap_or_default(), one_line(text, 100))
            }
            (None, None, Some(SubPlan { text, agent, request: None })) => {
                let agent = agent.as_ref().map(|agent| format!(" ({agent})")).unwrap_or_default();
                format!("a plan of its own{agent} of:\n{text}")
            }
            (None, None, None) => return None,
        };
        Some((task.name(), format!("{run}{given_up}")))
    });
    let mut runs = runs.collect::<Vec<_>>();
    let n_runs = runs.len();
    let undo = |task: &TaskPlan| Some((task.name(), format!("{}  (if it is to be undone)", task.compensate.as_ref()?)));
    runs.extend(tasks.iter().filter_map(undo));
    if runs.is_empty() {
        return Ok(());
    }
    let n_commands = tasks.iter().filter(|task| task.mark != Mark::Done && task.command.is_some()).count();
    let n_agents = n_runs - n_commands;
    if n_agents > 0 && !system_prompt.is_empty() {
        runs.push(("prompt.system".into(), system_prompt.to_owned()));
    }
    if !(session.terminal.is_quiet && session.yes) {
        let for_agents = if n_agents > 0 { format!(", {n_agents} for agents") } else { String::new() };
        let folder = visible(&session.folder.to_string_lossy());
        let n_tasks = count(tasks.len(), "task");
        session.say(&format!("{n_tasks}, {n_commands} with a command{for_agents}, in {folder}:"));
        let width = runs.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        for (name, run) in &runs {
            let run = visible(run).replace('\n', &format!("\n  {:width$}  ", ""));
            session.say(&format!("  {name:>width$}  {run}"));
        }
    }
    confirm(session, "Run them?", "nothing was run")
}

/// Asks a person, unless --yes was given; `refusal` is the error text after a no.
pub fn confirm(session: &Session, question: &str, refusal: &str) -> Result<(), Failure> {
    if session.yes {
        return Ok(());
    }
    if !session.terminal.is_interactive {
        let (why, hint) = match session.is_local() {
            true => ("no terminal to ask on", "to run them, repeat the command with --yes"),
            false => ("these commands would run", "read them, then send the field yes"),
        };
        let refused = Failure::user(format!("{refusal}: {why}")).hint(hint);
        return Err(Failure { why: Why::Unconsented, ..refused });
    }
    terminal::prompt(&format!("{question} [y/N] "));
    match terminal::read_line().map_err(Failure::input)?.as_deref() {
        Some("y" | "Y" | "yes" | "Yes") => Ok(()),
        Some(_) | None => Err(Failure { why: Why::Declined, ..Failure::user(refusal) }),
    }
}
