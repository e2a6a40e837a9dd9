//! Everything that waits for a person, in groups, each item with its forms.

use std::collections::BTreeSet;

use askama::Template;
use crewlog_executors::crew::{Kind, OWN_WORDS};
use serde_json::{Value, json};

use super::asked::encoded;
use super::forms::Form;
use super::look::Look;
use super::words::{self, Markup, cut, link, rich, some_of};
use crate::ui::failure::Failure;
use crate::ui::text::count;
use crate::views::NeedView;

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
            Kind::Permission | Kind::Consent | Kind::Question | Kind::Failure => Self::Answer,
            Kind::Step
            | Kind::Parked
            | Kind::Stopped
            | Kind::Interrupted
            | Kind::Silent
            | Kind::Ready
            | Kind::Paused
            | Kind::Conflict
            | Kind::Health => Self::Repair,
            Kind::Budget | Kind::Overdue => Self::Know,
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
#[template(path = "need.html", config = "src/serve/page/askama.toml", whitespace = "minimize")]
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
    pub fn of(look: &'a Look<'_>, need: &'a NeedView) -> Self {
        let (title, text) = in_words(look, need);
        let is_plan = look.plans.iter().any(|plan| plan.plan == need.from);
        let from = match need.kind {
            _own if look.asked.is("plan", &need.from) => Markup::default(),
            _plans if is_plan => link(&look.link_plan(&need.from, ""), look.short(&need.from)),
            Kind::Conflict => Markup::default(),
            _agent => words::span(&cut(&need.from, 60)),
        };
        Self {
            need,
            kind: words::name_of_value(&json!(need.kind)),
            group: NeedGroup::of(need.kind).into(),
            title: rich(&title, TITLE_CHARS_MAX),
            from,
            holds_up: some_of(&need.holds_up, 4, |task| look.name_of_task(task)),
            text: rich(&text, TEXT_CHARS_MAX),
            forms: forms(look, need),
        }
    }

    pub fn markup(&self) -> Markup {
        Markup::of(self)
    }
}

/// The id of the element of an item: a link to it comes from an agent that waits.
pub fn anchor(need: &NeedView) -> String {
    format!("need-{}", encoded(&need.id))
}

/// The sentence of an item, and its details.
fn in_words(look: &Look<'_>, need: &NeedView) -> (String, String) {
    let from = cut(&need.from, 120);
    match need.kind {
        Kind::Consent => (format!("{} runs once you agree", look.name_of_task(&need.id)), need.text.clone()),
        Kind::Permission | Kind::Question | Kind::Failure => match need.text.trim().split_once('\n') {
            Some((first, rest)) => (first.to_owned(), rest.to_owned()),
            None if need.text.chars().count() > TITLE_CHARS_MAX => (need.text.clone(), need.text.clone()),
            None => (need.text.clone(), String::new()),
        },
        Kind::Parked => {
            (format!("Agents were lost with {} again and again", look.name_of_task(&need.id)), need.text.clone())
        }
        Kind::Step => (need.text.clone(), String::new()),
        Kind::Interrupted => (format!("{} was interrupted", look.short(&need.from)), need.text.clone()),
        Kind::Silent => (format!("{} prints nothing", look.name_of_task(&need.id)), need.text.clone()),
        Kind::Ready => (format!("Nobody runs {}", look.short(&need.from)), need.text.clone()),
        Kind::Stopped => (format!("{} has stopped", look.short(&need.from)), format!("Because {}.", need.text)),
        Kind::Paused => (format!("{} is paused", look.short(&need.from)), need.text.clone()),
        Kind::Conflict => {
            let text = need.text.strip_prefix("they ");
            let of_all = text.map(|text| format!("{} {text}", from.replace(", ", " and ")));
            (of_all.unwrap_or_else(|| need.text.clone()), String::new())
        }
        Kind::Budget => (format!("{from} has nearly used its budget"), need.text.clone()),
        Kind::Health => (format!("{from} needs care"), need.text.clone()),
        Kind::Overdue => (format!("{from} has not acknowledged a message"), need.text.clone()),
    }
}

#[derive(Template)]
#[template(path = "needs.html", config = "src/serve/page/askama.toml", whitespace = "minimize")]
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
            items.push(NeedItem::of(look, need));
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

/// The forms that settle an item: one for each of its actions, with the suggested answers in one.
fn forms(look: &Look<'_>, need: &NeedView) -> Vec<Form> {
    let (suggested, others): (Vec<_>, Vec<_>) =
        need.actions.iter().partition(|order| order["action"] == "answer" && order["text"] != OWN_WORDS);
    let answer = || look.form("answer", vec![("question", need.id.clone())]);
    let text = |order: &Value| order["text"].as_str().unwrap_or_default().to_owned();
    let mut forms = Vec::new();
    if !suggested.is_empty() {
        let choices = suggested.iter().map(|order| text(order)).fold(answer(), |form, text| {
            let label = match text.as_str() {
                "allow" if need.kind == Kind::Permission => "Allow".to_owned(),
                "deny" if need.kind == Kind::Permission => "Refuse".to_owned(),
                choice => cut(choice, 60),
            };
            let form = form.choice("text", &text, &label);
            if label == "Allow" { form.primary() } else { form }
        });
        forms.push(choices);
    }
    let n_primary = usize::from(suggested.is_empty());
    forms.extend(others.into_iter().enumerate().map(|(n, order)| {
        let form = of_order(look, need, order);
        if n < n_primary { form.primary() } else { form }
    }));
    forms
}

/// The form of one action, with a field for the person's own words.
fn of_order(look: &Look<'_>, need: &NeedView, order: &Value) -> Form {
    let name = order["action"].as_str().unwrap_or_default();
    let (mut hidden, mut typed) = (Vec::new(), Vec::new());
    for (field, value) in order.as_object().into_iter().flatten().filter(|(field, _)| *field != "action") {
        let texts = value.as_array().map_or_else(|| vec![value], |items| items.iter().collect());
        for text in texts.into_iter().filter_map(Value::as_str) {
            match text.strip_suffix(OWN_WORDS).filter(|start| start.is_empty() || start.ends_with('=')) {
                Some(start) => typed.push((field.clone(), start.to_owned())),
                None => hidden.push((field.clone(), text.to_owned())),
            }
        }
    }
    let target =
        hidden.iter().find(|(field, _)| field == "target").map(|(_, target)| target.clone()).unwrap_or_default();
    let of_task = || if target.contains('/') { format!(" {}", look.name_of_task(&target)) } else { String::new() };
    let (button, label) = match name {
        "answer" => ("Answer".to_owned(), "answer"),
        "resume" => (if need.kind == Kind::Parked { "Continue" } else { "Resume" }.to_owned(), ""),
        "retry" => (format!("Retry{}", of_task()), ""),
        "task-done" => ("Done".to_owned(), "the result"),
        "task-fail" => ("It cannot be done".to_owned(), "why"),
        "cancel" => (format!("Cancel{}", of_task()), ""),
        "plan-set" => ("Raise the limit".to_owned(), "the new limit"),
        "send" => ("Send".to_owned(), "a reminder"),
        _other => (words::name_of_value(&order["action"]), "your words"),
    };
    let form = look.form_of(name, hidden);
    typed.iter().fold(form, |form, (field, start)| form.filled_as(field, start, label)).button(&button)
}

impl Needs<'_> {
    /// The command lines of the items.
    fn commands(&self) -> impl Iterator<Item = String> {
        let items = self.groups.iter().flat_map(|(_, _, items)| items);
        items.flat_map(|item| &item.need.commands).map(|command| cut(command, TEXT_CHARS_MAX))
    }
}
