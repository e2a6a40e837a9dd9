//! Everything that waits for a person, each item with its forms.

use askama::Template;
use crewlog_executors::crew::Kind;

use super::forms::Form;
use super::look::Look;
use super::words::{self, Markup, cut, some_of};
use crate::ui::failure::Failure;
use crate::views::{NeedView, name_of};

/// The longest text in characters; the inspector and the command line have all of it.
const TEXT_CHARS_MAX: usize = 600;
const NEEDS_MAX: usize = 60;

#[derive(Template)]
#[template(path = "needs.html", config = "src/serve/page/askama.toml", whitespace = "minimize")]
struct Needs<'a> {
    look: &'a Look<'a>,
    n: usize,
    needs: Vec<(&'a NeedView, Vec<Form>)>,
}

/// The list of everything that waits for a person.
pub async fn needs(look: &Look<'_>) -> Result<Markup, Failure> {
    let all = look.shown.needs(|words| look.command(words)).await?;
    let mut needs = Vec::new();
    for need in all.iter().take(NEEDS_MAX) {
        needs.push((need, forms(look, need).await?));
    }
    Ok(if needs.is_empty() { Markup::default() } else { Markup::of(&Needs { look, n: all.len(), needs }) })
}

/// The kind as a class, and the title.
fn title(look: &Look<'_>, need: &NeedView) -> (&'static str, String) {
    let from = cut(&need.from, 60);
    match need.kind {
        Kind::Permission => ("permission", format!("{from} asks for permission")),
        Kind::Question => (
            "question",
            format!("{} · {from} asks", need.id.rsplit_once('/').map_or(&*need.id, |(_, question)| question)),
        ),
        Kind::Failure => ("failure", format!("{from}: what now?")),
        Kind::Step => ("step", format!("{} is yours", look.name_of_task(&need.id))),
        Kind::Interrupted => ("interrupted", format!("{from} was interrupted")),
        Kind::Ready => ("ready", format!("Nobody runs {from}")),
        Kind::Parked => ("parked", format!("{} is parked", look.name_of_task(&need.id))),
        Kind::Stopped => ("stopped", format!("{from} has stopped")),
        Kind::Paused => ("paused", format!("{from} is paused")),
        Kind::Conflict => ("conflict", format!("Conflict {} · {from}", need.id)),
        Kind::Overdue => ("overdue", format!("{from} has not acknowledged")),
    }
}

fn held_up(look: &Look<'_>, need: &NeedView) -> String {
    some_of(&need.holds_up, 4, |task| in_short(look, task))
}

/// A task without its plan, if that is the one shown.
fn in_short(look: &Look<'_>, task: &str) -> String {
    let own = look.plan.as_ref().and_then(|plan| task.strip_prefix(&*plan.id)?.strip_prefix('/'));
    cut(own.unwrap_or(task), 80)
}

/// The forms that settle it.
async fn forms(look: &Look<'_>, need: &NeedView) -> Result<Vec<Form>, Failure> {
    let to = |command, target: &str| look.form(command, vec![("target", target.to_owned())]);
    let answer = || look.form("answer", vec![("question", need.id.clone())]);
    let form = match need.kind {
        Kind::Permission => Some(answer().choice("text", "allow", "Allow").primary().choice("text", "deny", "Refuse")),
        Kind::Question | Kind::Failure => {
            let choices = need.choices.iter().fold(answer(), |form, it| form.choice("text", it, &cut(it, 60)));
            let choices = (!need.choices.is_empty()).then_some(choices);
            let typed = answer().required("text", "answer").button("Answer").primary();
            let typed = (need.kind == Kind::Question).then_some(typed);
            return Ok(choices.into_iter().chain(typed).collect());
        }
        Kind::Step => {
            let report = |command| look.form(command, vec![("task", need.id.clone())]);
            let done = report("task-done").required("result", "the result").button("Done").primary();
            return Ok(vec![done, report("task-fail").required("error", "what went wrong").button("Failed")]);
        }
        Kind::Interrupted | Kind::Ready => None,
        Kind::Parked => Some(to("resume", &need.id).button("Continue").primary()),
        Kind::Stopped => {
            let view = &look.shown.track(&need.id).await?.view;
            let task = view.state().stopped_by.and_then(|task| name_of(view, task));
            task.map(|task| to("retry", &format!("{}/{task}", need.id)).button(&format!("Retry {task}")).primary())
        }
        Kind::Paused => Some(to("resume", &need.id).button("Resume").primary()),
        Kind::Conflict => need.holds_up.first().map(|newcomer| {
            let label = format!("Cancel {}", in_short(look, newcomer));
            to("cancel", newcomer).required("reason", "why").button(&label)
        }),
        Kind::Overdue => {
            let form = look.form("send", vec![("to", need.from.clone())]);
            Some(form.required("subject", "a reminder").button("Send"))
        }
    };
    Ok(form.into_iter().collect())
}
