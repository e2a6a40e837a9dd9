//! The agents of the project: who is there, and what each does.

use askama::Template;

use super::look::Look;
use super::words::{Markup, ago, cut, grouped, name_of_value};
use crate::failure::Failure;
use crate::text::count;
use crate::views::{AgentView, LeaseView};

/// Agents beyond these are folded away.
const OPEN_MAX: usize = 8;
/// The leases that a card names.
const LEASES_MAX: usize = 3;

#[derive(Template)]
#[template(path = "agents.html", whitespace = "minimize")]
struct Agents {
    summary: String,
    first: Vec<Card>,
    others: Vec<Card>,
}

struct Card {
    name: String,
    liveness: String,
    activity: String,
    word: String,
    /// How much attention it asks for: a class.
    tone: &'static str,
    seen_words: &'static str,
    seen: Markup,
    task: Option<(String, String)>,
    step: String,
    context: Option<u8>,
    fill: &'static str,
    program: String,
    leases: String,
}

/// The card of the agents.
pub async fn agents(look: &Look<'_>) -> Result<Markup, Failure> {
    let agents = look.shown.agents(false).await?;
    if agents.is_empty() {
        return Ok(Markup::default());
    }
    let leases = look.shown.leases(|_, _, _| true).await?;
    let mut cards: Vec<_> = agents.iter().map(|agent| card(look, agent, &leases)).collect();
    let rank = |card: &Card| ["fail", "wait", "run", "idle"].iter().position(|tone| *tone == card.tone);
    cards.sort_by_key(rank);
    let n_idle = cards.iter().filter(|card| card.tone == "idle").count();
    let mut summary = grouped(i64::try_from(cards.len()).unwrap_or(i64::MAX));
    if n_idle > 0 {
        summary.push_str(&format!(" · {n_idle} idle"));
    }
    let others = cards.split_off(cards.len().min(OPEN_MAX));
    Ok(Markup::of(&Agents { summary, first: cards, others }))
}

fn card(look: &Look<'_>, agent: &AgentView, leases: &[LeaseView]) -> Card {
    let (liveness, activity) = (name_of_value(&agent.liveness), name_of_value(&agent.activity));
    let (tone, word) = match (liveness.as_str(), activity.as_str()) {
        ("stuck" | "lost", _) => ("fail", liveness.clone()),
        (_, "working") => ("run", activity.clone()),
        (_, "waiting" | "blocked") => ("wait", activity.clone()),
        _resting => ("idle", activity.clone()),
    };
    let task = agent.task.as_deref().map(|task| look.task_in_words(task));
    let steps = [agent.step.as_deref(), agent.note.as_deref()];
    let steps: Vec<_> = steps.into_iter().flatten().map(|step| cut(step, 160)).collect();
    let held: Vec<_> = leases.iter().filter(|lease| lease.agent == agent.agent && lease.lease.is_some()).collect();
    let mut paths: Vec<_> = held.iter().take(LEASES_MAX).map(|lease| cut(&lease.path, 60)).collect();
    if held.len() > paths.len() {
        paths.push(format!("{} more", held.len() - paths.len()));
    }
    let model = agent.model.as_deref().map(|model| format!(" ({model})")).unwrap_or_default();
    Card {
        name: agent.agent.clone(),
        liveness,
        activity,
        word,
        tone,
        seen_words: "seen",
        seen: ago(&agent.seen),
        task,
        step: steps.join(" · "),
        context: agent.context_usage,
        fill: if agent.context_usage.is_some_and(|percent| percent >= 80) { "full" } else { "some" },
        program: cut(&format!("{}{model}", agent.program), 60),
        leases: if held.is_empty() { "no leases".to_owned() } else { paths.join(", ") },
    }
}

/// `1 lease`, `3 leases`.
pub fn n_leases(n: usize) -> String {
    count(n, "lease")
}
