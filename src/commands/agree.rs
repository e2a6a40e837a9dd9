//! `agree`: a person agrees to what tasks run.

use std::collections::BTreeSet;
use std::slice;
use std::time::Duration;

use clap::Args;
use crewlog_executors::caller::account;
use crewlog_executors::programs::ProgramConsent;
use crewlog_executors::projecting::list_plans;
use crewlog_executors::roster::{Roster, Unagreed};
use crewlog_executors::shell::SHELL;
use crewlog_mq::EventStore;
use crewlog_planner::crew::consent::{ConsentEvent, Cover, Grant, Means};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::cli::typed::{Address, Typed};
use crate::consent::{confirm, decide, give};
use crate::context::crew::repository_of;
use crate::context::{Session, roster};
use crate::run::by_model::unknown_model;
use crate::target::find_part;
use crate::ui::failure::{Code, Failure, Why};
use crate::ui::text::{count, date_time, rfc3339, visible};
use crate::views::names::{Choice, find_plan};
use crate::views::queries;

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
    #[arg(long, value_name = "WORDS", conflicts_with = "target")]
    #[serde(default)]
    pub always: Option<String>,
    /// Grant: new tasks for this configured agent run without a question
    #[arg(long, value_name = "@NAME", conflicts_with_all = ["target", "always"])]
    #[serde(default)]
    pub tasks: Option<String>,
    /// With --tasks: in this plan and its sub-plans
    #[arg(long, value_name = "PLAN", requires = "tasks")]
    #[serde(default)]
    pub plan: Option<String>,
    /// The most tasks of the grant
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    #[serde(default)]
    pub max: Option<u64>,
    /// The time until the grant ends (30m, 8h, 2d)
    #[arg(long = "for", value_name = "DURATION")]
    #[serde(default, rename = "for")]
    #[schema(value_type = Option<String>)]
    pub lasting: Option<Typed<Duration>>,
    /// List the grants
    #[arg(long, conflicts_with_all = ["target", "always", "tasks"])]
    #[serde(default)]
    pub list: bool,
    /// End a grant
    #[arg(long, value_name = "GRANT", conflicts_with_all = ["target", "always", "tasks", "list"])]
    #[serde(default)]
    pub revoke: Option<String>,
}

impl Agree {
    /// The tasks of the grant that is wanted, if one is.
    async fn covers(&self, session: &Session, store: &EventStore) -> Result<Option<Cover>, Failure> {
        match (&self.always, &self.tasks) {
            (None, None) if self.max.is_some() || self.lasting.is_some() || self.plan.is_some() => {
                Err(Failure::user("max, for and plan are limits of a grant: name one with always or tasks"))
            }
            (None, None) => Ok(None),
            (Some(_), Some(_)) => Err(Failure::user("a grant is either for commands or for the tasks of an agent")),
            (Some(words), None) => Ok(Some(Cover::commands(words)?)),
            (None, Some(name)) => {
                let name = name.strip_prefix('@').unwrap_or(name).to_owned();
                if name == SHELL {
                    return Err(Failure::user("commands are granted by their words: --always 'cargo test *'"));
                }
                roster::roster(session, Duration::MAX, slice::from_ref(&name))?;
                let plan = match &self.plan {
                    Some(plan) => Some(find_plan(session, store, plan, Choice::Changed).await?),
                    None => None,
                };
                Ok(Some(Cover::Texts { executor: name, plan }))
            }
        }
    }
}

