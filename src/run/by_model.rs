//! Plans and advice by a model, with the parser as a fallback: no fault of a model ends a command.

use std::sync::Arc;

use crewlog_executors::agents::PlansByModel;
use crewlog_executors::model::{AskError, Asker, Client, ModelError, ModelRead, NoAnswer};
use crewlog_mq::EventStore;
use crewlog_planner::event::Usage;
use crewlog_planner::model::{AnswerError, ModelRequest, Proposed, TooLong, plan_request, read_plan, request_tag};
use crewlog_planner::parse::ParsedPlan;
use crewlog_planner::plan::{NodeKind, Origin};
use crewlog_planner::text::money;
use crewlog_planner::validity::InvalidPlan;

use crate::consent::{confirm, give};
use crate::context::Session;
use crate::context::config::ModelConfig;
use crate::ui::failure::Failure;
use crate::ui::terminal::say;
use crate::ui::text::{count, visible};

/// The model that has to plan: as given on the command line, else as configured.
pub fn wanted(session: &Session, typed: Option<bool>) -> Result<Option<ModelConfig>, Failure> {
    if typed == Some(false) {
        return Ok(None);
    }
    let config = session.config()?;
    if config.model.is_none() && typed.is_some() {
        let file =
            config.file.as_ref().map_or_else(|| "there is no crewlog.toml".into(), |file| file.display().to_string());
        return Err(Failure::user(format!("no model is configured ({file})"))
            .hint("name one in crewlog.toml: [model] with name, provider and api_key_env"));
    }
    Ok(config.model.clone().filter(|model| model.plan || typed.is_some()))
}

/// The model that has to plan, if there is one. If nobody on this machine has agreed to it, a person is asked: it gets texts and a
/// key, so the yes of an agent does not count.
pub async fn allowed(session: &Session, typed: Option<bool>) -> Result<Option<ModelConfig>, Failure> {
    let model = wanted(session, typed)?;
    let new = model.as_ref().filter(|model| !model.may_be_asked());
    if let Some((model, consent)) = new.and_then(|model| Some((model, model.consent.as_ref()?))) {
        session.say(&unknown_model(model));
        confirm(session, "Ask it?", "no model was asked")
            .map_err(|failure| failure.hint("--no-model plans without one"))?;
        session.person_only("let a model of crewlog.toml be asked").await?;
        give(consent)?;
    }
    Ok(model)
}

/// A model of crewlog.toml that nobody on this machine has agreed to.
pub fn unknown_model(model: &ModelConfig) -> String {
    visible(&format!("crewlog.toml sends texts to a model: {}", model.shown()))
}

impl ModelConfig {
    /// The model as a planner for agents, on behalf of an aggregate whose events have these tags.
    pub fn planner(&self, store: &EventStore, aggregate: &str, tags: Vec<String>) -> Result<PlansByModel, ModelError> {
        let client = Arc::new(Client::new(self.settings.clone())?);
        let asker = Asker::new(client, self.retry_policy, store.clone(), aggregate, tags);
        Ok(PlansByModel { parameters: self.parameters.clone(), asker })
    }
}

/// A model that is asked on behalf of a plan.
pub struct Advisor<'a> {
    session: &'a Session,
    model: &'a ModelConfig,
    planner: Result<PlansByModel, ModelError>,
}

impl<'a> Advisor<'a> {
    /// Asks on behalf of a plan or a text, whose events have these tags.
    pub async fn new(
        session: &'a Session,
        model: &'a ModelConfig,
        aggregate: &str,
        tags: Vec<String>,
    ) -> Result<Self, Failure> {
        let (store, _) = session.place.open_or_make().await?;
        Ok(Self { session, model, planner: model.planner(&store, aggregate, tags) })
    }

    /// Asks the model, and reports the cost of the answer or the fallback. Only a fault of the log is an error.
    pub async fn ask<T>(
        &self,
        what: &str,
        otherwise: &str,
        request: Result<ModelRequest, TooLong>,
        read: impl Fn(&str) -> Result<T, AnswerError>,
    ) -> Result<Option<ModelRead<T>>, Failure> {
        let name = visible(&self.model.parameters.model);
        let failed = |error: &dyn std::fmt::Display| {
            say(&format!("warning: {name} gave no {what}: {}; {otherwise}", visible(&error.to_string())));
            Ok(None)
        };
        let (planner, request) = match (&self.planner, request) {
            (Ok(planner), Ok(request)) => (planner, request),
            (Err(error), _) => return failed(error),
            (Ok(_), Err(error)) => return failed(&error),
        };
        match planner.asker.read(request, read).await {
            Ok(found) => {
                let Usage { input_tokens, output_tokens, cost_micros, duration_ms, .. } = found.answered.answer.usage;
                let cost = if cost_micros > 0 { format!("cost {}, ", money(cost_micros)) } else { String::new() };
                let took = match found.answered.from_log {
                    true => "answered from the log".to_owned(),
                    false => format!("{input_tokens} + {output_tokens} tokens, {cost}{duration_ms} ms"),
                };
                self.session.remark(&format!("{name} gave {what} ({took})"));
                Ok(Some(found))
            }
            Err(NoAnswer::Ask(AskError::Log(error))) => Err(error.into()),
            Err(error @ (NoAnswer::Ask(AskError::Model(_) | AskError::Refused(_)) | NoAnswer::NotUnderstood(_))) => {
                failed(&error)
            }
        }
    }

    /// The plan of a text, and its planner: the model, or the parser if the model gives none.
    pub async fn plan(
        &self,
        text: &str,
        parsed: Result<ParsedPlan, InvalidPlan>,
    ) -> Result<(ParsedPlan, Origin), Failure> {
        let by_rule = parsed.as_ref().map(|parsed| parsed.tasks.as_slice()).unwrap_or_default();
        let request = plan_request(&self.model.parameters, text);
        let answer =
            self.ask("plan", "the text is parsed instead", request, |answer| read_plan(answer, by_rule)).await?;
        let Some(ModelRead { value: Proposed { title, tasks }, answered }) = answer else {
            return Ok((parsed?, Origin::default()));
        };
        let n_questions = tasks.iter().filter(|task| task.kind == NodeKind::Clarification).count();
        self.session.remark(&format!("{}, {n_questions} of them for a person", count(tasks.len(), "task")));
        let ParsedPlan { title: heading, context, .. } = parsed.unwrap_or_default();
        let parsed = ParsedPlan { title: heading.or(title), tasks, context, ..ParsedPlan::default() };
        Ok((parsed, Origin { planned_by: Some(request_tag(&answered.request)), ..Origin::default() }))
    }
}
