//! `agree`: a person agrees to what tasks run.

use std::collections::BTreeSet;
use std::slice;
use std::time::Duration;

use clap::Args;
use crewlog_executors::caller::{account, request};
use crewlog_executors::consent::{self, OpenGrant};
use crewlog_executors::crew::worktree::repository_of;
use crewlog_executors::programs::ProgramConsent;
use crewlog_executors::projecting::list_plans;
use crewlog_executors::roster::{Roster, Unagreed};
use crewlog_executors::shell::SHELL;
use crewlog_mq::EventStore;
use crewlog_planner::crew::consent::{ConsentEvent, Cover, Grant, Means};
use crewlog_planner::plan::TaskId;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::cli::typed::{Address, Typed};
use crate::consent::{confirm, decide, give};
use crate::context::{Session, roster};
use crate::run::by_model::unknown_model;
use crate::run::notices::unknown_program;
use crate::target::find_part;
use crate::ui::failure::{Code, Failure, Why};
use crate::ui::text::{count, date_time, visible};
use crate::views::names::{Choice, find_plan};
use crate::views::queries;

/// The longest time of a grant.
const GRANT_MAX: Duration = Duration::from_secs(366 * 86_400);

#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Agree {
    /// The plan, or one of its tasks [default: all open plans]
    #[arg(value_name = "PLAN[/TASK]")]
    #[schema(value_type = Option<String>)]
    pub target: Option<Address>,
    /// Only to what was shown, by its digest
    #[arg(skip)]
    #[serde(default)]
    pub seen: Vec<String>,
    /// Grant: commands of these words run without a question; * is any word, and at the end any words
    #[arg(long, value_name = "WORDS")]
    #[serde(default)]
    pub always: Option<String>,
    /// Grant: new tasks for this configured agent run without a question
    #[arg(long, value_name = "@NAME")]
    #[serde(default)]
    pub tasks: Option<String>,
    /// With --tasks: in this plan and its sub-plans
    #[arg(long, value_name = "PLAN")]
    #[serde(default)]
    pub plan: Option<String>,
    /// The most tasks of the grant
    #[arg(long, value_name = "N")]
    #[serde(default)]
    pub max: Option<u64>,
    /// The time until the grant ends (30m, 8h, 2d)
    #[arg(long = "for", value_name = "DURATION")]
    #[serde(default, rename = "for")]
    #[schema(value_type = Option<String>)]
    pub lasting: Option<Typed<Duration>>,
    /// List the grants
    #[arg(long)]
    #[serde(default)]
    pub list: bool,
    /// End a grant
    #[arg(long, value_name = "GRANT")]
    #[serde(default)]
    pub revoke: Option<String>,
}

impl Agree {
    /// Refuses combinations that mean nothing.
    fn check(&self) -> Result<(), Failure> {
        let (is_waiting, is_grant) =
            (self.target.is_some() || !self.seen.is_empty(), self.always.is_some() || self.tasks.is_some());
        let wanted = [is_waiting, self.always.is_some(), self.tasks.is_some(), self.list, self.revoke.is_some()];
        let has_limits = self.max.is_some() || self.lasting.is_some() || self.plan.is_some();
        let wrong = if wanted.into_iter().filter(|is| *is).count() > 1 {
            "name one of these: waiting tasks, always, tasks, list, revoke"
        } else if has_limits && !is_grant {
            "max, for and plan are limits of a grant: name one with always or tasks"
        } else if self.plan.is_some() && self.always.is_some() {
            "a plan limits a grant for tasks, not one for commands"
        } else if self.max == Some(0) {
            "a grant is for at least one task: max is from 1"
        } else if self.lasting.as_ref().is_some_and(|lasting| lasting.value > GRANT_MAX) {
            "a grant lasts for at most a year; without a time, until it is revoked"
        } else {
            return Ok(());
        };
        Err(Failure::user(wrong))
    }

    /// The tasks of the grant that is wanted, if one is.
    async fn covers(&self, session: &Session, store: &EventStore) -> Result<Option<Cover>, Failure> {
        let Some(name) = &self.tasks else { return Ok(self.always.as_deref().map(Cover::commands).transpose()?) };
        let executor = name.strip_prefix('@').unwrap_or(name).to_owned();
        if executor == SHELL {
            return Err(Failure::user("commands are granted by their words: --always 'cargo test *'"));
        }
        roster::roster(session, Duration::MAX, slice::from_ref(&executor))?;
        let plan = match &self.plan {
            Some(plan) => Some(find_plan(session, store, plan, Choice::Changed).await?),
            None => None,
        };
        Ok(Some(Cover::Texts { executor, plan }))
    }
}

