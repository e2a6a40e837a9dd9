//! The views and the plan that an address asks for.

use std::collections::BTreeMap;
use std::sync::Arc;

use crewlog_mq::{Error, Position, Query, Range};
use crewlog_planner::lifecycle::States;

use super::asked::{Asked, Tab};
use super::forms::Form;
use super::words::{Markup, cut, escaped, grouped, rich, span};
use crate::context::Session;
use crate::ui::failure::Failure;
use crate::views::{AsOf, ListedPlan, NeedView, PlanShown, Track, ViewedPlan, Views};
use crewlog_executors::crew::similar::similar;
use crewlog_executors::plan_ids::slug_of;

/// The input of the page.
pub struct Site {
    pub views: Arc<Views>,
    pub session: Session,
}

/// The input for the parts.
pub struct Look<'a> {
    pub site: &'a Site,
    pub asked: Asked,
    /// The views at the newest position.
    pub head: AsOf,
    /// The views at the position shown.
    pub shown: AsOf,
    pub plans: Vec<ListedPlan>,
    pub plan: Option<Chosen>,
    /// Everything that waits for the person.
    pub needs: Vec<NeedView>,
    /// All open plans.
    open: BTreeMap<String, Arc<ViewedPlan>>,
    /// The reason why the page cannot be shown as it was asked for.
    pub fault: Option<String>,
}

/// The reason why an address has no page.
pub enum NoPage {
    Failed(Failure),
    /// The log does not have it; with the address and name of its plan, and of those most like it.
    Missing {
        what: String,
        back: Option<(String, String)>,
        near: Vec<(String, String)>,
    },
}

impl From<Failure> for NoPage {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Error> for NoPage {
    fn from(error: Error) -> Self {
        Self::Failed(error.into())
    }
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
        !self.states.plan.state.is_end()
    }
}

impl<'a> Look<'a> {
    /// Reads the views that an address needs.
    ///
    /// # Errors
    /// A plan or a task that the log does not have, and a fault of the log.
    pub async fn at(site: &'a Site, asked: &Asked) -> Result<Self, NoPage> {
        let head = site.views.as_of(None).await?;
        let shown = match asked.number("at") {
            Some(at) => head.earlier(Position(at)).await?,
            None => head.clone(),
        };
        let plans = shown.plans().await?;
        let open = shown.open().await?;
        let needs = shown.needs(|words| site.session.command(words)).await?;
        let beyond = asked.number("at").filter(|at| *at > head.at.0);
        let fault = beyond.map(|at| format!("The log does not reach position {} yet: this is its last.", grouped(at)));
        let mut look = Self { site, asked: asked.clone(), head, shown, plans, plan: None, needs, open, fault };
        if let Some(id) = asked.get("plan") {
            look.choose(id.to_owned()).await?;
        }
        Ok(look)
    }

