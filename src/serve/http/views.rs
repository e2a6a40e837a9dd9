//! The views over HTTP. `at` selects a position of the log; the past does not change, so it may be cached forever.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Path, Query, State};
use axum::http::header::CACHE_CONTROL;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use crewlog_executors::crew::Crew;
use crewlog_executors::exports::EventJson;
use crewlog_mq::{EventStore, Position, Query as Which, Range, Recorded};
use crewlog_planner::event::plan_tag;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::access::{Caller, Credentials, Scope};
use super::problem::Problem;
use crate::cli::typed::{Address, PlanAt};
use crate::commands::plan::{self, Checkpoint};
use crate::commands::{Show, diff, show};
use crate::context::Session;
use crate::serve::page::Site;
use crate::ui::failure::{Code, Failure};
use crate::views::names::{Choice, find_plan};
use crate::views::{
    AgentView, AsOf, ConflictView, CountsView, EventDetail, FilesView, LeaseView, Listed, ListedPlan, Mark,
    MessageView, NeedView, PlanGraph, PlanShown, ProjectFigures, Timeline, Views, WhyView,
};

/// The most events or messages of a page.
const PAGE_MAX: usize = 500;
/// The most points of the counts over time.
const POINTS_MAX: usize = 1_000;
const FOR_EVER: &str = "private, max-age=31536000, immutable";

/// The query of a request. Errors name unknown and wrong parameters.
pub struct Params<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let read = Query::<T>::try_from_uri(&parts.uri);
        read.map(|Query(params)| Self(params)).map_err(|rejection: QueryRejection| {
            Problem::invalid(rejection.body_text().replace("Failed to deserialize query string: ", ""))
        })
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

/// State shared by the handlers of `/api`.
pub struct Api {
    pub session: Session,
    pub crew: Arc<Crew>,
    pub views: Arc<Views>,
    pub site: Arc<Site>,
    pub streams: Arc<Semaphore>,
    pub credentials: Arc<Credentials>,
}

impl Api {
    async fn as_of(&self, caller: &Caller, at: Option<u64>) -> Result<AsOf, Problem> {
        caller.check(Scope::Read)?;
        Ok(self.views.as_of(at.map(position).transpose()?).await?)
    }

    /// The id of the plan that a name means.
    async fn full_id(&self, store: &EventStore, typed: Option<String>) -> Result<Option<String>, Problem> {
        match typed {
            Some(typed) => Ok(Some(find_plan(&self.session, store, &typed, Choice::Viewed).await?)),
            None => Ok(None),
        }
    }

    /// The JSON that a command of the command line prints.
    async fn printed(
        &self,
        caller: &Caller,
        print: impl AsyncFnOnce(&Session) -> Result<Code, Failure>,
    ) -> Answer<Value> {
        caller.check(Scope::Read)?;
        let session = self.session.of_remote(self.crew.clone(), caller.by(&self.session), false);
        print(&session).await?;
        Ok(View(session.reply().result, false))
    }
}

/// Converts a position from a request.
pub fn position(sent: u64) -> Result<Position, Problem> {
    let position = i64::try_from(sent).map(Position);
    position.map_err(|_| Problem::invalid(format!("a position is at most {}", i64::MAX)))
}

fn listed<T>(as_of: &AsOf, items: Vec<T>) -> Listed<T> {
    Listed { at: as_of.at, items }
}

/// A JSON object without its own type.
type Object = Value;

/// A router of these views.
macro_rules! routes_of {
    ($routes:ident: $($name:ident)+) => {
        fn $routes() -> OpenApiRouter<Arc<Api>> {
            OpenApiRouter::new()$(.routes(routes!($name)))+
        }
    };
}

