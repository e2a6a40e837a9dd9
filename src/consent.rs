//! Asks before anything runs: shows the commands and agents of a plan, and records the decision.

use crewlog_executors::agent::Agent;
use crewlog_executors::caller::{account, request};
use crewlog_executors::consent::{self, Consent, Told};
use crewlog_executors::crew::folders::below_root;
use crewlog_executors::programs::ProgramConsent;
use crewlog_executors::roster::Roster;
use crewlog_mq::{EventStore, Handler, Timestamp};
use crewlog_planner::crew::consent::{ConsentEvent, Means, changed};
use crewlog_planner::event::Command;
use crewlog_planner::plan::{Mark, TaskPlan};
use crewlog_planner::planner::Planner;
use crewlog_planner::state::PlannerState;

use crate::context::Session;
use crate::ui::failure::{Failure, Why};
use crate::ui::terminal;
use crate::ui::text::{ago, count, now, visible};

/// Something that a task runs.
struct Runnable<'a> {
    name: String,
    shown: String,
    told: Told<'a>,
    is_undo: bool,
    /// Its digest in later plans.
    remembered: String,
    /// When the person agreed to the same in the same folder.
    agreed: Option<Timestamp>,
}

/// Prose must not become shell unasked: shows what would run in a folder, the commands, the agents and their system prompt,
/// and asks once. A command or text that the person agreed to before needs no second question.
pub async fn consent(
    session: &Session,
    tasks: &[TaskPlan],
    roster: &Roster,
    (system_prompt, folder): (&str, Option<&str>),
) -> Result<Consent, Failure> {
    let folder = folder.unwrap_or("");
    // A program that may say yes was given that right by a person.
    let is_person = session.is_person().await? || (session.yes && !session.is_local());
    let trust = session.trust(&[]).await?.filter(|_| is_person);
    let mut runs = Vec::new();
    for task in tasks {
        // A cancelled task may be reopened by a retry, and a done one be undone.
        let is_run = task.mark != Mark::Done && roster.takes(task);
        let given_up = if task.mark == Mark::Cancelled { "  (given up)" } else { "" };
        for (n, told) in Told::of(task).enumerate().filter(|(n, _)| is_run || *n > 0) {
            let shown = match (n, roster.agent_for(task), task.sub_plan.as_ref()) {
                (0, Some(agent), None) => format!("{} ({})", told.shown(), agent.name),
                (0, _, Some(below)) => {
                    let agent = below.agent.as_ref().map(|agent| format!(" ({agent})")).unwrap_or_default();
                    let how = if below.request.is_some() { "asks an agent" } else { "a plan of its own" };
                    format!("{how}{agent} of:\n{}", below.text)
                }
                (0, _, _) => told.shown(),
                _undo => format!("{}  (if it is to be undone)", told.shown()),
            };
            let (remembered, is_undo) = (told.digest(below_root(folder)), n > 0);
            let agreed = trust.as_ref().and_then(|trust| trust.remembers(&remembered));
            runs.push(Runnable { name: task.name(), shown: shown + given_up, told, is_undo, remembered, agreed });
        }
    }
    if runs.is_empty() {
        return Ok(Consent::default());
    }
    let mut given = Consent {
        how: None,
        shown: tasks.iter().map(|task| task.id).collect(),
        digests: runs.iter().map(|run| run.told.digest(folder)).collect(),
        remembered: runs.iter().map(|run| run.remembered.clone()).collect(),
    };
    let programs = roster.programs(tasks);
    let n_new = runs.iter().filter(|run| run.agreed.is_none()).count();
    if n_new == 0 && programs.iter().all(|agent| agent.may_start()) {
        let last = runs.iter().filter_map(|run| run.agreed).max().unwrap_or_default();
        let n_runs = count(runs.len(), "step");
        session.remark(&format!("{n_runs} as you agreed to, last {}", ago(last, now())));
        return Ok(Consent { how: Some(Means::Order), ..given });
    }
    show(session, tasks.len(), (&runs, &programs), system_prompt, folder);
    match confirm(session, "Run them?", "nothing was run") {
        Ok(()) => {
            allow_new(session, &programs).await?;
            given.how = is_person.then_some(if session.yes { Means::Yes } else { Means::Answer });
        }
        Err(failure) => {
            if let (Why::Declined, Some(store)) = (failure.why, session.place.open_if_any().await?) {
                let forgotten = given.remembered;
                decide(session, &store, ConsentEvent::Declined { by: account(), forgotten, at: now() }).await?;
            }
            return Err(failure);
        }
    }
    Ok(given)
}

/// Asks about the new programs among those that carry tasks out.
pub async fn allow_programs(session: &Session, roster: &Roster, tasks: &[TaskPlan]) -> Result<(), Failure> {
    let new: Vec<_> = roster.programs(tasks).into_iter().filter(|agent| !agent.may_start()).collect();
    if new.is_empty() {
        return Ok(());
    }
    new.iter().for_each(|agent| session.say(&format!("{} {}", agent.name, starts(agent))));
    confirm(session, "Start them?", "nothing was started")?;
    allow_new(session, &new).await
}

