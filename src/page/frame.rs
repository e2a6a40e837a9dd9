//! The frame of the page: the document, its header, its notices, and what an empty log shows.

use askama::Template;

use super::asked::Tab;
use super::look::{Look, Rendered};
use super::words::{Markup, cut, grouped};
use super::{CSS_NAME, JS_NAME};

/// The most plans in the menu: the newest.
const PLANS_MAX: usize = 40;
/// Characters of a title in the menu.
const TITLE_CHARS_MAX: usize = 60;

#[derive(Template)]
#[template(path = "document.html", whitespace = "minimize")]
struct Document<'a> {
    page: &'a Rendered,
    css: &'a str,
    js: &'a str,
}

impl Rendered {
    /// The parts with these ids. Those with nothing to show have a place too, for what may come.
    fn of<'a>(&'a self, ids: &[&'a str]) -> Vec<(&'a str, Markup)> {
        let part = |id: &str| self.parts.iter().find(|(known, _)| *known == id);
        ids.iter().map(|id| (*id, part(id).map(|(_, markup)| markup.clone()).unwrap_or_default())).collect()
    }

    fn left(&self) -> &'static [&'static str] {
        match self.tab {
            Tab::Overview => &["timeline", "graph", "events", "tasks"],
            Tab::Graph => &["graph", "tasks"],
            Tab::Files => &["files"],
            Tab::Events => &["events"],
            Tab::Statistics => &["conflicts"],
        }
    }

    fn right(&self) -> &'static [&'static str] {
        match self.tab {
            Tab::Overview => &["why", "inspector", "agents", "files"],
            Tab::Graph => &["why", "inspector"],
            Tab::Files => &["edits"],
            Tab::Events => &["inspector"],
            Tab::Statistics => &["plans"],
        }
    }

    /// The whole document.
    pub fn document(&self) -> Markup {
        Markup::of(&Document { page: self, css: &CSS_NAME, js: &JS_NAME })
    }
}

#[derive(Template)]
#[template(path = "top.html", whitespace = "minimize")]
struct Top<'a> {
    look: &'a Look<'a>,
    project: String,
    /// The name of the plan, or the invitation to choose one; nothing without plans.
    name: String,
    plans: Vec<PlanLink>,
    n_more: usize,
    tabs: Vec<(&'static str, String, bool)>,
    compare: String,
    at: String,
    fork: Markup,
    forms: Vec<Markup>,
}

struct PlanLink {
    href: String,
    id: String,
    status: &'static str,
    title: String,
    is_shown: bool,
}

/// The header.
pub fn top(look: &Look<'_>) -> Markup {
    let shown = look.plan.as_ref().map(|plan| plan.id.as_str());
    let plans = look.plans.iter().rev().take(PLANS_MAX).map(|plan| PlanLink {
        href: look.link(&[("plan", &plan.plan), ("task", ""), ("event", ""), ("step", ""), ("with", "")]),
        id: cut(&plan.plan, TITLE_CHARS_MAX),
        status: plan.status,
        title: cut(&plan.title, TITLE_CHARS_MAX),
        is_shown: shown == Some(&plan.plan),
    });
    let tabs = Tab::ALL.iter().map(|tab| {
        let (name, value) = match tab {
            Tab::Overview => ("Overview", ""),
            Tab::Graph => ("Graph", "graph"),
            Tab::Files => ("Files", "files"),
            Tab::Events => ("Events", "events"),
            Tab::Statistics => ("Statistics", "statistics"),
        };
        (name, look.link(&[("tab", value), ("before", "")]), look.asked.tab() == *tab)
    });
    let id = shown.unwrap_or_default().to_owned();
    let at = look.shown.at;
    let compare = if look.asked.get("with").is_some() {
        String::new()
    } else {
        let begins = look.plan.as_ref().and_then(|plan| plan.track.begins());
        begins.map_or(1, |begins| begins.position.0).to_string()
    };
    let fork = look.form("fork", vec![("plan", id.clone()), ("at", at.to_string())]);
    let fork = fork.also_in_the_past().required("reason", "why").button("Fork").primary();
    // A project without a name of its own has an id that says nothing.
    let project = look.shown.project();
    let project =
        if uuid::Uuid::parse_str(project).is_ok() { String::new() } else { format!("{} / ", cut(project, 40)) };
    let name = match (shown, look.plans.is_empty()) {
        (Some(shown), _) => cut(shown, TITLE_CHARS_MAX),
        (None, false) => "choose a plan".to_owned(),
        (None, true) => String::new(),
    };
    Markup::of(&Top {
        look,
        project,
        name,
        plans: plans.collect(),
        n_more: look.plans.len().saturating_sub(PLANS_MAX),
        tabs: tabs.collect(),
        compare: look.link(&[("with", &compare)]),
        at: grouped(at.0),
        fork: fork.markup(),
        forms: changes(look, &id),
    })
}

/// The forms that change the plan as a whole.
fn changes(look: &Look<'_>, id: &str) -> Vec<Markup> {
    let form = |command| look.form(command, vec![("plan", id.to_owned())]);
    let mut forms = vec![form("task-add").required("text", "a task to add").button("Add")];
    let is_paused = look.plan.as_ref().is_some_and(|plan| plan.shown.status == "Paused");
    match look.plan.as_ref().is_some_and(super::look::Chosen::is_open) {
        true if is_paused => forms.push(form("resume").button("Resume the plan")),
        true => forms.push(form("pause").required("reason", "why").button("Pause")),
        false => forms.clear(),
    }
    if !forms.is_empty() {
        forms.push(form("cancel").required("reason", "why").button("Cancel the plan"));
    }
    forms.push(form("checkpoint").required("name", "a name for this moment").button("Checkpoint"));
    forms.iter().map(super::forms::Form::markup).collect()
}

#[derive(Template)]
#[template(path = "notice.html", whitespace = "minimize")]
struct Notice<'a> {
    look: &'a Look<'a>,
    said: Option<String>,
}

/// What a command said, and what is wrong.
pub fn notice(look: &Look<'_>) -> Markup {
    let said = look.asked.get("said").map(|said| cut(said, 400));
    if said.is_none() && look.fault.is_none() {
        return Markup::default();
    }
    Markup::of(&Notice { look, said })
}

#[derive(Template)]
#[template(path = "empty.html", whitespace = "minimize")]
struct Empty {
    run: String,
    init: String,
}

/// What would be here, and the commands that make it so.
pub fn empty(look: &Look<'_>) -> Markup {
    Markup::of(&Empty { run: look.command("run plan.md"), init: look.command("init") })
}