pub async fn agree(session: &Session, agree: Agree) -> Result<Code, Failure> {
    agree.check()?;
    let store = session.place.open().await?;
    if agree.list {
        let open = open_grants(session).await?;
        let json =
            |OpenGrant { by, grant, n_used, .. }: &OpenGrant| json!({ "by": by, "tasks": n_used, "grant": grant });
        return session.print_list("grants", json!({}), &open, json, |to, OpenGrant { grant, n_used, .. }| {
            writeln!(to, "{}  {}; so far {n_used}", grant.id, told(grant))
        });
    }
    session.person_only("agree to what runs").await?;
    let (by, at) = (account(), store.now());
    if let Some(grant) = agree.revoke {
        let Some(open) = open_grants(session).await?.into_iter().find(|open| open.grant.id == grant) else {
            return Err(Failure::new(Code::Nothing, format!("there is no open grant {grant}: crewlog agree --list")));
        };
        let revoked = ConsentEvent::Revoked { by, grant: grant.clone(), at };
        consent::decide(&store, &[format!("project:{}", open.project)], revoked, &request()).await?;
        return session.print_done(&format!("{grant} has ended"), &json!({ "grant": grant }));
    }
    let Some(covers) = agree.covers(session, &store).await? else {
        return agree_to_waiting(session, &store, agree.target, agree.seen).await;
    };
    let id = Uuid::new_v4().simple().to_string()[..8].to_owned();
    let until = agree.lasting.map(|lasting| at.plus(lasting.value));
    let folder = repository_of(&session.folder).to_string_lossy().into_owned();
    let grant = Grant { id: id.clone(), folder, covers, max: agree.max, until };
    let revoke = session.command(&format!("agree --revoke {id}"));
    let said = format!("{} without a question; to end it: {revoke}", told(&grant));
    decide(session, &store, ConsentEvent::Granted { by, grant, at }).await?;
    session.print_done(&said, &json!({ "grant": id }))
}

async fn open_grants(session: &Session) -> Result<Vec<OpenGrant>, Failure> {
    Ok(session.trust(&[]).await?.map(|trust| trust.grants()).unwrap_or_default())
}

fn told(grant: &Grant) -> String {
    let until = grant.until.map(|until| format!(", until {}", date_time(until)));
    format!("{grant}{}", until.unwrap_or_default())
}

/// A part of crewlog.toml that needs an agreement, and is no executor.
struct Other {
    name: &'static str,
    shown: String,
    consent: ProgramConsent,
}

/// Those that nobody on this machine has agreed to.
fn others(session: &Session) -> Result<Vec<Other>, Failure> {
    let config = session.config()?;
    let model = config.model.as_ref().map(|model| ("the model", unknown_model(model), &model.consent));
    let notify = config.inbox.notify.as_ref();
    let notify = notify.map(|notify| ("the program for notices", unknown_program(notify), &notify.consent));
    let all = model.into_iter().chain(notify);
    let others = all.filter_map(|(name, shown, consent)| Some(Other { name, shown, consent: consent.clone()? }));
    Ok(others.filter(|other| !other.consent.is_given()).collect())
}

