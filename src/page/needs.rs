//! What waits for a person, each with the form that settles it.

use askama::Template;
use crewlog_executors::crew::Kind;

use super::look::Look;
use super::words::{Markup, ago, cut};
use crate::failure::Failure;
use crate::views::{NeedView, name_of};

/// Characters of what is asked; the whole is in the inspector and on the command line.
const TEXT_CHARS_MAX: usize = 600;
/// The most that are shown.
const NEEDS_MAX: usize = 60;

#[derive(Template)]
#[template(path = "needs.html", whitespace = "minimize")]
struct Needs {
    n: usize,
    needs: Vec<Card>,
    more: String,
}

struct Card {
    id: String,
    kind: &'static str,
    title: String,
    since: Option<Markup>,
    holds_up: String,
    text: String,
    forms: Vec<Markup>,
    commands: Vec<String>,
}

/// The list of what waits for a person.
pub async fn needs(look: &Look<'_>) -> Result<Markup, Failure> {
    let needs = look.shown.needs(|words| look.command(words)).await?;
    if needs.is_empty() {
        return Ok(Markup::default());
    }
    let mut cards = Vec::new();
    for need in needs.iter().take(NEEDS_MAX) {
        cards.push(card(look, need).await?);
    }
    Ok(Markup::of(&Needs { n: needs.len(), needs: cards, more: look.command("inbox") }))
}

async fn card(look: &Look<'_>, need: &NeedView) -> Result<Card, Failure> {
    let from = cut(&need.from, 60);
    let (kind, title) = match need.kind {
        Kind::Permission => ("permission", format!("{from} asks for permission")),
        Kind::Question => match need.id.rsplit_once(' ') {
            Some((_, question)) => ("question", format!("{question} · {from} asks")),
            None => ("question", format!("{} · {from} asks", need.id)),
        },
        Kind::Failure => ("failure", format!("{from}: what now?")),
        Kind::Parked => ("parked", format!("{} is parked", look.name_of_task(&need.id))),
        Kind::Stopped => ("stopped", format!("{from} has stopped")),
        Kind::Paused => ("paused", format!("{from} is paused")),
        Kind::Conflict => ("conflict", format!("Conflict {} · {from}", need.id)),
        Kind::Overdue => ("overdue", format!("{from} has not acknowledged")),
    };
    let mut holds_up: Vec<_> = need.holds_up.iter().take(4).map(|task| look.name_of_task(task)).collect();
    if need.holds_up.len() > holds_up.len() {
        holds_up.push(format!("{} more", need.holds_up.len() - holds_up.len()));
    }
    Ok(Card {
        id: need.id.clone(),
        kind,
        title,
        since: need.since.as_deref().map(ago),
        holds_up: holds_up.join(", "),
        text: cut(&need.text, TEXT_CHARS_MAX),
        forms: forms(look, need).await?,
        commands: need.commands.iter().map(|command| cut(command, TEXT_CHARS_MAX)).collect(),
    })
}

/// The forms that settle it.
async fn forms(look: &Look<'_>, need: &NeedView) -> Result<Vec<Markup>, Failure> {
    let of_task = |command, (plan, task): (&str, &str)| {
        look.form(command, vec![("plan", plan.to_owned()), ("task", task.to_owned())])
    };
    let forms = match need.kind {
        Kind::Permission => {
            let form = look.form("answer", vec![("plan", need.id.clone())]);
            vec![form.choice("yes", "true", "Allow").primary().choice("no", "true", "Refuse")]
        }
        Kind::Question | Kind::Failure => {
            let mut fields = vec![("plan", need.id.clone())];
            if let Some((plan, question)) = need.id.rsplit_once(' ') {
                fields = vec![("plan", plan.to_owned()), ("question", question.to_owned())];
            }
            let typed = look.form("answer", fields.clone()).required("text", "answer").button("Answer").primary();
            let choices = look.form("answer", fields);
            let choices = need.choices.iter().fold(choices, |form, it| form.choice("text", it, &cut(it, 60)));
            match need.kind {
                Kind::Failure => vec![choices],
                _question if need.choices.is_empty() => vec![typed],
                _question => vec![choices, typed],
            }
        }
        Kind::Parked => {
            let form = need.id.rsplit_once('/').map(|task| of_task("resume", task).button("Continue").primary());
            form.into_iter().collect()
        }
        Kind::Stopped => {
            let track = look.shown.track(&need.id).await?;
            let task = track.view.state().stopped_by.and_then(|task| name_of(&track.view, task));
            let form = task.map(|task| of_task("retry", (&need.id, &task)).button(&format!("Retry {task}")).primary());
            form.into_iter().collect()
        }
        Kind::Paused => vec![look.form("resume", vec![("plan", need.id.clone())]).button("Resume").primary()],
        Kind::Conflict => {
            let newcomer = need.holds_up.first().and_then(|task| task.rsplit_once('/'));
            let cancel = newcomer.map(|task| {
                let form = of_task("cancel", task).required("reason", "why");
                form.button(&format!("Cancel {}", look.name_of_task(&need.holds_up[0])))
            });
            cancel.into_iter().collect()
        }
        Kind::Overdue => {
            vec![look.form("send", vec![("to", need.from.clone())]).required("subject", "a reminder").button("Send")]
        }
    };
    Ok(forms.iter().map(super::forms::Form::markup).collect())
}
