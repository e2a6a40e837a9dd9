//! Figures of the project, all conflicts, and all plans.

use askama::Template;

use super::look::Look;
use super::words::{Markup, ago, at_clock, cut, grouped, lasting, name_of_value};
use crate::failure::Failure;

/// The most conflicts and plans that are listed: the newest.
const ROWS_MAX: usize = 200;

#[derive(Template)]
#[template(path = "figures.html", whitespace = "minimize")]
struct Figures {
    tiles: Vec<(&'static str, String, String)>,
}

/// The figures of the project, and what the plan has used.
pub async fn figures(look: &Look<'_>) -> Result<Markup, Failure> {
    let project = look.shown.project().to_owned();
    let all = look.shown.statistics(Some(project)).await?;
    let mut tiles = Vec::new();
    for figures in all.iter().map(|all| &all.figures) {
        let n = |n: u64| grouped(i64::try_from(n).unwrap_or(i64::MAX));
        let rate = format!("{} failed, {} %", n(figures.failed), figures.success_rate);
        let mean = i64::try_from(figures.mean_duration_ms).unwrap_or(i64::MAX).saturating_mul(1_000);
        tiles.push(("Tasks done", n(figures.completed), format!("{rate} succeed")));
        tiles.push(("Running now", n(figures.active), String::new()));
        let tries = format!("{} dispatches for a task", figures.mean_iterations);
        tiles.push(("A task takes", lasting(mean), tries));
        tiles.push(("Most active", cut(&figures.most_active_executor, 40), String::new()));
    }
    if let Some(plan) = look.existing() {
        let spent = &plan.shown.spent;
        let tokens = spent.input_tokens + spent.output_tokens;
        if tokens > 0 {
            let cost = format!("{:.2} in the agents' unit of cost", spent.cost_micros as f64 / 1e6);
            tiles.push(("Tokens of this plan", grouped(i64::try_from(tokens).unwrap_or(i64::MAX)), cost));
        }
    }
    Ok(Markup::of(&Figures { tiles }))
}

#[derive(Template)]
#[template(path = "conflicts.html", whitespace = "minimize")]
struct Conflicts {
    n: usize,
    rows: Vec<Conflict>,
}

struct Conflict {
    number: u64,
    href: String,
    since: Markup,
    pattern: String,
    holders: Vec<String>,
    resolved: String,
}

/// All conflicts, the newest first, with how they ended.
pub async fn conflicts(look: &Look<'_>) -> Result<Markup, Failure> {
    let all = look.shown.conflicts(None, true).await?;
    let rows = all.iter().rev().take(ROWS_MAX).map(|conflict| Conflict {
        number: conflict.conflict,
        href: look.link_event(conflict.position),
        since: at_clock(&conflict.since),
        pattern: cut(&conflict.pattern, 120),
        holders: conflict
            .holders
            .iter()
            .take(4)
            .map(|holder| {
                let task = format!("{}/{}", holder.plan, holder.task);
                let executor = holder.executor.rsplit_once('@').map_or(holder.executor.as_str(), |(name, _)| name);
                cut(&format!("{} by {executor}", look.name_of_task(&task)), 120)
            })
            .collect(),
        resolved: match &conflict.resolved {
            Some(resolved) => format!("ended: {}", name_of_value(&resolved.resolution)),
            None => String::new(),
        },
    });
    Ok(Markup::of(&Conflicts { n: all.len(), rows: rows.collect() }))
}

#[derive(Template)]
#[template(path = "plans.html", whitespace = "minimize")]
struct Plans {
    n: usize,
    plans: Vec<Plan>,
}

struct Plan {
    href: String,
    id: String,
    status: &'static str,
    title: String,
    made: Markup,
    parent: String,
}

/// All plans, the newest first.
pub fn plans(look: &Look<'_>) -> Markup {
    let plans = look.plans.iter().rev().take(ROWS_MAX).map(|plan| Plan {
        href: look.asked.but(&[("tab", ""), ("task", ""), ("event", "")]).link(&[("plan", &plan.plan)]),
        id: cut(&plan.plan, 80),
        status: plan.status,
        title: cut(&plan.title, 100),
        made: ago(&plan.created_at),
        parent: plan.parent.as_ref().map_or_else(String::new, |parent| {
            format!("a fork of {} at {}", cut(&parent.plan, 60), grouped(parent.at.0))
        }),
    });
    Markup::of(&Plans { n: look.plans.len(), plans: plans.collect() })
}
