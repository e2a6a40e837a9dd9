//! `stats`: statistics by project.

use clap::Args;
use serde_json::json;

use crate::cli::typed::AtPosition;
use crate::context::{Session, facts};
use crate::ui::failure::{Code, Failure};
use crate::views::views;

#[derive(Debug, Args)]
pub struct Stats {
    /// Only this project; zeros when it has no plans
    pub project: Option<String>,
    #[command(flatten)]
    pub at: AtPosition,
}

pub async fn stats(session: &Session, Stats { project, at }: Stats) -> Result<Code, Failure> {
    let as_of = views(session).await?.as_of(at.at).await?;
    let projects = as_of.statistics(project).await?;
    facts::print_list(session, "projects", json!({ "at": as_of.at }), &projects, &["project"], &[])
}
