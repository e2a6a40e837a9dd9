//! The content of one address: the views as of its position, its plan, and the parts of the page.

use std::collections::BTreeMap;
use std::sync::Arc;

use crewlog_executors::crew::STANDING_PLAN;
use crewlog_mq::{Error, Position, Query, Range};
use crewlog_planner::lifecycle::States;
use crewlog_planner::plan::TaskId;

use super::asked::{Asked, Tab};
use super::forms::Form;
use super::words::{Markup, clock_of, cut, grouped, link, span};
use super::{Site, crew, events, frame, graph, inspector, lists, needs, time, timeline};
use crate::ui::failure::Failure;
use crate::views::{AsOf, ListedPlan, PlanShown, Track};

/// A part of the page: the id of its place, and its markup, which may be empty.
pub type Part = (&'static str, Markup);

pub struct Rendered {
    pub at: Position,
    pub is_live: bool,
    /// The log time of the position, in microseconds since 1970.
    pub now_us: i64,
    pub title: String,
    pub tab: Tab,
    pub parts: Vec<Part>,
}

/// The input for the parts.
pub struct Look<'a> {
    pub site: &'a Site,
    /// The address, completed with the plan that is shown.
    pub asked: Asked,
    /// The views at the newest position.
    pub head: AsOf,
    /// The views at the position shown.
    pub shown: AsOf,
    pub plans: Vec<ListedPlan>,
    pub plan: Option<Chosen>,
    /// All open plans.
    open: BTreeMap<String, Arc<Track>>,
    /// The reason why the plan of the address cannot be shown.
    pub fault: Option<String>,
}

/// The plan shown.
pub struct Chosen {
    pub id: String,
    pub track: Arc<Track>,
    pub states: States,
    pub shown: PlanShown,
}

impl Chosen {
    /// True if it was created before the position shown.
    pub fn exists(&self) -> bool {
        self.track.view.created_at.is_some()
    }

    pub fn is_open(&self) -> bool {
        !self.track.view.state().phase.is_ended()
    }
}

impl<'a> Look<'a> {
    /// Reads the views that an address needs.
    pub async fn at(site: &'a Site, asked: &Asked) -> Result<Self, Failure> {
        let head = site.views.as_of(None).await?;
        let shown = match asked.number("at") {
            Some(at) => head.earlier(Position(at)).await?,
            None => head.clone(),
        };
        let plans = shown.plans().await?;
        // The newest open plan; the standing plan only if there is no other.
        let is_open = |plan: &&ListedPlan| !plan.status.is_end();
        let is_one = |plan: &&ListedPlan| !plan.waits_for_work && plan.plan != STANDING_PLAN;
        let open = || plans.iter().rev().filter(is_open);
        let newest = open().find(is_one).or_else(|| open().next()).or_else(|| plans.last());
        let newest = newest.map(|plan| plan.plan.clone());
        let open = shown.tracks().await?;
        let beyond = asked.number("at").filter(|at| *at > head.at.0);
        let fault = beyond.map(|at| format!("The log does not reach position {} yet: this is its last.", grouped(at)));
        let mut look = Self { site, asked: asked.clone(), head, shown, plans, plan: None, open, fault };
        if let Some(id) = asked.get("plan").map(str::to_owned).or(newest) {
            look.choose(id).await?;
        }
        Ok(look)
    }

