//! `logs`: the output of a run of a task, while it runs and after. It reads the files of this machine.

use std::io::{ErrorKind, Write};
use std::time::Duration;

use clap::Args;
use crewlog_executors::caller::host;
use crewlog_executors::runs::OutputFiles;
use crewlog_executors::transcript;
use crewlog_mq::{EventStore, Query, Range, Start};
use crewlog_planner::claim::{self, TaskEvent};
use crewlog_planner::plan::TaskId;
use futures::StreamExt;
use serde_json::json;

use crate::cli::typed::InPlan;
use crate::context::Session;
use crate::ui::failure::{Code, Failure};
use crate::ui::terminal::{Output, Results};
use crate::views::names::{Choice, find_plan};
use crate::views::queries::{load_view, no_task};

/// A longer line is printed in parts.
const LINE_BYTES_MAX: usize = 1 << 20;
/// How often the file of a run is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
pub struct Logs {
    /// The task
    #[arg(value_name = "PLAN/TASK")]
    pub target: InPlan,
    /// Print more as it comes, until the run ends
    #[arg(short, long)]
    pub follow: bool,
    /// The attempt [default: the last]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub attempt: Option<u32>,
}

pub async fn logs(session: &Session, Logs { target, follow, attempt }: Logs) -> Result<Code, Failure> {
    let store = session.place.open().await?;
    let plan = find_plan(session, &store, &target.plan, Choice::Viewed).await?;
    let view = load_view(&store, &plan, Range::default()).await?;
    let found = view.state().task_named(&target.name);
    let found = found.ok_or_else(|| no_task(session, &plan, view.state(), &target.name))?;
    let (task, attempt, runs) = (found.plan.id, attempt.unwrap_or(found.attempts.max(1)), session.outputs()?);
    let run = Attempt { store: &store, plan: &plan, task, attempt, runs: &runs };
    match session.output {
        Output::Text if follow => return run.follow(session).await,
        Output::Json | Output::Jsonl if follow => {
            return Err(
                Failure::user("a JSON document has an end, and --follow has none").hint("leave out one of them")
            );
        }
        Output::Text | Output::Json | Output::Jsonl => {}
    }
    let name = found.plan.name();
    let (mut text, mut n_bytes) = (Vec::new(), 0);
    for file in runs.all(&plan, task, attempt) {
        if n_bytes > 0 {
            text.extend(b"\n... the run was cut short; the next one:\n");
        }
        let kept = runs.open(&file).map_err(unreadable)?;
        kept.copy(0, &mut text).map_err(Failure::output)?;
        n_bytes += kept.n_bytes;
    }
    if n_bytes == 0 {
        let why = run.why_not_here().await?;
        return Err(Failure::new(
            Code::Nothing,
            format!("no output of attempt {attempt} of task {name} is here: {why}"),
        ));
    }
    let text = String::from_utf8_lossy(&text);
    let json = json!({ "plan": plan, "task": name, "attempt": attempt, "n_bytes": n_bytes, "output": text });
    session.print(&json, |to| text.lines().try_for_each(|line| print(line, &mut *to)))
}

/// A run of a task.
struct Attempt<'a> {
    store: &'a EventStore,
    plan: &'a str,
    task: TaskId,
    attempt: u32,
    runs: &'a OutputFiles,
}

impl Attempt<'_> {
    fn events(&self) -> Query {
        Query::aggregate(claim::STREAM, &claim::aggregate_id(self.plan, self.task))
    }

    /// Prints whole lines until the run has ended.
    async fn follow(self, session: &Session) -> Result<Code, Failure> {
        let (mut looks, life, mut holder) =
            (tokio::time::interval(LOOK_INTERVAL), session.place.liveness_lock()?, None);
        let mut events = std::pin::pin!(self.store.follow(&self.events(), Start::Beginning));
        let (mut shown, mut line, mut file, mut attempt, mut has_ended, mut is_over) =
            (0, Vec::new(), None, 0, false, false);
        loop {
            let now = self.runs.last(self.plan, self.task, self.attempt).map(|file| self.runs.open(&file));
            let kept = match now.transpose() {
                // It is removed just now, or begins.
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::UnexpectedEof) => None,
                kept => kept.map_err(unreadable)?,
            };
            if let Some(kept) = kept {
                // The task may have been taken over.
                if file.replace(kept.file.clone()).is_some_and(|before| before != kept.file) {
                    (shown, line) = (0, Vec::new());
                }
                kept.copy(shown, &mut line).map_err(Failure::output)?;
                shown = kept.n_bytes;
            }
            let last = line.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let whole = if is_over || line.len() > LINE_BYTES_MAX { line.len() } else { last };
            let rest = line.split_off(whole);
            let text = String::from_utf8_lossy(&line);
            text.lines().try_for_each(|line| print(line, Results::exact())).map_err(Failure::output)?;
            if is_over {
                return Ok(Code::Done);
            }
            line = rest;
            tokio::select! {
                biased;
                Some(Ok(recorded)) = events.next() => {
                    let event = recorded.decode::<TaskEvent>()?;
                    if let TaskEvent::TaskClaimed { attempt: claimed, executor, .. } = &event {
                        (attempt, holder) = (*claimed, Some(executor.clone()));
                    }
                    has_ended = attempt > self.attempt || attempt == self.attempt && event.ends_hold();
                }
                _ = looks.tick() => {
                    let is_dead = holder.as_ref().is_some_and(|holder| life.is_dead(holder)) && !has_ended;
                    is_dead.then(|| session.say(&format!("its worker is gone: crewlog resume {}", self.plan)));
                    is_over = has_ended || is_dead;
                }
            }
        }
    }

    async fn why_not_here(&self) -> Result<String, Failure> {
        let events = self.store.load::<TaskEvent>(&self.events(), Range::default()).await?;
        let file = |event: &TaskEvent| match event {
            TaskEvent::TaskCompleted { attempt, run, .. } | TaskEvent::TaskFailed { attempt, run, .. }
                if *attempt == self.attempt =>
            {
                run.as_ref()?.output.clone()
            }
            _another => None,
        };
        Ok(match events.iter().rev().find_map(|envelope| file(&envelope.event)) {
            Some(file) if file.host != host() => format!("{} has it", file.host),
            Some(_) => "it was removed, by hand or to make room (runs_bytes_max)".to_owned(),
            None => "it has not run here, or has printed nothing".to_owned(),
        })
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn unreadable(error: std::io::Error) -> Failure {
    Failure::user(format!("the output cannot be read: {error}"))
}

fn print(line: &str, mut to: impl Write) -> std::io::Result<()> {
    let shown = transcript::shown(line);
    if shown.is_empty() && !line.is_empty() { Ok(()) } else { writeln!(to, "{shown}") }
}
