//! `plan set`: changes the settings of a plan.

use clap::Args;
use crewlog_planner::event::Command;

use crate::cli::settings;
use crate::cli::settings::{Change, KEYS, change, help};
use crate::commands::task::give;
use crate::context::Session;
use crate::target::Target;
use crate::ui::failure::{Code, Failure};
use crate::views::names::Choice;

#[derive(Debug, Args)]
pub struct Set {
    /// The plan
    pub plan: String,
    /// parallelism=2, on-failure=ask, deadline=none, ...
    #[arg(required = true, value_name = "KEY=VALUE", value_parser = change, long_help = help("Settings of the plan", KEYS))]
    pub settings: Vec<Change>,
    /// Why
    #[arg(long, default_value = "set by a person")]
    pub reason: String,
}

pub async fn set(session: &Session, Set { plan, settings: changes, reason }: Set) -> Result<Code, Failure> {
    let target = Target::find(session, &plan, Choice::Changed).await?;
    let changes = settings::of_open(changes, target.state().config.budget).map_err(Failure::user)?;
    give(session, target, Command::Configure { changes, reason }).await
}
