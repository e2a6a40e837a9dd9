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
#[template(
    ext = "html",
    whitespace = "minimize",
    source = r##"<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><meta name="robots" content="noindex"><title>{{ page.title }}</title>
<link rel="icon" href="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect x='1' y='3' width='9' height='4' rx='1' fill='%232f7d4f'/%3E%3Crect x='5' y='9' width='10' height='4' rx='1' fill='%231f5fd0'/%3E%3C/svg%3E">
<link rel="stylesheet" href="/assets/{{ css }}"><script src="/assets/{{ js }}"></script></head>
<body {% if !page.is_live %}class="past"{% endif %}>
<a class="skip" href="#main">Skip to the plan</a>
<svg class="defs" width="0" height="0" aria-hidden="true" focusable="false"><defs>
<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line x1="0" y1="0" x2="0" y2="6"/></pattern>
</defs></svg>
{% for (id, markup) in page.of(["top"]) %}<header id="{{ id }}" class="part">{{ markup }}</header>{% endfor %}
<p id="lost" role="status" hidden></p>
<main id="main" data-at="{{ page.at.0 }}" data-live="{{ page.is_live }}" data-now="{{ page.now_us }}" class="tab-{{ page.tab.as_str() }}"><h1 class="vh">crewlog</h1>
{% for (id, markup) in page.of(["notice", "empty", "time", "compare", "needs", "statistics"]) %}<div id="{{ id }}" class="part">{{ markup }}</div>{% endfor %}
<div class="two"><div class="col">
{% for (id, markup) in page.of(page.left()) %}<div id="{{ id }}" class="part">{{ markup }}</div>{% endfor %}
</div><div class="col side">
{% for (id, markup) in page.of(page.right()) %}<div id="{{ id }}" class="part">{{ markup }}</div>{% endfor %}
</div></div>
</main>
<dialog id="help" aria-label="Keys"><h2>Keys</h2><dl class="keys">
<dt><kbd>←</kbd> <kbd>→</kbd></dt><dd>one event of the plan back, or on</dd>
<dt><kbd>Space</kbd></dt><dd>play, or stop</dd><dt><kbd>L</kbd></dt><dd>back to live</dd>
<dt><kbd>?</kbd></dt><dd>this list</dd></dl><form method="dialog"><button class="pri">Close</button></form></dialog>
</body></html>"##
)]
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
#[template(
    ext = "html",
    whitespace = "minimize",
    source = r##"
<a class="brand" href="/">crewlog</a>
{% if !name.is_empty() %}
<details class="menu" data-key="plans"><summary><span class="sub crumb">{{ project }}</span><b dir="auto">{{ name }}</b>
{% if let Some(plan) = look.existing() %} <span class="pill p-{{ plan.shown.status }}" data-plan-status="{{ plan.shown.status }}">{{ plan.shown.status }}</span>{% endif %}</summary>
<div class="sheet"><ul class="plans">
{% for plan in plans %}<li><a href="{{ plan.href }}" {% if plan.is_shown %}aria-current="true"{% endif %}><b dir="auto">{{ plan.id }}</b>
<span class="pill p-{{ plan.status }}">{{ plan.status }}</span><span class="sub" dir="auto">{{ plan.title }}</span></a></li>{% endfor %}
</ul>{% if n_more > 0 %}<p class="sub">and {{ n_more }} older: <a href="{{ look.link([("tab", "statistics")]) }}">all plans</a></p>{% endif %}</div></details>
{% endif %}
<nav aria-label="Views">{% for tab in tabs %}<a href="{{ tab.1 }}" {% if tab.2 %}aria-current="page"{% endif %}>{{ tab.0 }}</a>{% endfor %}</nav>
<span class="acts">
{% if look.is_past() %}<span class="as-of">{{ look.as_of() }}</span><a class="btn" data-live-link href="{{ look.link([("at", "")]) }}">Go live</a>
{% else %}<span class="live">live</span>{% endif %}
{% if let Some(plan) = look.existing() %}
<a class="btn" href="{{ compare }}">{% if look.asked.get("with").is_some() %}End comparison{% else %}Compare{% endif %}</a>
<details class="menu end" data-key="fork"><summary class="btn">Fork here</summary><div class="sheet">
<p>A fork goes on from position {{ at }} as a plan of its own. This plan stays as it is.</p>{{ fork }}</div></details>
<details class="menu end" data-key="change"><summary class="btn">Change</summary><div class="sheet">{% for form in forms %}{{ form }}{% endfor %}</div></details>
{% endif %}
<button type="button" class="icon" data-theme-button hidden aria-label="Change between light and dark">◐</button>
<button type="button" class="icon" data-help-button hidden aria-label="Keys">?</button></span>"##
)]
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
#[template(
    ext = "html",
    whitespace = "minimize",
    source = r##"
{% if let Some(said) = said %}<p class="card said" role="status"><span dir="auto">{{ said }}</span><a class="btn" href="{{ look.link([]) }}">Dismiss</a></p>{% endif %}
{% if let Some(fault) = look.fault %}<p class="card fault" role="alert"><span dir="auto">{{ fault }}</span></p>{% endif %}"##
)]
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
#[template(
    ext = "html",
    source = r##"<section class="card empty"><h1>Nothing is in the log yet</h1>
<p>Here you will see your plans and agents: what waits for you, who does what when, what waits for what, and everything that happened.</p>
<dl><dt>Run a plan</dt><dd><pre>{{ run }}</pre></dd><dt>Connect your agents</dt><dd><pre>{{ init }}</pre></dd></dl>
<p class="sub">The page shows it as soon as it happens.</p></section>"##
)]
struct Empty {
    run: String,
    init: String,
}

/// What would be here, and the commands that make it so.
pub fn empty(look: &Look<'_>) -> Markup {
    Markup::of(&Empty { run: look.command("run plan.md"), init: look.command("init") })
}
