//! `status`: the plans, and what waits for the person.

use serde_json::json;

use super::inbox::ITEM;
use super::ls::{Ls, print_plan};
use crate::context::{Session, facts};
use crate::ui::failure::{Code, Failure};
use crate::views::{ListedPlan, views};

pub async fn status(session: &Session, Ls { at }: Ls) -> Result<Code, Failure> {
    let as_of = views(session).await?.as_of(at.at).await?;
    let (items, plans) = (as_of.needs(|words| session.command(words)).await?, as_of.summaries().await?);
    let listed = plans.iter().map(|(plan, summary)| ListedPlan::of(plan, summary.clone())).collect::<Vec<_>>();
    let json = json!({ "at": as_of.at, "items": items, "plans": listed });
    let mut print_plan = print_plan(&plans, as_of.now);
    session.print(&json, |to| {
        plans.iter().try_for_each(|plan| print_plan(&mut *to, plan))?;
        items.iter().try_for_each(|item| facts::print_at(&mut *to, &json!(item), ITEM, Some(as_of.now)))
    })?;
    if items.is_empty() {
        session.suggest("nothing waits for you");
    }
    Ok(Code::Done)
}