pub async fn agree(session: &Session, agree: Agree) -> Result<Code, Failure> {
    let store = session.place.open().await?;
    if agree.list {
        return list(session).await;
    }
    session.person_only("agree to what runs").await?;
    let (by, at) = (account(), store.now());
    if let Some(grant) = agree.revoke {
        decide(session, &store, ConsentEvent::Revoked { by, grant: grant.clone(), at }).await?;
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

/// Agrees to tasks that wait: of a task, of a plan, or of all open plans.
async fn agree_to_waiting(
    session: &Session,
    store: &EventStore,
    target: Option<Address>,
    seen: Vec<String>,
) -> Result<Code, Failure> {
    let roster = Roster { trust: session.trust(&[]).await?, ..roster::roster(session, Duration::MAX, &[])? };
    let model = session.config()?.model.as_ref().filter(|model| target.is_none() && !model.may_be_asked());
    let mut model = model.and_then(|model| Some((unknown_model(model), model.consent.clone()?)));
    model.take_if(|_| !seen.is_empty());
    let mut waiting = Vec::new();
    let (plans, only) = match &target {
        Some(target) => {
            let (target, task) = find_part(session, target, Choice::Changed).await?;
            (vec![target.plan.clone()], task)
        }
        None => (list_plans(store, None).await?.open().map(|plan| plan.id.clone()).collect(), None),
    };
    for plan in plans {
        let found = unagreed(store, &roster, &plan).await?.into_iter();
        waiting.extend(
            found.filter(|found| only.is_none_or(|only| only == found.task)).map(|found| (plan.clone(), found)),
        );
    }
    if !seen.is_empty() {
        let seen: BTreeSet<_> = seen.iter().collect();
        for (_, found) in &mut waiting {
            found.lacking.retain(|wanted| seen.contains(&wanted.digest));
            found.program.take_if(|program| !seen.contains(&program.digest()));
        }
        waiting.retain(|(_, found)| !found.lacking.is_empty() || found.program.is_some());
        if waiting.is_empty() {
            let changed = "what was shown has changed, or was agreed to already";
            return Err(Failure::new(Code::Conflict, changed).hint("look at it again"));
        }
    } else if !waiting.is_empty() || model.is_some() {
        model.iter().for_each(|(shown, _)| session.say(shown));
        for (plan, Unagreed { name, text, .. }) in &waiting {
            session.say(&format!("  {plan}/{name}  {}", visible(text).replace('\n', "\n    ")));
        }
        let question = match waiting.len() {
            0 => "Ask it?".to_owned(),
            n_tasks => format!("Let {} run?", count(n_tasks, "task")),
        };
        if let Err(failure) = confirm(session, &question, "nothing was agreed to") {
            if failure.why == Why::Declined {
                let lacking = waiting.into_iter().flat_map(|(_, found)| found.lacking);
                let forgotten = lacking.map(|wanted| wanted.digest).collect();
                decide(session, store, ConsentEvent::Declined { by: account(), forgotten, at: store.now() }).await?;
            }
            return Err(failure);
        }
    }
    let mut names: Vec<_> = waiting.iter().map(|(plan, found)| format!("{plan}/{}", found.name)).collect();
    names.extend(model.iter().map(|_| "the model of crewlog.toml".to_owned()));
    let mut programs: Vec<_> = waiting.iter().filter_map(|(_, found)| found.program.clone()).collect();
    programs.extend(model.map(|(_, program)| program));
    let tasks: Vec<_> = waiting.into_iter().flat_map(|(_, found)| found.lacking).collect();
    programs.iter().try_for_each(|program| give(program, true))?;
    if names.is_empty() {
        session.print_done("no task waits for your agreement", &json!({ "agreed": names }))?;
        return Ok(Code::Nothing);
    }
    let how = if session.yes || !seen.is_empty() { Means::Yes } else { Means::Answer };
    // Workers that wait for a program look again at each decision.
    let remembered = programs.iter().map(ProgramConsent::digest).collect();
    let (by, at) = (account(), store.now());
    decide(session, store, ConsentEvent::Agreed { by, how, grant: None, tasks, remembered, at }).await?;
    session.print_done(&format!("agreed to {}", names.join(", ")), &json!({ "agreed": names }))
}

/// The grants that are open.
async fn list(session: &Session) -> Result<Code, Failure> {
    let grants = session.trust(&[]).await?.map(|trust| trust.grants()).unwrap_or_default();
    let json = |(by, grant, n_used): &(String, Grant, u64)| {
        let Grant { id, folder, covers, max, until } = grant;
        let (commands, executor, plan) = match covers {
            Cover::Commands(words) => (Some(words.join(" ")), None, None),
            Cover::Texts { executor, plan } => (None, Some(executor), plan.as_ref()),
        };
        json!({
            "grant": id, "by": by, "commands": commands, "executor": executor, "plan": plan, "folder": folder,
            "tasks": n_used, "max": max, "until": until.map(rfc3339),
        })
    };
    session.print_list("grants", json!({}), &grants, json, |to, (_, grant, n_used)| {
        writeln!(to, "{}  {}; so far {n_used}", grant.id, visible(&told(grant)))
    })
}

/// A grant as a sentence.
fn told(Grant { covers, max, until, .. }: &Grant) -> String {
    let covers = match covers {
        Cover::Commands(words) => format!("{} runs", words.join(" ")),
        Cover::Texts { executor, plan: None } => format!("new tasks for @{executor} run"),
        Cover::Texts { executor, plan: Some(plan) } => format!("new tasks for @{executor} in {plan} run"),
    };
    let max = max.map(|max| format!(", at most {}", count(usize::try_from(max).unwrap_or(usize::MAX), "task")));
    let until = until.map(|until| format!(", until {}", date_time(until)));
    format!("{covers}{}{}", max.unwrap_or_default(), until.unwrap_or_default())
}

/// The tasks of a plan that nobody has agreed to.
pub async fn unagreed(store: &EventStore, roster: &Roster, plan: &str) -> Result<Vec<Unagreed>, Failure> {
    let view = queries::load_readable(store, plan, store.head().await?).await?;
    Ok(view.map(|view| roster.unagreed(plan, view.state())).unwrap_or_default())
}