/// A view's route: its address, its parameters, its type, and an expression that computes it.
macro_rules! views {
    ($routes:ident: $($(#[$doc:meta])* $name:ident $path:literal, $params:ident => [$($form:tt)+], |$api:ident, $as_of:ident, $query:ident $(, $is_fixed:ident)?| $made:expr;)+) => {$(
        $(#[$doc])*
        #[utoipa::path(get, path = $path, params($params), responses((status = 200, body = $($form)+)))]
        async fn $name(State($api): State<Arc<Api>>, Extension(caller): Extension<Caller>, Params($query): Params<$params>) -> Answer<$($form)+> {
            let $as_of = $api.as_of(&caller, $query.at).await?;
            $(let mut $is_fixed = $as_of.is_past;)?
            Ok(View($made, $as_of.is_past $(&& $is_fixed)?))
        }
    )+
        routes_of!($routes: $($name)+);
    };
}

/// A view of a plan, whose id is part of the address.
macro_rules! views_of_plan {
    ($routes:ident: $($(#[$doc:meta])* $name:ident $path:literal, $params:ident => [$($form:tt)+], |$as_of:ident, $plan:ident, $query:ident| $made:expr;)+) => {$(
        $(#[$doc])*
        #[utoipa::path(get, path = $path, params(("plan" = String, Path), $params), responses((status = 200, body = $($form)+)))]
        async fn $name(
            State(api): State<Arc<Api>>,
            Extension(caller): Extension<Caller>,
            Path(plan): Path<String>,
            Params($query): Params<$params>,
        ) -> Answer<$($form)+> {
            let $as_of = api.as_of(&caller, $query.at).await?;
            let $plan = find_plan(&api.session, $as_of.store(), &plan, Choice::Viewed).await?;
            // The plan that an abbreviated id means may change.
            let is_fixed = $as_of.is_past && plan == $plan;
            Ok(View($made, is_fixed))
        }
    )+
        routes_of!($routes: $($name)+);
    };
}

/// The JSON that a command of the command line prints.
macro_rules! printed {
    ($routes:ident: $($(#[$doc:meta])* $name:ident $path:literal, ($($in_path:literal)?) $params:ident, |$session:ident, $query:ident $(, $plan:ident)?| $printed:expr;)+) => {$(
        $(#[$doc])*
        #[utoipa::path(get, path = $path, params($(($in_path = String, Path),)? $params), responses((status = 200, body = Object)))]
        async fn $name(State(api): State<Arc<Api>>, Extension(caller): Extension<Caller>, $(Path($plan): Path<String>,)? Params($query): Params<$params>) -> Answer<Value> {
            api.printed(&caller, async |$session| $printed).await
        }
    )+
        routes_of!($routes: $($name)+);
    };
}

/// The parameters of views, as one type per set.
macro_rules! params {
    ($($name:ident $([$at:ident])? { $($(#[$attribute:meta])* $field:ident: $form:ty,)* })+) => {$(
        #[derive(Debug, Deserialize, IntoParams)]
        #[serde(deny_unknown_fields)]
        #[into_params(parameter_in = Query)]
        pub struct $name {
            $(
                /// As of this position of the log; now if left out
                $at: Option<u64>,
            )?
            $($(#[$attribute])* pub $field: $form,)*
        }
    )+};
}

params! {
    At [at] {}
    Nothing {}
    InLanes [at] {
        /// True for a lane for each task instead of each executor
        #[serde(default)]
        by_task: bool,
    }
    Opened [at] {
        /// Of a plan with more than 200 tasks: the step whose tasks are shown one by one, from 0
        step: Option<usize>,
    }
    Points [at] {
        /// At how many positions, evenly spaced over the log: 100 if left out, at most 1000
        points: Option<usize>,
    }
    All [at] {
        /// Also agents that have left
        #[serde(default)]
        all: bool,
    }
    OfPlan [at] {
        /// Only those of this plan
        plan: Option<String>,
        /// Also those that are resolved
        #[serde(default)]
        all: bool,
    }
    OfProject [at] {
        /// Only this project; zeros when it has no plans
        project: Option<String>,
    }
    What [at] {
        /// The name of an agent, PLAN/TASK, or a path
        what: String,
    }
    Mailbox [at] {
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
    Prompted {
        /// The task, by number or label
        task: String,
        /// The attempt; the last if left out
        attempt: Option<u32>,
    }
    Pair {
        /// A plan, with @POSITION or @CHECKPOINT if not as of now
        before: String,
        /// The same after it
        after: String,
    }
}

views! {
    of_log:
    /// All plans of the log, the oldest first.
    plans "/api/plans", At => [Listed<ListedPlan>], |api, as_of, query| listed(&as_of, as_of.plans().await?);
    /// Everything that waits for the person.
    needs "/api/needs", At => [Listed<NeedView>], |api, as_of, query| {
        listed(&as_of, as_of.needs(|words| api.session.command(words)).await?)
    };
    /// The agents of the project.
    agents "/api/agents", All => [Listed<AgentView>], |api, as_of, query| listed(&as_of, as_of.agents(query.all).await?);
    /// The leases on files, and the requests that wait for one.
    leases "/api/leases", At => [Listed<LeaseView>], |api, as_of, query| {
        listed(&as_of, as_of.leases(|_| true).await?)
    };
    /// The tasks of the open plans that agents can work on.
    tasks "/api/tasks", At => [Object], |api, as_of, query| json!({ "at": as_of.at, "items": as_of.tasks().await? });
    /// Agents by directory, and the edits that leases did not cover.
    files "/api/files", At => [FilesView], |api, as_of, query| as_of.files().await?;
    /// Tasks that are held at the same time and touch the same files.
    conflicts "/api/conflicts", OfPlan => [Listed<ConflictView>], |api, as_of, query, is_fixed| {
        let plan = api.full_id(as_of.store(), query.plan.clone()).await?;
        is_fixed &= plan == query.plan;
        listed(&as_of, as_of.conflicts(plan.as_deref(), query.all).await?)
    };
    /// The statistics of each project.
    statistics "/api/statistics", OfProject => [Listed<ProjectFigures>], |api, as_of, query| {
        listed(&as_of, as_of.statistics(query.project).await?)
    };
    /// Failures, conflicts, questions and checkpoints over the log.
    marks "/api/marks", At => [Listed<Mark>], |api, as_of, query| listed(&as_of, as_of.marks().await?);
    /// Facts about an agent, a task or a file.
    why "/api/why", What => [Object], |api, as_of, query, is_fixed| {
        let known = as_of.why(&query.what, |words| api.session.command(words)).await?;
        // A path may become a part of a plan id tomorrow.
        let name = known.as_ref().and_then(|known| known["agent"].as_str().or(known["task"].as_str()).or(known["plan"].as_str()));
        is_fixed &= name == Some(&query.what);
        match known {
            Some(known) => known,
            None => why_file(&api, &as_of, &query.what).await?,
        }
    };
    /// The messages to an agent, the oldest first.
    messages "/api/messages", Mailbox => [Paged<MessageView>], |api, as_of, query| {
        as_of.check_agent(&query.agent).await?;
        let limit = query.limit.unwrap_or(100).clamp(1, PAGE_MAX);
        let messages = as_of.messages(&query.agent, !query.all, position(query.after)?, limit).await;
        let (items, more) = messages.map_err(Failure::from)?;
        let next = items.last().filter(|_| more).map(|last| last.message.0);
        Paged { at: as_of.at, items, next }
    };
    /// Events of the log.
    events "/api/events", EventsOf => [Paged<Object>], |api, as_of, query, is_fixed| {
        let limit = query.limit.unwrap_or(100).clamp(1, PAGE_MAX);
        let range = match (query.reverse, query.after) {
            (false, after) => Range::after(position(after.unwrap_or(0))?),
            (true, None) => Range::default().backwards(),
            (true, Some(after)) => Range::up_to(position(after.saturating_sub(1))?).backwards(),
        };
        let (query, is_whole_id) = query.query(&api).await?;
        is_fixed &= is_whole_id;
        let page = as_of.events(&query, range, limit).await?;
        let next = page.events.last().filter(|_| page.more).map(|last| last.position.0);
        let items = page.events.iter().map(event_json).collect::<Result<_, _>>()?;
        Paged { at: as_of.at, items, next }
    };
}

views_of_plan! {
    of_plan:
    /// A plan with its tasks and questions.
    plan "/api/plans/{plan}", At => [PlanShown], |as_of, plan, query| as_of.plan(&plan).await?;
    /// The stages of a plan's tasks over time.
    timeline "/api/plans/{plan}/timeline", InLanes => [Timeline], |as_of, plan, query| {
        as_of.timeline(&plan, query.by_task).await?
    };
    /// The dependencies of a plan.
    graph "/api/plans/{plan}/graph", Opened => [PlanGraph], |as_of, plan, query| as_of.graph(&plan, query.step).await?;
    /// The number of a plan's tasks in each stage over the log.
    counts "/api/plans/{plan}/counts", Points => [CountsView], |as_of, plan, query| {
        as_of.counts(&plan, query.points.unwrap_or(100).clamp(1, POINTS_MAX)).await?
    };
    /// The reason why nothing of a plan is running, or the running tasks.
    why_plan "/api/plans/{plan}/why", At => [WhyView], |as_of, plan, query| as_of.why_plan(&plan).await?;
}

printed! {
    of_commands:
    /// The checkpoints of a plan.
    checkpoints "/api/plans/{plan}/checkpoints", ("plan") Nothing, |session, _query, plan| {
        plan::checkpoint(session, Checkpoint { plan, name: None }).await
    };
    /// The prompt that the agent of a task gets.
    prompt "/api/plans/{plan}/prompt", ("plan") Prompted, |session, query, plan| {
        let target = Some(Address { plan, part: Some(query.task) });
        let show = Show { target, at: None, markdown: false, prompt: true, attempt: query.attempt };
        show::show(session, &show).await
    };
    /// The differences between two plans, or between two positions of one.
    diff "/api/diff", () Pair, |session, query| {
        diff::diff(session, &typed(&query.before)?, &typed(&query.after)?).await
    };
    /// The point where two plans of one history diverge, and the outcome of each.
    compare "/api/compare", () Pair, |session, query| {
        diff::outcomes(session, &typed(&query.before)?, &typed(&query.after)?).await
    };
}

fn typed(text: &str) -> Result<PlanAt, Failure> {
    text.parse().map_err(Failure::user)
}

async fn why_file(api: &Api, as_of: &AsOf, what: &str) -> Result<Value, Problem> {
    let target = crate::commands::leases::target(&api.session, what)?;
    let (known, is_used) = as_of.why_file(&target).await?;
    if is_used { Ok(known) } else { Err(crate::commands::why::unknown(&api.session, as_of, what).await?.into()) }
}

/// A page of a list by position.
#[derive(Debug, Serialize, ToSchema)]
struct Paged<T> {
    #[schema(value_type = i64)]
    at: Position,
    items: Vec<T>,
    /// The value of `after` for the next page; null at the end.
    next: Option<i64>,
}

/// Parameters that select events, combined with others.
macro_rules! params_of_events {
    ($name:ident $([$at:ident])? { $($(#[$attribute:meta])* $field:ident: $form:ty,)* }) => {
        params!($name $([$at])? {
            $($(#[$attribute])* $field: $form,)*
            /// After this position; before it with `reverse`
            after: Option<u64>,
            /// Of this plan and its tasks
            plan: Option<String>,
            /// Of this stream
            stream: Option<String>,
            /// Of this aggregate
            aggregate: Option<String>,
            /// Of this type
            #[serde(rename = "type")]
            event_type: Option<String>,
            /// With this tag
            tag: Option<String>,
        });

        impl $name {
            /// The query, and true unless it abbreviates the id of the plan.
            pub async fn query(&self, api: &Api) -> Result<(Which, bool), Problem> {
                let plan = api.full_id(api.crew.store(), self.plan.clone()).await?;
                let query = Which {
                    stream_id: self.stream.clone().unwrap_or_default(),
                    aggregate_id: self.aggregate.clone(),
                    event_type: self.event_type.clone(),
                    tags: self.tag.iter().cloned().chain(plan.as_deref().map(plan_tag)).collect(),
                    ..Which::default()
                };
                Ok((query, plan == self.plan))
            }
        }
    };
}

params_of_events!(Streamed {});
params_of_events!(EventsOf [at] {
    /// 100 if left out, at most 500
    limit: Option<usize>,
    /// The newest first
    #[serde(default)]
    reverse: bool,
});

/// An event, as `crewlog events` prints it.
pub fn event_json(recorded: &Recorded) -> Result<Value, Problem> {
    let json = EventJson::of(recorded).and_then(|json| serde_json::to_value(&json));
    json.map_err(|error| Failure::from(error).into())
}

/// An event with its causes and effects.
#[utoipa::path(get, path = "/api/events/{position}", params(("position" = i64, Path), At), responses((status = 200, body = EventDetail)))]
async fn event(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    position: Result<Path<i64>, axum::extract::rejection::PathRejection>,
    Params(At { at }): Params<At>,
) -> Answer<EventDetail> {
    let Path(position) = position.map_err(|rejection| Problem::invalid(rejection.body_text()))?;
    let as_of = api.as_of(&caller, at).await?;
    Ok(View(as_of.event(Position(position)).await?, as_of.is_past))
}

/// The routes of the views.
pub fn routes() -> OpenApiRouter<Arc<Api>> {
    of_log().merge(of_plan()).merge(of_commands()).routes(routes!(event))
}
