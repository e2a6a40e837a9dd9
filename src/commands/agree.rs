//! `agree`: a person agrees to what tasks run.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;
use crewlog_executors::caller::account;
use crewlog_executors::programs::ProgramConsent;
use crewlog_executors::projecting::list_plans;
use crewlog_executors::roster::{Roster, Unagreed};
use crewlog_mq::EventStore;
use crewlog_planner::crew::consent::{ConsentEvent, Means};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::cli::typed::Address;
use crate::consent::{confirm, decide, give};
use crate::context::{Session, roster};
use crate::run::by_model::unknown_model;
use crate::target::find_part;
use crate::ui::failure::{Code, Failure, Why};
use crate::ui::text::{count, visible};
use crate::views::names::Choice;
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
}

pub async fn agree(session: &Session, Agree { target, seen }: Agree) -> Result<Code, Failure> {
    session.person_only("agree to what runs").await?;
    let store = session.place.open().await?;
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
        None => (list_plans(&store, None).await?.open().map(|plan| plan.id.clone()).collect(), None),
    };
    for plan in plans {
        let found = unagreed(&store, &roster, &plan).await?.into_iter();
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
                decide(session, &store, ConsentEvent::Declined { by: account(), forgotten, at: store.now() }).await?;
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
    decide(session, &store, ConsentEvent::Agreed { by, how, tasks, remembered, at }).await?;
    session.print_done(&format!("agreed to {}", names.join(", ")), &json!({ "agreed": names }))
}

/// The tasks of a plan that nobody has agreed to.
pub async fn unagreed(store: &EventStore, roster: &Roster, plan: &str) -> Result<Vec<Unagreed>, Failure> {
    let view = queries::load_readable(store, plan, store.head().await?).await?;
    Ok(view.map(|view| roster.unagreed(plan, view.state())).unwrap_or_default())
}