    async fn choose(&mut self, id: String) -> Result<(), Failure> {
        let track = match self.shown.track(&id).await {
            Ok(track) => track,
            Err(error @ Error::Decode { .. }) => {
                self.fault = Some(format!("The plan cannot be read: {error}"));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        if track.view.created_at.is_none() && self.head.track(&id).await?.view.created_at.is_none() {
            self.fault = Some(format!("There is no plan {id}."));
            self.asked = self.asked.but(&[("plan", "")]);
            return Ok(());
        }
        self.asked = self.asked.but(&[("plan", &id)]);
        let states = self.shown.states(&id).await?;
        let shown = PlanShown::of(&id, self.shown.at, &track.view, states.plan.state);
        self.plan = Some(Chosen { id, track, states, shown });
        Ok(())
    }

    pub fn is_past(&self) -> bool {
        self.shown.is_past
    }

    /// The plan, if it existed at the position shown.
    pub fn existing(&self) -> Option<&Chosen> {
        self.plan.as_ref().filter(|plan| plan.exists())
    }

    /// The plan, name and description of a task given as `PLAN/N` or `PLAN/NAME`, of any open plan.
    fn task<'b>(&'b self, task: &'b str) -> Option<(&'b str, String, &'b str)> {
        let (plan, name) = task.rsplit_once('/')?;
        let shown = self.plan.as_ref().filter(|shown| shown.id == plan).map(|shown| &shown.track);
        let state = shown.or_else(|| self.open.get(plan))?.view.state();
        let found = name.parse().ok().and_then(|id| state.task(TaskId(id)));
        let found = found.or_else(|| state.task_named(name))?;
        Some((plan, found.plan.name(), &found.plan.description))
    }

    /// The name of a task in that form, without the plan if it is the one shown.
    pub fn name_of_task(&self, task: &str) -> String {
        match self.task(task) {
            Some((plan, name, _)) if self.asked.is("plan", plan) => cut(&name, 60),
            Some((plan, name, _)) => cut(&format!("{plan}/{name}"), 80),
            None => cut(task, 80),
        }
    }

    /// A link with the name and the description of a task in that form.
    pub fn link_of_task(&self, task: &str) -> Markup {
        let Some((plan, name, description)) = self.task(task) else { return span(&cut(task, 80)) };
        let href = match self.asked.is("plan", plan) {
            true => self.link_task(&name),
            false => self.link_plan(plan, &name),
        };
        link(&href, &cut(&format!("{} {description}", self.name_of_task(task)), 120))
    }

    /// The address of another plan and one of its tasks; no task if `task` is empty.
    pub fn link_plan(&self, plan: &str, task: &str) -> String {
        self.link(&[("plan", plan), ("task", task), ("event", ""), ("step", ""), ("with", "")])
    }

    /// The address of the page with these changes.
    pub fn link(&self, changes: &[(&'static str, &str)]) -> String {
        self.asked.link(changes)
    }

    /// The address of a task in the inspector.
    pub fn link_task(&self, name: &str) -> String {
        self.link(&[("task", name), ("event", "")])
    }

    /// The address of an event in the inspector.
    pub fn link_event(&self, position: Position) -> String {
        self.link(&[("event", &position.to_string()), ("task", "")])
    }

    /// The address of the moment at which an event becomes known.
    pub fn link_mark(&self, position: Position) -> String {
        self.link(&[("mark", &position.to_string()), ("at", "")])
    }

    /// A form for a command that returns here.
    pub fn form(&self, command: &'static str, fields: Vec<(&'static str, String)>) -> Form {
        Form::new(command, fields, self.link(&[]), self.is_past())
    }

    /// A `crewlog` command as a line for a shell.
    pub fn command(&self, words: &str) -> String {
        (self.site.command)(words)
    }

    /// The first position of the append at the position shown.
    pub async fn append_start(&self) -> Result<Position, Error> {
        let page = self.shown.store().read(&Query::all(), Range::up_to(self.shown.at).backwards(), 1).await?;
        Ok(page.events.first().map_or(Position(0), |last| last.append_start))
    }

    /// Renders the parts of the page in order.
    pub async fn render(&self) -> Result<Rendered, Failure> {
        let tab = self.asked.tab();
        let mut parts = vec![("top", frame::top(self)), ("notice", frame::notice(self))];
        if self.head.at == Position(0) {
            parts.push(("empty", frame::empty(self)));
        } else {
            parts.push(("time", time::time(self).await?));
            parts.push(("compare", inspector::compared(self).await?));
            for id in tab.above().iter().chain(tab.left()).chain(tab.right()) {
                parts.push((id, self.part(id).await?));
            }
        }
        let name = self.plan.as_ref().map_or("crewlog", |plan| &plan.id);
        let title = match self.is_past() {
            true => format!("{name} at {} · crewlog", grouped(self.shown.at.0)),
            false => format!("{name} · crewlog"),
        };
        let (at, is_live, now_us) = (self.shown.at, !self.is_past(), self.shown.now.0);
        Ok(Rendered { at, is_live, now_us, title, tab, parts })
    }

    async fn part(&self, id: &'static str) -> Result<Markup, Failure> {
        match id {
            "needs" => needs::needs(self).await,
            "timeline" => timeline::timeline(self).await,
            "graph" => graph::graph(self).await,
            "events" => events::events(self).await,
            "why" => inspector::why(self).await,
            "inspector" => inspector::inspector(self).await,
            "agents" => crew::agents(self).await,
            "files" => crew::files(self).await,
            "edits" => crew::edits(self).await,
            "statistics" => lists::figures(self).await,
            "conflicts" => lists::conflicts(self).await,
            "plans" => Ok(lists::plans(self)),
            _tasks => Ok(lists::tasks(self)),
        }
    }

    /// The position and its time, as text.
    pub fn as_of(&self) -> Markup {
        Markup(format!("as of position {}, {}", grouped(self.shown.at.0), clock_of(self.shown.now)))
    }
}
