//! The views over HTTP. `at` gives each as of a position of the log; what was will not change, so it may be cached for ever.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Path, Query, State};
use axum::http::header::CACHE_CONTROL;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use crewlog_executors::crew::TaskSummary;
use crewlog_mq::{Position, Query as Which, Range, Recorded};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Api;
use super::access::{Caller, Scope};
use super::problem::Problem;
use crate::cli::Cli;
use crate::failure::{Code, Failure};
use crate::queries::find_plan;
use crate::session::Remote;
use crate::views::{
    AgentView, AsOf, ConflictView, CountsView, EventDetail, EventFilter, FilesView, LeaseView, Listed, ListedPlan,
    Mark, MessageView, NeedView, PlanGraph, PlanShown, ProjectFigures, Timeline, WhyView,
};

/// The most events or messages of a page.
const PAGE_MAX: usize = 500;
/// The most points of the counts over time.
const POINTS_MAX: usize = 1_000;
const FOR_EVER: &str = "private, max-age=31536000, immutable";

/// The query of a request. Unknown and wrong parameters are named.
pub struct Params<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let read = Query::<T>::try_from_uri(&parts.uri);
        read.map(|Query(params)| Self(params))
            .map_err(|rejection: QueryRejection| Problem::invalid(rejection.body_text()))
    }
}

/// A view, with how long it may be cached.
pub struct View<T>(T, bool);

impl<T: Serialize> IntoResponse for View<T> {
    fn into_response(self) -> Response {
        let mut response = Json(self.0).into_response();
        if self.1 {
            response.headers_mut().insert(CACHE_CONTROL, axum::http::HeaderValue::from_static(FOR_EVER));
        }
        response
    }
}

type Answer<T> = Result<View<T>, Problem>;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct At {
    /// As of this position of the log; now if left out
    at: Option<u64>,
}

impl Api {
    async fn as_of(&self, caller: &Caller, at: Option<u64>) -> Result<AsOf, Problem> {
        caller.check(Scope::Read)?;
        Ok(self.views.as_of(at.map(position)).await?)
    }

    /// What a command of the command line prints as JSON.
    async fn printed(&self, caller: &Caller, words: &[&str]) -> Answer<Value> {
        use clap::Parser;
        caller.check(Scope::Read)?;
        let words = ["crewlog"].iter().chain(words);
        let cli = Cli::try_parse_from(words).map_err(|error| Problem::invalid(error.kind().to_string()))?;
        let (crew, name) = (self.crew.clone(), caller.name());
        let remote = Remote { crew, name, is_person: false, input: None, reply: Default::default() };
        let session = self.session.of_remote(remote, false);
        crate::carry_out(&session, cli.command).await?;
        let printed = serde_json::from_slice(&session.reply().result).map_err(Failure::from)?;
        Ok(View(printed, false))
    }
}

/// A position that was sent.
pub fn position(sent: u64) -> Position {
    Position(i64::try_from(sent).unwrap_or(i64::MAX))
}

fn view<T>(as_of: &AsOf, form: T) -> Answer<T> {
    Ok(View(form, as_of.is_past))
}

fn listed<T>(as_of: &AsOf, items: Vec<T>) -> Answer<Listed<T>> {
    view(as_of, Listed { at: as_of.at, items })
}

/// All plans of the log, the oldest first.
#[utoipa::path(get, path = "/api/plans", params(At), responses((status = 200, body = Listed<ListedPlan>)))]
async fn plans(
    State(api): State<Arc<Api>>,
    caller: Caller,
    Params(At { at }): Params<At>,
) -> Answer<Listed<ListedPlan>> {
    let as_of = api.as_of(&caller, at).await?;
    listed(&as_of, as_of.plans().await?)
}