    async fn choose(&mut self, id: String) -> Result<(), NoPage> {
        let track = match self.shown.track(&id).await {
            Ok(track) => track,
            Err(error @ Error::Decode { .. }) => {
                self.fault = Some(format!("The plan cannot be read: {error}"));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let newest = self.head.track(&id).await?;
        if newest.view.created_at.is_none() {
            return Err(self.no_plan(&id));
        }
        if let Some(task) = self.asked.get("task").filter(|task| newest.view.state().task_named(task).is_none()) {
            return Err(self.no_task(&id, task, &newest));
        }
        let states = self.shown.states(&id).await?;
        let shown = PlanShown::of(&id, self.shown.at, &track.view, &states);
        let shown = self.shown.with_outputs(shown, &track.view);
        self.plan = Some(Chosen { id, track, states, shown });
        Ok(())
    }

    fn no_plan(&self, id: &str) -> NoPage {
        let ids = self.plans.iter().rev().map(|plan| plan.plan.as_str());
        let page = |plan: &str| (self.link_plan(plan, ""), plan.to_owned());
        let what = format!("There is no plan {}", cut(id, 80));
        NoPage::Missing { what, back: None, near: similar(id, ids).into_iter().map(page).collect() }
    }

    fn no_task(&self, plan: &str, name: &str, track: &Track) -> NoPage {
        let tasks: Vec<_> =
            track.view.state().tasks.iter().map(|task| (task.plan.name(), &task.plan.description)).collect();
        let page = |task: &str| {
            let text = tasks.iter().find(|(known, _)| known == task).map_or("", |(_, text)| text);
            (self.link_plan(plan, task), cut(&format!("{task} {text}"), 120))
        };
        let near = similar(name, tasks.iter().map(|(task, _)| task.as_str())).into_iter().map(page).collect();
        let back = Some((self.link_plan(plan, ""), format!("Open {}", self.short(plan))));
        NoPage::Missing { what: format!("{} has no task {}", self.short(plan), cut(name, 80)), back, near }
    }

    pub fn is_past(&self) -> bool {
        self.shown.is_past
    }

    /// The plan, if it existed at the position shown.
    pub fn existing(&self) -> Option<&Chosen> {
        self.plan.as_ref().filter(|plan| plan.exists())
    }

    /// The plan, name and description of a task given as `PLAN/NAME`.
    fn task<'b>(&'b self, task: &'b str) -> Option<(&'b str, String, &'b str)> {
        // The id of a plan has no slash; a label may have one.
        let (plan, name) = task.split_once('/')?;
        let shown = self.plan.as_ref().filter(|shown| shown.id == plan).map(|shown| &shown.track.view);
        let found = shown.or_else(|| Some(&self.open.get(plan)?.view))?.state().task_named(name)?;
        Some((plan, found.plan.name(), &found.plan.description))
    }

    /// The name of a task in that form, without the plan if it is the one shown.
    pub fn name_of_task(&self, task: &str) -> String {
        match self.task(task) {
            Some((plan, name, _)) if self.asked.is("plan", plan) => cut(&name, 60),
            Some((plan, name, _)) => cut(&format!("{}/{name}", self.short(plan)), 80),
            None => cut(task, 80),
        }
    }

    /// A link with the name and the description of a task in that form.
    pub fn link_of_task(&self, task: &str) -> Markup {
        let Some((plan, name, description)) = self.task(task) else { return span(&cut(task, 80)) };
        let text = rich(&format!("{} {description}", self.name_of_task(task)), 120);
        Markup(format!("<a href=\"{}\"><bdi>{text}</bdi></a>", escaped(&self.link_plan(plan, &name))))
    }

    /// The id of a plan without its random end, unless another plan would have the same.
    pub fn short<'b>(&'b self, id: &'b str) -> &'b str {
        let stem = slug_of(id);
        if self.plans.iter().filter(|plan| slug_of(&plan.plan) == stem).count() > 1 { id } else { stem }
    }

    /// The address of a plan and one of its tasks; no task if `task` is empty.
    pub fn link_plan(&self, plan: &str, task: &str) -> String {
        self.asked.page(plan, Tab::Overview).link(&[("task", task)])
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
        let event = [("event", &*position.to_string()), ("task", "")];
        match &self.plan {
            None if self.asked.tab() != Tab::Events => self.asked.page("", Tab::Events).link(&event),
            _has_inspector => self.link(&event),
        }
    }

    /// The address of the moment at which an event becomes known.
    pub fn link_mark(&self, position: Position) -> String {
        self.link(&[("mark", &position.to_string()), ("at", "")])
    }

    /// A form for a command that returns here.
    pub fn form(&self, command: &str, fields: Vec<(&str, String)>) -> Form {
        self.form_of(command, fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    pub fn form_of(&self, command: &str, fields: Vec<(String, String)>) -> Form {
        Form::new(command, fields, self.link(&[]), self.is_past())
    }

    /// A `crewlog` command as a line for a shell.
    pub fn command(&self, words: &str) -> String {
        self.site.session.command(words)
    }

    /// The first position of the append at the position shown.
    pub async fn append_start(&self) -> Result<Position, Error> {
        let page = self.shown.store().read(&Query::all(), Range::up_to(self.shown.at).backwards(), 1).await?;
        Ok(page.events.first().map_or(Position(0), |last| last.append_start))
    }
}