/// Lets the new programs among these start: for a person on this machine, for an agent in its own process. The yes of a token
/// is for tasks, and its programs wait for a person.
async fn allow_new(session: &Session, agents: &[&Agent]) -> Result<(), Failure> {
    let mut new = agents.iter().filter(|agent| !agent.may_start()).filter_map(|agent| agent.consent.as_ref());
    if session.is_person().await? {
        return new.try_for_each(give);
    }
    new.filter(|_| session.is_local()).for_each(ProgramConsent::give_here);
    Ok(())
}

fn starts(agent: &Agent) -> String {
    let new = if agent.may_start() { "" } else { "  (new in crewlog.toml)" };
    visible(&format!("starts: {}{new}", agent.shown(true)))
}

/// A person agrees to a program for this machine.
pub fn give(program: &ProgramConsent) -> Result<(), Failure> {
    program.give().map_err(|error| {
        Failure::user(format!("the agreement to a program cannot be kept: {error}"))
            .hint("name its file with --config or CREWLOG_CONFIG")
    })
}

fn show(
    session: &Session,
    n_tasks: usize,
    (runs, programs): (&[Runnable<'_>], &[&Agent]),
    system_prompt: &str,
    folder: &str,
) {
    if session.terminal.is_quiet && session.yes {
        return;
    }
    let is_command = |run: &&Runnable<'_>| matches!(run.told, Told::Command(_));
    let (commands, texts): (Vec<_>, Vec<_>) = runs.iter().filter(|run| !run.is_undo).partition(is_command);
    let (n_commands, n_texts) = (commands.len(), texts.len());
    let for_agents = if n_texts > 0 { format!(", {n_texts} for agents") } else { String::new() };
    let folder = session.folders(false).ok().and_then(|folders| folders.locate(folder).ok()).unwrap_or_default();
    let (n_tasks, folder) = (count(n_tasks, "task"), visible(&folder.to_string_lossy()));
    session.say(&format!("{n_tasks}, {n_commands} with a command{for_agents}, in {folder}:"));
    let prompt = Some(("prompt.system", system_prompt)).filter(|(_, prompt)| n_texts > 0 && !prompt.is_empty());
    let names = runs.iter().map(|run| run.name.as_str()).chain(prompt.map(|(name, _)| name));
    let names = names.chain(programs.iter().map(|agent| agent.name.as_str()));
    let width = names.map(|name| name.chars().count()).max().unwrap_or(0);
    let line = |name: &str, text: &str| {
        let text = visible(text).replace('\n', &format!("\n  {:width$}  ", ""));
        session.say(&format!("  {name:>width$}  {text}"));
    };
    for Runnable { name, shown, agreed, .. } in runs {
        let known = agreed.map(|at| format!("  (agreed {})", ago(at, now()))).unwrap_or_default();
        line(name, &format!("{shown}{known}"));
    }
    prompt.iter().for_each(|(name, prompt)| line(name, prompt));
    programs.iter().for_each(|agent| line(&agent.name, &starts(agent)));
}

/// Records a decision about tasks of a plan whose numbers were not known before: from one on they are new. A task that an agent
/// has ordered waits for a person.
pub async fn keep(
    session: &Session,
    store: &EventStore,
    (plan, tags): (&str, &[String]),
    (state, first_new): (&PlannerState, u64),
    agreed: Consent,
) -> Result<(), Failure> {
    let is_of_agent = agreed.how.is_none();
    let tasks = agreed.record(store, tags, plan, of_plan(state), first_new, &request()).await?;
    if is_of_agent && !tasks.is_empty() {
        let agree = session.command_on("agree", plan);
        session.suggest(&format!("it runs once a person agrees: {agree}"));
    }
    Ok(())
}

/// Ends the agreements to the tasks that an order changes which no person gives. Returns what to say about it.
pub async fn withdraw(
    session: &Session,
    (plan, tags): (&str, &[String]),
    planner: &Planner,
    command: &Command,
) -> Result<Option<String>, Failure> {
    let mut after = planner.clone();
    // A refusal is reported by the order itself.
    let (Ok(_), Some(trust)) = (after.process(command.clone()), session.trust(&[]).await?) else { return Ok(None) };
    let ended = trust.withdraw(tags, plan, changed(planner.state(), after.state()), &request()).await?;
    let names = ended.into_iter().map(|task| after.state().name(task)).collect::<Vec<_>>();
    let agree = session.command_on("agree", plan);
    let says = || format!("the agreement to {} ends with this change; to agree again: {agree}", names.join(", "));
    Ok((!names.is_empty()).then(says))
}

/// The tasks of a plan, and their folder.
pub fn of_plan(state: &PlannerState) -> (impl Iterator<Item = &TaskPlan>, Option<&str>) {
    (state.tasks.iter().map(|task| &task.plan), state.config.folder.as_deref())
}

/// Appends a decision about the project of the working directory.
pub async fn decide(session: &Session, store: &EventStore, decision: ConsentEvent) -> Result<(), Failure> {
    Ok(consent::decide(store, &session.tags_of_project()?, decision, &request()).await?)
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
    match terminal::says_yes(question).map_err(Failure::input)? {
        true => Ok(()),
        false => Err(Failure { why: Why::Declined, ..Failure::user(refusal) }),
    }
}
