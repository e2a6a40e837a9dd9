//! The maintainer of the project, who makes plans, answers and decides.

use std::collections::BTreeSet;
use std::rc::Rc;

use crewlog_executors::history::History;
use crewlog_executors::plans::planner_of_fork;
use crewlog_mq::{Cause, Position};
use crewlog_planner::crew::asks::Answer;
use crewlog_planner::crew::leases::LeaseCommand;
use crewlog_planner::crew::messages::{Importance, Message, Sender};
use crewlog_planner::crew::target::Target;
use crewlog_planner::event::{Amendment, Command, PlanFile, PlannerConfig, QuestionId};
use crewlog_planner::plan::TaskId;
use crewlog_planner::planner::PARALLELISM_MAX;

use crate::Result;
use crate::day::{BACKLOG, Day, FORK, TREE, WEEKS, ZONES, tags};
use crate::stage::Script;

const NAME: &str = "maintainer";

/// The maintainer's activities, in parallel.
pub fn scripts(day: &Rc<Day>) -> Vec<Script> {
    vec![
        Box::pin(begin(day.clone())),
        Box::pin(choose(day.clone())),
        Box::pin(pause(day.clone())),
        Box::pin(answer(day.clone(), "opencode-1", 6, Some(true), "Yes, as a build dependency only")),
        Box::pin(answer(day.clone(), "codex-1", 11, Some(false), "No, keep it until the release is out")),
        Box::pin(answer(day.clone(), "claude-1", 14, None, "Leave the date open, I set it when I tag")),
        Box::pin(answer(day.clone(), "gemini-1", 4, None, "The short names first")),
        Box::pin(afternoon(day.clone())),
    ]
}

async fn plan(day: &Day, plan: &'static str, text: &str, path: &str) -> Result {
    let file = PlanFile { path: Some(path.to_owned()), ..PlanFile::default() };
    let config = PlannerConfig { folder: Some("/srv/almanac".to_owned()), file, ..PlannerConfig::default() };
    day.order(plan, Command::of_text(text.to_owned(), config, false)?).await?;
    Ok(())
}

/// Adds a task to the backlog, and creates the backlog if necessary.
async fn add(day: &Day, name: &'static str, text: &str) -> Result {
    let text = format!("- [ ] {text}");
    let n_tasks = day.planner(BACKLOG).await?.handler().state().tasks.len();
    let folder = Some("/srv/almanac".to_owned());
    let config = PlannerConfig { standing: true, parallelism: PARALLELISM_MAX, folder, ..PlannerConfig::default() };
    let command = match n_tasks {
        0 => Command::of_text(text, config, false)?,
        _ => Command::Amend {
            amendments: vec![Amendment::Add { text, after: Vec::new(), before: Vec::new() }],
            reason: "added by a person".to_owned(),
        },
    };
    day.order(BACKLOG, command).await?;
    day.name(name, format!("{BACKLOG}/{}", n_tasks + 1));
    Ok(())
}

async fn send(day: &Day, to: &str, subject: &str, body: &str) -> Result {
    let message = Message {
        from: Sender::Person(NAME.to_owned()),
        to: BTreeSet::from([to.to_owned()]),
        subject: subject.to_owned(),
        body: body.to_owned(),
        thread: None,
        importance: Importance::High,
        needs_ack: true,
    };
    day.crew.deliver(message).await?;
    Ok(())
}

/// The plans of the day.
async fn begin(day: Rc<Day>) -> Result {
    plan(&day, WEEKS, include_str!("iso-weeks.md"), "plans/iso-weeks.md").await?;
    day.time.pass(74).await;
    plan(&day, ZONES, include_str!("zone-data.md"), "plans/zone-data.md").await?;
    for (name, text) in [
        ("B1", "Reject 23:59:60 with an error that names the second (files: src/parse/time.rs)"),
        ("B2", "Correct the example in README.md, which does not compile (files: README.md)"),
        ("B3", "Parse the duration P1Y2M as 14 months (files: src/duration.rs)"),
        ("B4", "Remove the deprecated `Date::ymd` (files: src/date.rs)"),
    ] {
        day.time.pass(52).await;
        add(&day, name, text).await?;
    }
    day.time.until_minute(31).await;
    add(&day, "B7", "Name the field in `ParseError` (files: src/error.rs)").await?;
    day.time.until_minute(240).await;
    add(&day, "B9", "Reply to the report about 29 February in `Date::plus_years` (files: src/date.rs)").await?;
    day.time.until_minute(282).await;
    add(&day, "B12", "Keep the sign of years before 0 (files: src/display.rs)").await?;
    day.time.pass(40).await;
    add(&day, "B16", "Read the zone of the system from `TZ` (files: src/zone/env.rs)").await?;
    day.time.pass(65).await;
    add(&day, "B18", "Give errors a source (files: src/error.rs)").await?;
    day.time.until_minute(402).await;
    add(&day, "B14", "Raise the oldest supported Rust to 1.85 (files: .github/workflows/ci.yml)").await?;
    day.time.until_minute(451).await;
    add(&day, "B20", "Add the names of weekdays in Portuguese (files: src/names/pt.rs)").await?;
    Ok(())
}

