//! `stats`: statistics by project.

use std::ffi::OsStr;
use std::io;
use std::io::Write;

use clap::Args;
use crewlog_planner::crew::statistics::Figures;
use serde_json::json;
use uuid::Uuid;

use crate::cli::typed::AtPosition;
use crate::context::Session;
use crate::ui::failure::{Code, Failure};
use crate::ui::text::{duration, visible};
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
    // A project without a name of its own has that of its folder.
    let here = session.project().ok();
    let folder = session.place.repository.as_ref().map_or(&session.folder, |repository| &repository.main_worktree);
    let folder = folder.file_name().and_then(OsStr::to_str);
    let name = |project: &str| match folder.filter(|_| here.as_deref() == Some(project)) {
        Some(folder) if project.parse::<Uuid>().is_ok() => visible(folder),
        Some(_) | None if project == "-" => "plans without a project".to_owned(),
        Some(_) | None => visible(project),
    };
    session.print_list(
        "projects",
        json!({ "at": as_of.at }),
        &projects,
        |it| it,
        |to, it| print(to, &name(&it.project), &it.figures),
    )
}

fn print(mut to: impl Write, name: &str, figures: &Figures) -> io::Result<()> {
    let Figures { completed, failed, active, success_rate, mean_duration_ms, mean_steps, mean_iterations, .. } =
        figures;
    writeln!(to, "{name}")?;
    writeln!(to, "  tasks: {completed} completed, {failed} failed ({success_rate:.0}% succeed), {active} running")?;
    if *completed > 0 {
        let took = duration(*mean_duration_ms);
        writeln!(to, "  a completed task takes {took} and {mean_iterations:.1} attempts on average")?;
    }
    if *mean_steps > 0.0 {
        writeln!(to, "  a completed plan has {mean_steps:.1} tasks on average")?;
    }
    writeln!(to, "  most active: {}", visible(&figures.most_active_executor))
}
