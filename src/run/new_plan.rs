//! A new plan: its id, its first command, and the run that follows.

use std::path::Path;

use crewlog_executors::roster::Roster;
use crewlog_executors::worker::InterruptedTask;
use crewlog_mq::Position;
use crewlog_planner::event::Command;
use crewlog_planner::parse::ParsedPlan;
use serde_json::json;

use crate::context::Session;
use crate::context::plan_ids::{new_id, slug};
use crate::run::options::RunArgs;
use crate::run::session::RunSession;
use crate::target::make_plan;
use crate::ui::failure::{Code, Failure};
use crate::ui::signals::Signals;
use crate::ui::terminal::Output;
use crate::ui::text::one_line;

pub struct NewPlan<'a> {
    pub id: String,
    pub begin: Command,
    pub roster: Roster,
    /// How to run it; unset to leave it to `work`.
    pub run_args: Option<&'a RunArgs>,
    /// Keep it in step with its file.
    pub sync: bool,
}

impl NewPlan<'_> {
    /// Makes the plan, prints its id, and runs it.
    pub async fn start(self, session: &Session) -> Result<Code, Failure> {
        let (store, _) = session.place.open_or_make().await?;
        let signals = Signals::new()?;
        let plan = make_plan(session, &store, self.id, self.begin).await?;
        if session.output == Output::Text || self.run_args.is_none() {
            let resume = session.command_on("resume", &plan);
            let hint = format!("no task has run yet; to run the plan: {resume}");
            session.print_begun(&plan, &json!({ "plan": plan })).map_err(|failure| failure.hint(hint))?;
        }
        let Some(run_args) = self.run_args else { return Ok(Code::Done) };
        // `run` does not consent to repeating interrupted tasks.
        let (interrupted, since) = (InterruptedTask::Report, Position(0));
        let run_session = RunSession::new(session, store, plan, since, run_args, self.roster, interrupted).await?;
        run_session.run(signals, self.sync).await
    }
}

/// An id from the title, the file or the first task. Ids are not encrypted: that of a sealed plan uses none of its text.
pub fn new_plan_id(session: &Session, parsed: Option<&ParsedPlan>, file: &Path) -> String {
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let parsed = parsed.filter(|_| !session.place.keys.is_given());
    // Without the configuration nothing can be appended.
    let redacted = |text: &String| session.config().map(|config| config.secrets.redacted(text)).unwrap_or_default();
    let first_task = parsed.and_then(|parsed| parsed.tasks.first()).map(|task| redacted(&task.description));
    let title = parsed.and_then(|parsed| parsed.title.as_ref()).map(redacted);
    let names = [title, stem, first_task.map(|task| one_line(&task, 24))].into_iter().flatten();
    let name = names.map(|name| slug(&name)).find(|name| !name.is_empty());
    new_id(name.as_deref().unwrap_or("plan"))
}
