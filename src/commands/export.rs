//! `export`: writes the log, or one plan, as JSON lines. An export is JSON values one after another, since data may hold line ends.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use crewlog_executors::exports::{EXPORT, EventJson, ExportHeader};
use crewlog_mq::{LogIdentity, Query, Range};

use crate::context::Session;
use crate::ui::failure::{Code, Failure};
use crate::ui::json::print_line;
use crate::ui::terminal::Results;
use crate::ui::text::rfc3339;
use crate::views::names::{Choice, find_plan};
use crate::views::queries::for_each;

#[derive(Debug, Args)]
pub struct Export {
    /// Only this plan and its tasks; the whole log if left out
    pub plan: Option<String>,
    /// Write to this file, which must not exist [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub to: Option<PathBuf>,
}

pub async fn export(session: &Session, Export { plan, to }: Export) -> Result<Code, Failure> {
    let store = session.place.open().await?.as_stored();
    let plan = match &plan {
        Some(plan) => Some(find_plan(session, &store, plan, Choice::Viewed).await?),
        None => None,
    };
    let cannot = |error| match &to {
        None => Failure::output(error),
        Some(path) => Failure::user(format!("{} cannot be written: {error}", path.display())),
    };
    let to: Box<dyn Write> = match &to {
        None => Box::new(Results::exact()),
        Some(path) => Box::new(create_new(path)?),
    };
    let mut to = BufWriter::new(to);
    let head = store.head().await?;
    let LogIdentity { id, format, created_at } = store.log().await?;
    let (log, created_at) = (id.to_string(), rfc3339(created_at));
    print_line(&mut to, &ExportHeader { export: EXPORT, log, format, created_at, head }).map_err(cannot)?;
    // Includes the history shared by a fork, so that the export can be read alone.
    for_each(&store, plan.as_deref(), &Query::all(), Range::up_to(head), |recorded| {
        let event = EventJson { append_start: Some(recorded.append_start), ..EventJson::of(recorded)? };
        print_line(&mut to, &event).map_err(cannot)
    })
    .await?;
    to.flush().map_err(cannot)?;
    session.say_outputs_stay();
    Ok(Code::Done)
}

/// Makes a file for this account only, which must not exist, in a folder that must.
pub fn create_new(path: &Path) -> Result<File, Failure> {
    File::options().write(true).create_new(true).mode(0o600).open(path).map_err(|error| {
        let failure = Failure::user(format!("{} cannot be made: {error}", path.display()));
        match error.kind() {
            ErrorKind::AlreadyExists => failure.hint("name a file that does not exist"),
            ErrorKind::NotFound => failure.hint("make its folder first, or name a file in a folder that exists"),
            _other => failure,
        }
    })
}
