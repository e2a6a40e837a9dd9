//! `why`: prints a few facts about an agent, a task or a file.

use clap::Args;
use crewlog_mq::Position;

use super::leases::target;
use crate::cli::typed::AtPosition;
use crate::context::{Session, facts};
use crate::ui::failure::{Code, Failure};
use crate::views::views;

#[derive(Debug, Args)]
pub struct Why {
    /// The name of an agent, PLAN/TASK, or a path
    pub what: String,
    #[command(flatten)]
    pub at: AtPosition,
}

pub async fn why(session: &Session, what: &str, at: Option<Position>) -> Result<Code, Failure> {
    let as_of = views(session).await?.as_of(at).await?;
    // A part of a plan's id may also be the name of a file.
    let is_file = session.folder.join(what).symlink_metadata().is_ok();
    let known = if is_file { None } else { as_of.why(what, |words| session.command(words)).await? };
    let json = match known {
        Some(json) => json,
        None => {
            let target = target(session, what)?;
            let (json, is_used) = as_of.why_file(&target).await?;
            if !is_used && !target.is_pattern && !is_file {
                let missing = Failure::new(Code::Nothing, format!("there is no agent, plan, task or file {what}"));
                return Err(missing.hint(session.command("agents")).hint(session.command("ls")));
            }
            json
        }
    };
    let heading = ["agent", "task", "path", "plan"].into_iter().find(|key| json.get(key).is_some()).unwrap_or_default();
    session.print(&json, |to| facts::print_at(to, &json, [&[heading], &[]], Some(as_of.now)))
}
