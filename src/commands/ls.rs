//! `ls`: lists the plans.

use std::io;
use std::io::Write;

use clap::Args;
use crewlog_mq::Timestamp;
use crewlog_planner::listing::PlanSummary;
use serde_json::json;

use crate::cli::typed::AtPosition;
use crate::context::Session;
use crate::ui::failure::{Code, Failure};
use crate::ui::text::{ago, one_line, visible};
use crate::views::{ListedPlan, views};

#[derive(Debug, Args)]
pub struct Ls {
    #[command(flatten)]
    pub at: AtPosition,
}

pub async fn ls(session: &Session, ls: Ls) -> Result<Code, Failure> {
    let as_of = views(session).await?.as_of(ls.at.at).await?;
    let plans = as_of.summaries().await?;
    let mut text = print_plan(&plans, as_of.now);
    let json = |(plan, summary): &(String, PlanSummary)| ListedPlan::of(plan, summary.clone());
    session.print_list("plans", json!({}), &plans, json, |to, plan| text(to, plan))
}

/// Prints a plan of a list in one line.
pub fn print_plan(
    plans: &[(String, PlanSummary)],
    now: Timestamp,
) -> impl FnMut(&mut dyn Write, &(String, PlanSummary)) -> io::Result<()> + use<> {
    let width = plans.iter().map(|(plan, _)| plan.len()).max().unwrap_or(0);
    move |to, (plan, summary)| {
        let mut title = one_line(&summary.title, 60);
        if let Some(parent) = &summary.parent {
            title.push_str(&visible(&format!("  (a fork of {} at {})", parent.plan, parent.at)));
        }
        if summary.is_held_by_budget {
            title.push_str("  (held back by its budget)");
        }
        if summary.waits_for_work {
            title.push_str("  (nothing left to do; stays open for more)");
        }
        let (n_done, n_tasks) = summary.progress;
        let (plan, status, age) = (visible(plan), summary.state.words(), ago(summary.created_at, now));
        writeln!(to, "{plan:<width$}  {status:<15}  {:>5}  {age:>10}  {title}", format!("{n_done}/{n_tasks}"))
    }
}