/// Agrees to tasks that wait: of a task, of a plan, or of all open plans.
async fn agree_to_waiting(
    session: &Session,
    store: &EventStore,
    target: Option<Address>,
    mut seen: Vec<String>,
) -> Result<Code, Failure> {
    let roster = Roster { trust: session.trust(&[]).await?, ..roster::roster(session, Duration::MAX, &[])? };
    let how = if session.yes || !seen.is_empty() { Means::Yes } else { Means::Answer };
    let mut others = others(session)?;
    others.retain(|_| target.is_none() && seen.is_empty());
    let (mut plans, only) = match &target {
        Some(target) => {
            let (target, task) = find_part(session, target, Choice::Changed).await?;
            (vec![target.plan], task)
        }
        None => (list_plans(store, None).await?.open().map(|plan| plan.id.clone()).collect(), None),
    };
    if seen.is_empty() {
        let waiting = waiting(store, &roster, &plans, only).await?;
        if waiting.is_empty() && others.is_empty() {
            session.print_done("no task waits for your agreement", &json!({ "agreed": [] }))?;
            return Ok(Code::Nothing);
        }
        ask(session, store, &waiting, &others).await?;
        seen = waiting.iter().flat_map(|(_, found)| found.seen()).collect();
        plans.retain(|plan| waiting.iter().any(|(of, _)| of == plan));
    }
    // A task that has changed since it was shown waits on.
    let mut waiting = waiting(store, &roster, &plans, only).await?;
    waiting.iter_mut().for_each(|(_, found)| found.keep(&seen));
    waiting.retain(|(_, found)| !found.lacking.is_empty() || found.program.is_some());
    if waiting.is_empty() && others.is_empty() {
        let changed = "what was shown has changed, or was agreed to already";
        return Err(Failure::new(Code::Conflict, changed).hint("look at it again"));
    }
    let mut names: Vec<_> = waiting.iter().map(|(plan, found)| format!("{plan}/{}", found.name)).collect();
    names.extend(others.iter().map(|other| format!("{} of crewlog.toml", other.name)));
    let mut programs: Vec<_> = waiting.iter().filter_map(|(_, found)| Some(found.program.clone()?.1)).collect();
    programs.extend(others.into_iter().map(|other| other.consent));
    programs.iter().try_for_each(give)?;
    // Workers that wait for a program look again at each decision, which comes after the agreement to it.
    let remembered: BTreeSet<_> = programs.iter().map(ProgramConsent::digest).collect();
    // A plan may be of another project.
    for plan in waiting.iter().map(|(plan, _)| plan).collect::<BTreeSet<_>>() {
        let of_plan = waiting.iter().filter(|(of, _)| of == plan).flat_map(|(_, found)| found.lacking.iter().cloned());
        let (tasks, remembered, by) = (of_plan.collect(), remembered.clone(), account());
        let agreed = ConsentEvent::Agreed { by, how, grant: None, tasks, remembered, at: store.now() };
        consent::decide(store, &queries::tags_of(store, plan).await?, agreed, &request()).await?;
    }
    session.print_done(&format!("agreed to {}", names.join(", ")), &json!({ "agreed": names }))
}

/// Shows what waits, and asks about it; a no is recorded.
async fn ask(
    session: &Session,
    store: &EventStore,
    waiting: &[(String, Unagreed)],
    others: &[Other],
) -> Result<(), Failure> {
    others.iter().for_each(|other| session.say(&other.shown));
    for (plan, Unagreed { name, text, program, .. }) in waiting {
        session.say(&format!("  {plan}/{name}  {}", visible(text).replace('\n', "\n    ")));
        program.iter().for_each(|(starts, _)| session.say(&format!("    in full: {}", visible(starts))));
    }
    let question = match waiting.len() {
        0 => "Allow it?".to_owned(),
        n_tasks => format!("Let {} run?", count(n_tasks, "task")),
    };
    let answer = confirm(session, &question, "nothing was agreed to");
    if answer.as_ref().is_err_and(|failure| failure.why == Why::Declined) {
        let lacking = waiting.iter().flat_map(|(_, found)| &found.lacking);
        let forgotten = lacking.map(|wanted| wanted.digest.clone()).collect();
        decide(session, store, ConsentEvent::Declined { by: account(), forgotten, at: store.now() }).await?;
    }
    answer
}

/// The tasks of plans that nobody has agreed to.
async fn waiting(
    store: &EventStore,
    roster: &Roster,
    plans: &[String],
    only: Option<TaskId>,
) -> Result<Vec<(String, Unagreed)>, Failure> {
    if let Some(trust) = &roster.trust {
        trust.catch_up().await?;
    }
    let mut waiting = Vec::new();
    for plan in plans {
        let found = unagreed(store, roster, plan).await?.into_iter();
        let found = found.filter(|found| only.is_none_or(|only| only == found.task));
        waiting.extend(found.map(|found| (plan.clone(), found)));
    }
    Ok(waiting)
}

/// The tasks of a plan that nobody has agreed to.
pub async fn unagreed(store: &EventStore, roster: &Roster, plan: &str) -> Result<Vec<Unagreed>, Failure> {
    let view = queries::load_readable(store, plan, store.head().await?).await?;
    Ok(view.map(|view| roster.unagreed(plan, view.state())).unwrap_or_default())
}
