//! Everything that waits for a person, in groups, each item with its forms.

use std::collections::BTreeSet;

use askama::Template;
use crewlog_executors::crew::Kind;
use serde_json::json;

use super::asked::encoded;
use super::forms::Form;
use super::look::Look;
use super::words::{self, Markup, cut, link, rich, some_of};
use crate::failure::Failure;
use crate::text::count;
use crate::views::{NeedView, name_of};

/// The longest text in characters; the inspector and the command line have all of it.
const TEXT_CHARS_MAX: usize = 600;
/// The longest heading in characters.
const TITLE_CHARS_MAX: usize = 180;
const NEEDS_MAX: usize = 60;

/// A group of items: to answer, to repair, or only to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
pub enum NeedGroup {
    Answer,
    Repair,
    /// Nothing waits for it, so it is not counted.
    Know,
}

impl NeedGroup {
    pub fn of(kind: Kind) -> Self {
        match kind {
            Kind::Permission | Kind::Question | Kind::Failure => Self::Answer,
            Kind::Parked | Kind::Stopped | Kind::Paused | Kind::Conflict => Self::Repair,
            Kind::Overdue => Self::Know,
        }
    }
}

/// The number of items that wait for the person.
pub fn n_waiting(needs: &[NeedView]) -> usize {
    needs.iter().filter(|need| NeedGroup::of(need.kind) != NeedGroup::Know).count()
}

/// True if an item is about a plan or one of its tasks.
pub fn is_of_plan(need: &NeedView, plan: &str) -> bool {
    need.from == plan
        || need.holds_up.iter().any(|task| task.strip_prefix(plan).is_some_and(|rest| rest.starts_with('/')))
}

/// An item with its sentence and its forms.
#[derive(Template)]
#[template(path = "need.html", config = "src/page/askama.toml", whitespace = "minimize")]
pub struct NeedItem<'a> {
    need: &'a NeedView,
    kind: String,
    group: &'static str,
    title: Markup,
    from: Markup,
    holds_up: String,
    text: Markup,
    forms: Vec<Form>,
}

impl<'a> NeedItem<'a> {
    pub async fn of(look: &'a Look<'_>, need: &'a NeedView) -> Result<Self, Failure> {
        let (title, text) = in_words(look, need);
        let is_plan = look.plans.iter().any(|plan| plan.plan == need.from);
        let from = match need.kind {
            _own if look.asked.is("plan", &need.from) => Markup::default(),
            _plans if is_plan => link(&look.link_plan(&need.from, ""), look.short(&need.from)),
            Kind::Conflict => Markup::default(),
            _agent => words::span(&cut(&need.from, 60)),
        };
        Ok(Self {
            need,
            kind: words::name_of_value(&json!(need.kind)),
            group: NeedGroup::of(need.kind).into(),
            title: rich(&title, TITLE_CHARS_MAX),
            from,
            holds_up: some_of(&need.holds_up, 4, |task| look.name_of_task(task)),
            text: rich(&text, TEXT_CHARS_MAX),
            forms: forms(look, need).await?,
        })
    }

    pub fn markup(&self) -> Markup {
        Markup::of(self)
    }

    /// The id of the element: a link to it comes from an agent that waits.
    fn anchor(&self) -> String {
        anchor(self.need)
    }
}

pub fn anchor(need: &NeedView) -> String {
    format!("need-{}", encoded(&need.id))
}

/// The sentence of an item, and its details.
fn in_words(look: &Look<'_>, need: &NeedView) -> (String, String) {
    let from = cut(&need.from, 120);
    match need.kind {
        Kind::Permission | Kind::Question | Kind::Failure => match need.text.trim().split_once('\n') {
            Some((first, rest)) => (first.to_owned(), rest.to_owned()),
            None if need.text.chars().count() > TITLE_CHARS_MAX => (need.text.clone(), need.text.clone()),
            None => (need.text.clone(), String::new()),
        },
        Kind::Parked => {
            (format!("Agents were lost with {} again and again", look.name_of_task(&need.id)), need.text.clone())
        }
        Kind::Stopped => (format!("{} has stopped", look.short(&need.from)), format!("Because {}.", need.text)),
        Kind::Paused => (format!("{} is paused", look.short(&need.from)), need.text.clone()),
        Kind::Conflict => {
            let text = need.text.trim_start_matches("they ");
            (format!("{} {text}", from.replace(", ", " and ")), String::new())
        }
        Kind::Overdue => (format!("{from} has not acknowledged a message"), need.text.clone()),
    }
}

