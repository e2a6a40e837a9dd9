//! `why`: prints a few facts about an agent, a task or a file.

use crewlog_mq::Position;

use super::facts;
use super::session::views;
use super::verbs::target;
use crate::failure::{Code, Failure};
use crate::session::Session;

pub async fn why(session: &Session, what: &str, at: Option<Position>) -> Result<Code, Failure> {
    let as_of = views(session).await?.as_of(at).await?;
    let json = match as_of.why(what, |words| session.command(words)).await? {
        Some(json) => json,
        None => {
            let target = target(session, what)?;
            let is_known = target.is_pattern || session.folder.join(what).symlink_metadata().is_ok();
            let (json, is_used) = as_of.why_file(&target).await?;
            if !is_used && !is_known {
                let missing = Failure::new(Code::Nothing, format!("there is no agent, task or file {what}"));
                return Err(missing.hint(session.command("agents")).hint(session.command("ls")));
            }
            json
        }
    };
    let heading = ["agent", "task", "path"].into_iter().find(|key| json.get(key).is_some()).unwrap_or_default();
    session.print(&json, |to| facts::print(to, &json, &[heading], &[]))
}
