//! `ls`: lists the plans.

use clap::Args;
use serde_json::json;

use crate::cli::typed::AtPosition;
use crate::context::Session;
use crate::ui::failure::{Code, Failure};
use crate::ui::text::{one_line, visible};
use crate::views::views;

#[derive(Debug, Args)]
pub struct Ls {
    #[command(flatten)]
    pub at: AtPosition,
}

pub async fn ls(session: &Session, ls: Ls) -> Result<Code, Failure> {
    let listed = views(session).await?.as_of(ls.at.at).await?.plans().await?;
    let width = listed.iter().map(|plan| plan.plan.len()).max().unwrap_or(0);
    session.print_list(
        "plans",
        json!({}),
        &listed,
        |plan| plan,
        |to, plan| {
            let mut title = one_line(&plan.title, 60);
            if let Some(parent) = &plan.parent {
                title.push_str(&visible(&format!("  (a fork of {} at {})", parent.plan, parent.at)));
            }
            if plan.is_held_by_budget {
                title.push_str("  (held back by its budget)");
            }
            if plan.waits_for_work {
                title.push_str("  (nothing left to do: stands open for more)");
            }
            writeln!(to, "{:<width$}  {:<15}  {}  {title}", visible(&plan.plan), plan.status.words(), plan.created_at)
        },
    )
}