#[derive(Template)]
#[template(path = "needs.html", config = "src/page/askama.toml", whitespace = "minimize")]
struct Needs<'a> {
    look: &'a Look<'a>,
    heading: String,
    second: String,
    oldest: Option<&'a str>,
    groups: Vec<(&'static str, String, Vec<NeedItem<'a>>)>,
    n_more: usize,
}

/// Everything that waits for a person, in groups.
pub async fn needs(look: &Look<'_>) -> Result<Markup, Failure> {
    let n = n_waiting(&look.needs);
    let mut groups = Vec::new();
    for group in <NeedGroup as strum::VariantArray>::VARIANTS {
        let of_group = look.needs.iter().filter(|need| NeedGroup::of(need.kind) == *group);
        let mut items = Vec::new();
        for need in of_group.clone().take(NEEDS_MAX) {
            items.push(NeedItem::of(look, need).await?);
        }
        let n_items = of_group.count();
        let says =
            if *group != NeedGroup::Know { n_items.to_string() } else { format!("{n_items} · nothing waits for it") };
        groups.extend((!items.is_empty()).then(|| ((*group).into(), says, items)));
    }
    let n_shown = groups.iter().map(|(_, _, items)| items.len()).sum::<usize>();
    let waiting = || look.needs.iter().filter(|need| NeedGroup::of(need.kind) != NeedGroup::Know);
    let held: BTreeSet<_> = waiting().flat_map(|need| &need.holds_up).collect();
    let (waits, holds) = if look.is_past() { ("waited", "held") } else { ("wait", "hold") };
    let heading = match (n, look.is_past()) {
        (0, _) => format!("Nothing {waits}{} for you", if look.is_past() { "" } else { "s" }),
        (1, false) => "1 thing waits for you".to_owned(),
        (n, _) => format!("{} {waits} for you", count(n, "thing")),
    };
    let second = if held.is_empty() { String::new() } else { format!("they {holds} up {}", count(held.len(), "task")) };
    let oldest = waiting().filter_map(|need| need.since.as_deref()).min();
    Ok(Markup::of(&Needs { look, heading, second, oldest, groups, n_more: look.needs.len() - n_shown }))
}

/// The forms that settle an item.
async fn forms(look: &Look<'_>, need: &NeedView) -> Result<Vec<Form>, Failure> {
    let to = |command, target: &str| look.form(command, vec![("target", target.to_owned())]);
    let answer = || look.form("answer", vec![("question", need.id.clone())]);
    let form = match need.kind {
        Kind::Permission => Some(answer().choice("text", "allow", "Allow").primary().choice("text", "deny", "Refuse")),
        Kind::Question | Kind::Failure => {
            let choices = need.choices.iter().fold(answer(), |form, it| form.choice("text", it, &cut(it, 60)));
            let choices = (!need.choices.is_empty()).then_some(choices);
            let label = if choices.is_some() { "another answer" } else { "answer" };
            let typed = answer().required("text", label).button("Answer").primary();
            let typed = (need.kind == Kind::Question).then_some(typed);
            return Ok(choices.into_iter().chain(typed).collect());
        }
        Kind::Parked => Some(to("resume", &need.id).button("Continue").primary()),
        Kind::Stopped => {
            let view = &look.shown.track(&need.id).await?.view;
            let task = view.state().stopped_by.and_then(|task| name_of(view, task));
            task.map(|task| to("retry", &format!("{}/{task}", need.id)).button(&format!("Retry {task}")).primary())
        }
        Kind::Paused => Some(to("resume", &need.id).button("Resume").primary()),
        Kind::Conflict => {
            let cancel = |task: &String| {
                let label = format!("Cancel {}", look.name_of_task(task));
                to("cancel", task).optional("reason", "why").button(&label)
            };
            return Ok(need.holds_up.iter().take(2).map(cancel).collect());
        }
        Kind::Overdue => {
            let form = look.form("send", vec![("to", need.from.clone())]);
            Some(form.required("subject", "a reminder").button("Send"))
        }
    };
    Ok(form.into_iter().collect())
}

impl Needs<'_> {
    /// The command lines of the items.
    fn commands(&self) -> impl Iterator<Item = String> {
        let items = self.groups.iter().flat_map(|(_, _, items)| items);
        items.flat_map(|item| &item.need.commands).map(|command| cut(command, TEXT_CHARS_MAX))
    }
}
