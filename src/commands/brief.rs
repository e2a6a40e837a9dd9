//! `brief`: prints what a successor of an agent must know.

use clap::Args;
use serde_json::json;

use crate::context::crew::open;
use crate::context::{Session, agent_id};
use crate::ui::failure::{Code, Failure};

#[derive(Debug, Args)]
pub struct Brief {
    /// The name of an agent, or PLAN/TASK; by default the agent of AGENT_ID
    pub of: Option<String>,
}

pub async fn brief(session: &Session, args: Brief) -> Result<Code, Failure> {
    let missing = || Failure::user("name an agent or PLAN/TASK").hint("`crewlog agents` lists the agents");
    let of = args.of.or_else(agent_id).ok_or_else(missing)?;
    let brief = open(session).await?.brief(&of).await?;
    session.print_done(&brief.text(), &json!(brief))
}
