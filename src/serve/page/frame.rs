//! The frame of the page: the document, its header, its notices, and the page of an empty log.

use askama::Template;
use crewlog_planner::lifecycle::State;

use super::asked::Tab;
use super::forms::Form;
use super::look::{Look, Rendered};
use super::words::{self, Markup, cut};
use super::{CSS_NAME, JS_NAME};

/// The most plans in the menu, the newest.
const PLANS_MAX: usize = 40;
/// The longest title in the menu, in characters.
const TITLE_CHARS_MAX: usize = 60;

#[derive(Template)]
#[template(path = "document.html", config = "src/serve/page/askama.toml", whitespace = "minimize")]
struct Document<'a> {
    page: &'a Rendered,
    css: &'a str,
    js: &'a str,
}

impl Rendered {
    /// The parts with these ids. Empty parts also get a place, for later content.
    fn of<'a>(&'a self, ids: &[&'a str]) -> Vec<(&'a str, Markup)> {
        let part = |id: &str| self.parts.iter().find(|(known, _)| *known == id);
        ids.iter().map(|id| (*id, part(id).map(|(_, markup)| markup.clone()).unwrap_or_default())).collect()
    }

    pub fn document(&self) -> Markup {
        Markup::of(&Document { page: self, css: &CSS_NAME, js: &JS_NAME })
    }
}

impl Tab {
    fn link(self, look: &Look<'_>) -> String {
        look.link(&[("tab", if self == Self::Overview { "" } else { self.as_str() }), ("before", "")])
    }

    /// The parts above the columns.
    pub fn above(self) -> &'static [&'static str] {
        match self {
            Self::Overview => &["needs"],
            Self::Statistics => &["statistics"],
            Self::Graph | Self::Files | Self::Events => &[],
        }
    }

    /// The parts of the left column.
    pub fn left(self) -> &'static [&'static str] {
        match self {
            Self::Overview => &["timeline", "graph", "events", "tasks"],
            Self::Graph => &["graph", "tasks"],
            Self::Files => &["files"],
            Self::Events => &["events"],
            Self::Statistics => &["conflicts"],
        }
    }

    /// The parts of the right column.
    pub fn right(self) -> &'static [&'static str] {
        match self {
            Self::Overview => &["why", "inspector", "agents", "files"],
            Self::Graph => &["why", "inspector"],
            Self::Files => &["edits"],
            Self::Events => &["inspector"],
            Self::Statistics => &["plans"],
        }
    }
}

#[derive(Template)]
#[template(path = "top.html", config = "src/serve/page/askama.toml", whitespace = "minimize")]
struct Top<'a> {
    look: &'a Look<'a>,
    project: String,
    /// The name of the plan, or a prompt to choose one; empty without plans.
    name: String,
    /// The position to compare with; empty to end the comparison.
    with: String,
    fork: Form,
    forms: Vec<Form>,
}

pub fn top(look: &Look<'_>) -> Markup {
    let id = look.plan.as_ref().map(|plan| plan.id.clone()).unwrap_or_default();
    let begins = look.plan.as_ref().and_then(|plan| plan.track.begins()).map_or(1, |begins| begins.position.0);
    let fork = look.form("fork", vec![("plan", id.clone()), ("at", look.shown.at.to_string())]);
    // A project without a name has a UUID, which is not shown.
    let project = Some(look.shown.project()).filter(|project| uuid::Uuid::parse_str(project).is_err());
    let name = match &look.plan {
        Some(plan) => cut(&plan.id, TITLE_CHARS_MAX),
        None if look.plans.is_empty() => String::new(),
        None => "choose a plan".to_owned(),
    };
    Markup::of(&Top {
        look,
        project: project.map(|project| format!("{} / ", cut(project, 40))).unwrap_or_default(),
        name,
        with: look.asked.get("with").map_or_else(|| begins.to_string(), |_| String::new()),
        fork: fork.also_in_the_past().required("reason", "why").button("Fork").primary(),
        forms: changes(look, &id),
    })
}

/// The forms for commands to the whole plan.
fn changes(look: &Look<'_>, id: &str) -> Vec<Form> {
    let form = |command, field| look.form(command, vec![(field, id.to_owned())]);
    let mut forms = Vec::new();
    if let Some(plan) = look.plan.as_ref().filter(|plan| plan.is_open()) {
        forms.push(form("task-add", "plan").required("text", "a task to add").button("Add"));
        forms.push(match plan.shown.status {
            State::Paused => form("resume", "target").button("Resume the plan"),
            _running => form("pause", "target").required("reason", "why").button("Pause"),
        });
        forms.push(form("cancel", "target").required("reason", "why").button("Cancel the plan"));
    }
    forms.push(form("plan-checkpoint", "plan").required("name", "a name for this moment").button("Checkpoint"));
    forms
}

#[derive(Template)]
#[template(path = "notice.html", config = "src/serve/page/askama.toml", whitespace = "minimize")]
struct Notice<'a> {
    look: &'a Look<'a>,
}

/// The message of a command, and errors.
pub fn notice(look: &Look<'_>) -> Markup {
    let is_silent = look.asked.get("said").is_none() && look.fault.is_none();
    if is_silent { Markup::default() } else { Markup::of(&Notice { look }) }
}

#[derive(Template)]
#[template(path = "empty.html", config = "src/serve/page/askama.toml")]
struct Empty<'a> {
    look: &'a Look<'a>,
}

/// The page of an empty log: a description, and the commands to begin with.
pub fn empty(look: &Look<'_>) -> Markup {
    Markup::of(&Empty { look })
}
