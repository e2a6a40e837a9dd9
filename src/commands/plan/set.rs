//! `plan set`: changes the settings of a plan.

use clap::Args;
use crewlog_executors::consent::Consent;
use crewlog_planner::event::Command;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::cli::settings::{self, Change, KEYS, help};
use crate::cli::typed::{BY_PERSON, Typed, by_person};
use crate::commands::task::changing::give;
use crate::context::Session;
use crate::run::offering;
use crate::target::Target;
use crate::ui::failure::{Code, Failure};
use crate::views::names::Choice;

#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Set {
    /// The plan
    pub plan: String,
    /// parallelism=2, on-failure=ask, deadline=none, ...
    #[arg(required = true, value_name = "KEY=VALUE", long_help = help("Settings of the plan", KEYS))]
    #[schema(value_type = Vec<String>)]
    pub settings: Vec<Typed<Change>>,
    /// Why
    #[arg(long, default_value = BY_PERSON)]
    #[serde(default = "by_person")]
    pub reason: String,
}

pub async fn set(session: &Session, Set { plan, settings, reason }: Set) -> Result<Code, Failure> {
    let target = Target::find(session, &plan, Choice::Changed).await?;
    let typed: Vec<_> = settings.into_iter().map(|setting| setting.value).collect();
    offering::check(session, &typed).await?;
    let changes = settings::of_open(typed, target.state().config.budget).map_err(Failure::user)?;
    give(session, target, Command::Configure { changes, reason }, "changed", Consent::default()).await
}
