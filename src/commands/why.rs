//! `why`: prints a few facts about an agent, a task or a file.

use clap::Args;
use crewlog_mq::{Position, Range};

use super::leases::target;
use crate::cli::typed::AtPosition;
use crate::context::Session;
use crate::ui::failure::{Code, Failure};
use crate::views::facts;
use crate::views::names::{Choice, Unnamed, ambiguous, plan_named};
use crate::views::queries::{load_view, no_task};
use crate::views::{AsOf, views};

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
                return Err(unknown(session, &as_of, what).await?);
            }
            json
        }
    };
    let heading = ["agent", "task", "path", "plan"].into_iter().find(|key| json.get(key).is_some()).unwrap_or_default();
    session.print(&json, |to| facts::print(to, &json, [&[heading], &[]], Some(as_of.now)))
}

/// A name that fits several plans is refused as elsewhere; any other gets the nearest names.
pub async fn unknown(session: &Session, as_of: &AsOf, what: &str) -> Result<Failure, Failure> {
    let (plan, part) = what.split_once('/').map_or((what, None), |(plan, part)| (plan, Some(part)));
    let plan = match plan_named(as_of.store(), plan, Choice::Viewed).await? {
        Ok(plan) => plan,
        Err(Unnamed::Ambiguous(plans)) => {
            return ambiguous(session, as_of.store(), &format!("several plans fit {plan:?}"), Some(plan), &plans).await;
        }
        Err(Unnamed::Unknown { similar, .. }) => {
            let agents = as_of.agents(true).await?;
            let known = agents.iter().map(|agent| agent.agent.as_str()).chain(similar.iter().map(String::as_str));
            let missing = Failure::new(Code::Nothing, format!("there is no agent, plan, task or file {what}"));
            let missing = missing.did_you_mean(what, known);
            return Ok(missing.hint(session.command("agents")).hint(session.command("ls")));
        }
    };
    let view = load_view(as_of.store(), &plan, Range::up_to(as_of.at)).await?;
    Ok(no_task(session, &plan, view.state(), part.unwrap_or_default()))
}
