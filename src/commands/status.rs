//! `status`: the plans, and what waits for the person. `crewlog` alone prints what waits, and what happened since the person
//! last looked.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};

use clap::Args;
use crewlog_executors::private::{make_folder, state_folder};
use crewlog_mq::{Position, Timestamp};
use crewlog_planner::lifecycle::State;
use serde_json::json;

use super::inbox::ITEM;
use super::ls::print_plan;
use crate::cli::typed::AtPosition;
use crate::context::Session;
use crate::ui::failure::{Code, Failure};
use crate::ui::text::{clock, count, sha256};
use crate::views::facts;
use crate::views::{ListedPlan, NeedView, Since, views};

#[derive(Debug, Args)]
pub struct Status {
    #[command(flatten)]
    pub at: AtPosition,
    /// Print what waits, and what happened since the last look
    #[arg(long, hide = true, conflicts_with = "at")]
    pub since_last: bool,
}

pub async fn status(session: &Session, Status { at, since_last }: Status) -> Result<Code, Failure> {
    if since_last && session.place.is_unused() {
        return session.print(&json!({ "at": null, "items": [] }), |to| {
            writeln!(to, "no log here yet\n  a plan of your own: crewlog run FILE\n  a recorded day: crewlog demo")?;
            writeln!(to, "  all commands: crewlog --help")
        });
    }
    let as_of = views(session).await?.as_of(at.at).await?;
    let items = as_of.needs(|words| session.command(words)).await?;
    if since_last {
        let name = sha256(&format!("{}\0{}", as_of.store().log().await?.id, as_of.project()));
        let file = state_folder().map(|folder| folder.join("looked").join(&name[..32]));
        let last = file.as_ref().and_then(|file| fs::read_to_string(file).ok()?.trim().parse().ok()).map(Position);
        let since = as_of.since(last.filter(|last| *last <= as_of.at).unwrap_or_default()).await?;
        let json = json!({ "at": as_of.at, "items": items, "since": since });
        session.print(&json, |to| {
            print_items(&mut *to, &items, &as_of)?;
            print_since(to, &since, as_of.now)
        })?;
        // In a file: looking appends nothing. Where it cannot be written, every look is the first.
        if let Some((file, folder)) = file.as_ref().and_then(|file| Some((file, file.parent()?))) {
            let _ = make_folder(folder).and_then(|()| fs::write(file, as_of.at.0.to_string()));
        }
        return Ok(Code::Done);
    }
    let plans = as_of.summaries().await?;
    let listed = plans.iter().map(|(plan, summary)| ListedPlan::of(plan, summary.clone())).collect::<Vec<_>>();
    let mut print_plan = print_plan(&plans, as_of.now);
    session.print(&json!({ "at": as_of.at, "items": items, "plans": listed }), |to| {
        plans.iter().try_for_each(|plan| print_plan(&mut *to, plan))?;
        if items.is_empty() { Ok(()) } else { print_items(to, &items, &as_of) }
    })?;
    if items.is_empty() {
        session.suggest("nothing waits for you");
    }
    Ok(Code::Done)
}

fn print_items(mut to: impl Write, items: &[NeedView], as_of: &crate::views::AsOf) -> io::Result<()> {
    if items.is_empty() {
        return writeln!(to, "nothing waits for you");
    }
    items.iter().try_for_each(|item| facts::print(&mut to, &json!(item), ITEM, Some(as_of.now)))
}

/// `since 12:10: 6 tasks done, 1 task failed`
fn print_since(mut to: impl Write, since: &Since, now: Timestamp) -> io::Result<()> {
    let Some(begins) = since.begins else { return writeln!(to, "nothing has ended since you last looked") };
    let of = |states: &BTreeMap<State, usize>, what: &'static str| {
        let words = states.iter().map(move |(state, n)| format!("{} {}", count(*n, what), state.words()));
        words.collect::<Vec<_>>()
    };
    let words = [of(&since.tasks, "task"), of(&since.plans, "plan")].concat().join(", ");
    writeln!(to, "since {}: {words}", clock(begins, now))
}