/// Names a checkpoint before a choice, chooses, and tries the other choice in a fork.
async fn choose(day: Rc<Day>) -> Result {
    let question = QuestionId(1);
    loop {
        day.time.pass(150).await;
        let planner = day.planner(ZONES).await?;
        let state = planner.handler().state();
        let is_listed = state.task_named("Z02").is_some_and(|task| task.status.is_end());
        if is_listed && state.open_questions().any(|open| open.id == question) {
            break;
        }
    }
    let checkpoint = day.order(ZONES, Command::NameCheckpoint { name: "before-the-choice".to_owned() }).await?;
    day.time.pass(210).await;
    let embed = "Embed them: nobody wants to ship a file".to_owned();
    day.order(ZONES, Command::Answer { question, answer: embed }).await?;
    day.time.until_minute(172).await;
    fork(&day, checkpoint).await?;
    day.time.pass(48).await;
    let answer = "Read the database of the system, and see how it feels".to_owned();
    // A fork asks the open questions again, as its own.
    let open = day.planner(FORK).await?.handler().state().open_questions().next().map(|open| open.id);
    let question = open.ok_or("the fork asks")?;
    day.order(FORK, Command::Answer { question, answer }).await?;
    Ok(())
}

async fn fork(day: &Day, at: Position) -> Result {
    let history = History::of(&day.store, ZONES).await?;
    let point = history.fork_point(&day.store, at).await?.ok_or("the plan was there")?;
    let mut planner = planner_of_fork(&day.store, &point, FORK, tags(FORK));
    planner.catch_up().await?;
    let number = |name: &str| planner.handler().state().id_named(name).ok_or("the plan has this task");
    let skip = |task: TaskId| Amendment::Skip { task, keeps_order: false };
    let text = "- [ ] Read the zones from the database of the system (files: src/zone/system.rs)".to_owned();
    let amendments = vec![
        skip(number("Z04")?),
        skip(number("Z08")?),
        skip(number("Z09")?),
        Amendment::Add { text, after: vec![number("Z03")?], before: vec![number("Z05")?] },
    ];
    let reason = "What if we read the database of the system?".to_owned();
    let command = Command::Fork { parent: point.parent.clone(), at: point.at, reason, pauses: false, amendments };
    let cause = Cause::request().keeping(command.recorded());
    planner.execute(command, &cause).await?;
    day.follow(FORK);
    Ok(())
}

/// A pause around noon, and an agent that no longer answers.
async fn pause(day: Rc<Day>) -> Result {
    day.time.until_minute(198).await;
    let reason = "The build machine gets a new disk".to_owned();
    day.order(WEEKS, Command::Pause { reason }).await?;
    day.time.pass(35).await;
    send(&day, "everyone", "Build machine", "It is away until about 12:50. Finish what you have, start nothing heavy.")
        .await?;
    day.time.pass(420).await;
    let (target, now) = (Target::written("docs/guide/weeks.md")?, day.store.now());
    let held: Vec<u64> = day.crew.leases().await?.overlapping(&target, now).map(|(number, _)| number).collect();
    if !held.is_empty() {
        day.crew.force(held, NAME.to_owned(), "gemini-1 does not answer, its terminal is closed".to_owned()).await?;
    }
    let (worktree, path) = (TREE.to_owned(), Target::written("Cargo.lock")?);
    day.crew.record_edit(|now| LeaseCommand::SeeEdit { worktree, path, agent: None, now }).await?;
    day.time.until_minute(234).await;
    day.order(WEEKS, Command::Resume).await?;
    Ok(())
}

/// Answers the first question of an agent, some minutes after it was asked.
async fn answer(day: Rc<Day>, agent: &str, minutes: u64, is_granted: Option<bool>, text: &str) -> Result {
    loop {
        day.time.pass(60).await;
        let asked = day.crew.asks().await?.open().find(|(_, open)| open.ask.agent == agent).map(|(number, _)| number);
        if let Some(number) = asked {
            day.time.pass(60 * minutes + 17).await;
            let answer = Answer { by: NAME.to_owned(), text: text.to_owned(), is_granted };
            return Ok(day.crew.answer(number, answer).await?);
        }
    }
}

/// Settles a failed task, names a checkpoint, and writes to an agent that does not respond.
async fn afternoon(day: Rc<Day>) -> Result {
    day.time.until_minute(300).await;
    day.order(WEEKS, Command::NameCheckpoint { name: "code-complete".to_owned() }).await?;
    let question = loop {
        day.time.pass(180).await;
        let planner = day.planner(ZONES).await?;
        let open = planner.handler().state().open_questions().next().map(|open| open.id);
        if let Some(open) = open.filter(|open| *open != QuestionId(1)) {
            break open;
        }
    };
    day.time.pass(60 * 34).await;
    day.order(ZONES, Command::Answer { question, answer: "continue".to_owned() }).await?;
    day.time.until_minute(447).await;
    send(
        &day,
        "opencode-1",
        "Keep the binary form of dates as it is",
        "Other programs store it. The text form is free to change.",
    )
    .await?;
    day.time.until_minute(491).await;
    send(&day, "codex-1", "The change of ci.yml", "I look at it in a minute.").await
}