/// A plan with its tasks and questions.
#[utoipa::path(get, path = "/api/plans/{plan}", params(("plan" = String, Path), At), responses((status = 200, body = PlanShown)))]
async fn plan(
    State(api): State<Arc<Api>>,
    caller: Caller,
    Path(plan): Path<String>,
    Params(At { at }): Params<At>,
) -> Answer<PlanShown> {
    let as_of = api.as_of(&caller, at).await?;
    let plan = find_plan(as_of.store(), &plan).await?;
    view(&as_of, as_of.plan(&plan).await?)
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct InLanes {
    /// As of this position of the log; now if left out
    at: Option<u64>,
    /// Whether there is a lane for each task, and not for each executor
    #[serde(default)]
    by_task: bool,
}

/// When the tasks of a plan were in which stage.
#[utoipa::path(get, path = "/api/plans/{plan}/timeline", params(("plan" = String, Path), InLanes), responses((status = 200, body = Timeline)))]
async fn timeline(
    State(api): State<Arc<Api>>,
    caller: Caller,
    Path(plan): Path<String>,
    Params(InLanes { at, by_task }): Params<InLanes>,
) -> Answer<Timeline> {
    let as_of = api.as_of(&caller, at).await?;
    let plan = find_plan(as_of.store(), &plan).await?;
    view(&as_of, as_of.timeline(&plan, by_task).await?)
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Opened {
    /// As of this position of the log; now if left out
    at: Option<u64>,
    /// Of a plan with more than 200 tasks: the step whose tasks are shown one by one, from 0
    step: Option<usize>,
}

/// What waits for what in a plan.
#[utoipa::path(get, path = "/api/plans/{plan}/graph", params(("plan" = String, Path), Opened), responses((status = 200, body = PlanGraph)))]
async fn graph(
    State(api): State<Arc<Api>>,
    caller: Caller,
    Path(plan): Path<String>,
    Params(Opened { at, step }): Params<Opened>,
) -> Answer<PlanGraph> {
    let as_of = api.as_of(&caller, at).await?;
    let plan = find_plan(as_of.store(), &plan).await?;
    view(&as_of, as_of.graph(&plan, step).await?)
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Points {
    /// As of this position of the log; now if left out
    at: Option<u64>,
    /// At how many positions, evenly spaced over the log: 100 if left out, at most 1000
    points: Option<usize>,
}

/// How many tasks of a plan were in each stage over the log.
#[utoipa::path(get, path = "/api/plans/{plan}/counts", params(("plan" = String, Path), Points), responses((status = 200, body = CountsView)))]
async fn counts(
    State(api): State<Arc<Api>>,
    caller: Caller,
    Path(plan): Path<String>,
    Params(Points { at, points }): Params<Points>,
) -> Answer<CountsView> {
    let as_of = api.as_of(&caller, at).await?;
    let plan = find_plan(as_of.store(), &plan).await?;
    view(&as_of, as_of.counts(&plan, points.unwrap_or(100).clamp(1, POINTS_MAX)).await?)
}

/// Why nothing of a plan is running, or what is.
#[utoipa::path(get, path = "/api/plans/{plan}/why", params(("plan" = String, Path), At), responses((status = 200, body = WhyView)))]
async fn why_plan(
    State(api): State<Arc<Api>>,
    caller: Caller,
    Path(plan): Path<String>,
    Params(At { at }): Params<At>,
) -> Answer<WhyView> {
    let as_of = api.as_of(&caller, at).await?;
    let plan = find_plan(as_of.store(), &plan).await?;
    view(&as_of, as_of.why_plan(&plan).await?)
}

/// The checkpoints of a plan.
#[utoipa::path(get, path = "/api/plans/{plan}/checkpoints", params(("plan" = String, Path)), responses((status = 200, body = Object)))]
async fn checkpoints(State(api): State<Arc<Api>>, caller: Caller, Path(plan): Path<String>) -> Answer<Value> {
    api.printed(&caller, &["checkpoints", "--", &plan]).await
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Prompted {
    /// The task, by number or label
    task: String,
    /// The attempt; the last if left out
    attempt: Option<u32>,
}

/// The prompt that the agent of a task gets.
#[utoipa::path(get, path = "/api/plans/{plan}/prompt", params(("plan" = String, Path), Prompted), responses((status = 200, body = Object)))]
async fn prompt(
    State(api): State<Arc<Api>>,
    caller: Caller,
    Path(plan): Path<String>,
    Params(Prompted { task, attempt }): Params<Prompted>,
) -> Answer<Value> {
    let attempt = attempt.map(|attempt| format!("--attempt={attempt}"));
    let mut words = vec!["show", "--prompt"];
    words.extend(attempt.as_deref());
    words.extend(["--", &plan, &task]);
    api.printed(&caller, &words).await
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Pair {
    /// A plan, with @POSITION or @CHECKPOINT if not as of now
    before: String,
    /// The same after it
    after: String,
}

/// What differs between two plans, or between two positions of one.
#[utoipa::path(get, path = "/api/diff", params(Pair), responses((status = 200, body = Object)))]
async fn diff(
    State(api): State<Arc<Api>>,
    caller: Caller,
    Params(Pair { before, after }): Params<Pair>,
) -> Answer<Value> {
    api.printed(&caller, &["diff", "--", &before, &after]).await
}

/// Where two plans of one history part, and the outcome of each.
#[utoipa::path(get, path = "/api/compare", params(Pair), responses((status = 200, body = Object)))]
async fn compare(
    State(api): State<Arc<Api>>,
    caller: Caller,
    Params(Pair { before, after }): Params<Pair>,
) -> Answer<Value> {
    api.printed(&caller, &["compare", "--", &before, &after]).await
}

/// What waits for the person.
#[utoipa::path(get, path = "/api/needs", params(At), responses((status = 200, body = Listed<NeedView>)))]
async fn needs(State(api): State<Arc<Api>>, caller: Caller, Params(At { at }): Params<At>) -> Answer<Listed<NeedView>> {
    let as_of = api.as_of(&caller, at).await?;
    listed(&as_of, as_of.needs(|words| api.session.command(words)).await?)
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct All {
    /// As of this position of the log; now if left out
    at: Option<u64>,
    /// Also agents that have left, and conflicts that are resolved
    #[serde(default)]
    all: bool,
}

/// The agents of the project.
#[utoipa::path(get, path = "/api/agents", params(All), responses((status = 200, body = Listed<AgentView>)))]
async fn agents(
    State(api): State<Arc<Api>>,
    caller: Caller,
    Params(All { at, all }): Params<All>,
) -> Answer<Listed<AgentView>> {
    let as_of = api.as_of(&caller, at).await?;
    listed(&as_of, as_of.agents(all).await?)
}

/// The leases on files, and the requests that wait for one.
#[utoipa::path(get, path = "/api/leases", params(At), responses((status = 200, body = Listed<LeaseView>)))]
async fn leases(
    State(api): State<Arc<Api>>,
    caller: Caller,
    Params(At { at }): Params<At>,
) -> Answer<Listed<LeaseView>> {
    let as_of = api.as_of(&caller, at).await?;
    listed(&as_of, as_of.leases(|_, _, _| true).await?)
}

/// The tasks of the open plans that agents can work on.
#[utoipa::path(get, path = "/api/tasks", params(At), responses((status = 200, body = Object)))]
async fn tasks(State(api): State<Arc<Api>>, caller: Caller, Params(At { at }): Params<At>) -> Answer<Value> {
    let as_of = api.as_of(&caller, at).await?;
    let tasks: Vec<TaskSummary> = as_of.tasks().await?;
    view(&as_of, json!({ "at": as_of.at, "items": tasks }))
}

/// Who works in which directory, and the edits that leases did not cover.
#[utoipa::path(get, path = "/api/files", params(At), responses((status = 200, body = FilesView)))]
async fn files(State(api): State<Arc<Api>>, caller: Caller, Params(At { at }): Params<At>) -> Answer<FilesView> {
    let as_of = api.as_of(&caller, at).await?;
    view(&as_of, as_of.files().await?)
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Mailbox {
    /// As of this position of the log; now if left out
    at: Option<u64>,
    /// The agent that they are to
    agent: String,
    /// Also those that are read
    #[serde(default)]
    all: bool,
    /// After this message
    #[serde(default)]
    after: u64,
    /// 100 if left out, at most 500
    limit: Option<usize>,
}

/// A page of a list by position.
#[derive(Debug, Serialize, ToSchema)]
struct Paged<T> {
    #[schema(value_type = i64)]
    at: Position,
    items: Vec<T>,
    /// What to give as `after` for the next page; null at the end.
    next: Option<i64>,
}

/// The messages to an agent, the oldest first.
#[utoipa::path(get, path = "/api/messages", params(Mailbox), responses((status = 200, body = Paged<MessageView>)))]
async fn messages(
    State(api): State<Arc<Api>>,
    caller: Caller,
    Params(of): Params<Mailbox>,
) -> Answer<Paged<MessageView>> {
    let as_of = api.as_of(&caller, of.at).await?;
    if !as_of.has_agent(&of.agent).await? {
        return Err(Failure::new(Code::Nothing, format!("there is no agent {:?}", of.agent)).into());
    }
    let limit = of.limit.unwrap_or(100).clamp(1, PAGE_MAX);
    let (items, more) = as_of.messages(&of.agent, !of.all, position(of.after), limit).await.map_err(Failure::from)?;
    let next = items.last().filter(|_| more).map(|last| last.message.0);
    view(&as_of, Paged { at: as_of.at, items, next })
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct OfPlan {
    /// As of this position of the log; now if left out
    at: Option<u64>,
    /// Only those of this plan
    plan: Option<String>,
    /// Also those that are resolved
    #[serde(default)]
    all: bool,
}

/// Tasks that are held at the same time and touch the same files.
#[utoipa::path(get, path = "/api/conflicts", params(OfPlan), responses((status = 200, body = Listed<ConflictView>)))]
async fn conflicts(
    State(api): State<Arc<Api>>,
    caller: Caller,
    Params(of): Params<OfPlan>,
) -> Answer<Listed<ConflictView>> {
    let as_of = api.as_of(&caller, of.at).await?;
    let plan = match of.plan {
        Some(plan) => Some(find_plan(as_of.store(), &plan).await?),
        None => None,
    };
    listed(&as_of, as_of.conflicts(plan.as_deref(), of.all).await?)
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct OfProject {
    /// As of this position of the log; now if left out
    at: Option<u64>,
    /// Only this project; zeros when it has no plans
    project: Option<String>,
}

/// The statistics of each project.
#[utoipa::path(get, path = "/api/statistics", params(OfProject), responses((status = 200, body = Listed<ProjectFigures>)))]
async fn statistics(
    State(api): State<Arc<Api>>,
    caller: Caller,
    Params(OfProject { at, project }): Params<OfProject>,
) -> Answer<Listed<ProjectFigures>> {
    let as_of = api.as_of(&caller, at).await?;
    listed(&as_of, as_of.statistics(project).await?)
}

/// Failures, conflicts, questions and checkpoints over the log.
#[utoipa::path(get, path = "/api/marks", params(At), responses((status = 200, body = Listed<Mark>)))]
async fn marks(State(api): State<Arc<Api>>, caller: Caller, Params(At { at }): Params<At>) -> Answer<Listed<Mark>> {
    let as_of = api.as_of(&caller, at).await?;
    listed(&as_of, as_of.marks().await?)
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct What {
    /// As of this position of the log; now if left out
    at: Option<u64>,
    /// The name of an agent, PLAN/TASK, or a path
    what: String,
}

/// What is known about an agent, a task or a file.
#[utoipa::path(get, path = "/api/why", params(What), responses((status = 200, body = Object)))]
async fn why(State(api): State<Arc<Api>>, caller: Caller, Params(What { at, what }): Params<What>) -> Answer<Value> {
    let as_of = api.as_of(&caller, at).await?;
    if let Some(known) = as_of.why(&what, |words| api.session.command(words)).await? {
        return view(&as_of, known);
    }
    let target = crate::crew::verbs::target(&api.session, &what)?;
    let (known, is_used) = as_of.why_file(&target).await?;
    match is_used {
        true => view(&as_of, known),
        false => {
            Err(Failure::new(Code::Nothing, format!("nothing is known about an agent, task or file {what}")).into())
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EventsOf {
    /// As of this position of the log; now if left out
    at: Option<u64>,
    /// After this position; before it with `reverse`
    pub after: Option<u64>,
    /// 100 if left out, at most 500
    limit: Option<usize>,
    /// The newest first
    #[serde(default)]
    reverse: bool,
    /// Of this plan and its tasks
    pub plan: Option<String>,
    /// Of this stream
    pub stream: Option<String>,
    /// Of this aggregate
    pub aggregate: Option<String>,
    /// Of this type
    #[serde(rename = "type")]
    pub event_type: Option<String>,
    /// With this tag
    pub tag: Option<String>,
}

impl EventsOf {
    pub fn filter(&self) -> EventFilter {
        let query = Which {
            stream_id: self.stream.clone().unwrap_or_default(),
            aggregate_id: self.aggregate.clone(),
            event_type: self.event_type.clone(),
            tags: self.tag.iter().cloned().collect(),
            ..Which::default()
        };
        EventFilter { plan: self.plan.clone(), query }
    }
}

/// An event, as `crewlog events` prints it.
pub fn event_json(recorded: &Recorded) -> Result<Value, Problem> {
    let json = crate::json::EventJson::of(recorded).and_then(|json| serde_json::to_value(&json));
    json.map_err(|error| Failure::from(error).into())
}

/// Events of the log.
#[utoipa::path(get, path = "/api/events", params(EventsOf), responses((status = 200, body = Paged<Object>)))]
async fn events(State(api): State<Arc<Api>>, caller: Caller, Params(of): Params<EventsOf>) -> Answer<Paged<Value>> {
    let as_of = api.as_of(&caller, of.at).await?;
    let limit = of.limit.unwrap_or(100).clamp(1, PAGE_MAX);
    let range = match (of.reverse, of.after) {
        (false, after) => Range::after(position(after.unwrap_or(0))),
        (true, None) => Range::default().backwards(),
        (true, Some(after)) => Range::up_to(position(after.saturating_sub(1))).backwards(),
    };
    let page = as_of.events(&of.filter(), range, limit).await?;
    let next = page.events.last().filter(|_| page.more).map(|last| last.position.0);
    let items = page.events.iter().map(event_json).collect::<Result<_, _>>()?;
    view(&as_of, Paged { at: as_of.at, items, next })
}

/// An event with its causes and effects.
#[utoipa::path(get, path = "/api/events/{position}", params(("position" = i64, Path), At), responses((status = 200, body = EventDetail)))]
async fn event(
    State(api): State<Arc<Api>>,
    caller: Caller,
    position: Result<Path<i64>, axum::extract::rejection::PathRejection>,
    Params(At { at }): Params<At>,
) -> Answer<EventDetail> {
    let Path(position) = position.map_err(|rejection| Problem::invalid(rejection.body_text()))?;
    let as_of = api.as_of(&caller, at).await?;
    view(&as_of, as_of.event(Position(position)).await?)
}

/// The routes of the views.
pub fn routes() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::new()
        .routes(routes!(plans))
        .routes(routes!(plan))
        .routes(routes!(timeline))
        .routes(routes!(graph))
        .routes(routes!(counts))
        .routes(routes!(why_plan))
        .routes(routes!(checkpoints))
        .routes(routes!(prompt))
        .routes(routes!(diff))
        .routes(routes!(compare))
        .routes(routes!(needs))
        .routes(routes!(agents))
        .routes(routes!(leases))
        .routes(routes!(tasks))
        .routes(routes!(files))
        .routes(routes!(messages))
        .routes(routes!(conflicts))
        .routes(routes!(statistics))
        .routes(routes!(marks))
        .routes(routes!(why))
        .routes(routes!(events))
        .routes(routes!(event))
}
