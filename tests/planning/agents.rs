//! Agents plan independently: by rule and by a model, in parallel, from the log; and sealed texts need a key.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crewlog_executors::agents::{Agents, PlanningError, PlansByModel, record_failure};
use crewlog_executors::model::{Asker, Model, ModelError, Reply};
use crewlog_mq::{Cause, EventStore, Query};
use crewlog_planner::agents::failures::{self, PlanningEvent};
use crewlog_planner::agents::registry::ToolRegistry;
use crewlog_planner::agents::{AgentPlan, PlanError, plan_words};
use crewlog_planner::event::{RetryClass, Usage};
use crewlog_planner::model::{ModelParameters, ModelRequest};
use crewlog_planner::protocol::AgentType;
use crewlog_planner::sealed::SEALED;
use futures::future::{BoxFuture, join_all};

use crewlog_stage::backends::logs;

const WORDS: &str = "# Log in\n\n1. Look for where users are kept\n2. Implement the form in `src/form.rs`\n\
                     3. Run `cargo test`\n";

fn tools(agent: AgentType, plan: &AgentPlan) -> Vec<String> {
    let tasks = plan.compile(agent, &ToolRegistry::coding()).unwrap().tasks;
    let done = tasks.iter().map(|task| {
        let to = task.sub_plan.as_ref().and_then(|sub_plan| sub_plan.agent.clone());
        task.tool.clone().or(to).unwrap_or_default()
    });
    done.collect()
}

#[tokio::test]
async fn each_agent_plans_the_same_text_by_its_role_with_its_own_tools() {
    use AgentType::{Orchestrator, Perception, Strategic, Tactical};
    let agents = Agents::new(ToolRegistry::coding());
    let goals = agents.plan(Strategic, WORDS, "").await.unwrap();
    assert_eq!(goals.goals[0].description, "Log in");
    assert_eq!(tools(Strategic, &goals), ["tactical", "tactical", "tactical"]);
    let steps = agents.plan(Tactical, WORDS, "").await.unwrap();
    assert_eq!(steps.steps[2].command.as_deref(), Some("cargo test"));
    assert_eq!(tools(Tactical, &steps), ["look_up", "edit_code", "run_command"]);
    let team = agents.plan(Orchestrator, WORDS, "").await.unwrap();
    assert_eq!(tools(Orchestrator, &team), ["perception", "tactical", "tactical"]);
    let survey = agents.plan(Perception, "Look for where users are kept", "").await.unwrap();
    assert_eq!(tools(Perception, &survey), ["search_code", "record_finding"]);
    // An agent without a tool for a step reports that, and does not try another.
    let PlanningError::Plan(error) = agents.plan(Perception, WORDS, "").await.unwrap_err() else { panic!() };
    assert_eq!(error.name(), "NoTool");
}

#[tokio::test]
async fn agents_plan_in_parallel_and_the_same_text_gives_the_same_plan() {
    let agents = Agents::new(ToolRegistry::coding());
    let all = || join_all(AgentType::ALL.map(|agent| agents.plan(agent, "Look for where users are kept", "")));
    let plans = async || all().await.into_iter().map(Result::unwrap).collect::<Vec<_>>();
    let first = plans().await;
    assert_eq!(first, plans().await);
    assert!(first.iter().all(|plan| plan.steps.len() == 1), "{first:?}");
}

#[tokio::test]
async fn sealed_text_or_context_is_not_planned_without_its_key() {
    let agents = Agents::new(ToolRegistry::coding());
    for (words, context) in [(SEALED, ""), ("Write it", SEALED)] {
        let sealed = agents.plan(AgentType::Tactical, words, context).await;
        assert!(matches!(sealed, Err(PlanningError::Sealed)), "{sealed:?}");
    }
}

#[tokio::test]
async fn planning_failures_are_counted_by_agent_and_rule() {
    for (store, _on) in logs().await {
        for (agent, words) in [
            (AgentType::Perception, "Implement the parser"),
            (AgentType::Perception, "Refactor the lexer"),
            (AgentType::Strategic, "Use edit_code for it"),
        ] {
            let error: PlanError = plan_words(agent, words, &ToolRegistry::coding()).unwrap_err();
            record_failure(&store, agent, &error, Vec::new(), &Cause::request()).await.unwrap();
        }
        let events = store.load_events::<PlanningEvent>(&Query::stream(failures::STREAM), None).await.unwrap();
        let counts = |of: AgentType, rule: &str| {
            let is_it =
                |PlanningEvent::PlanningFailed { agent, kind, .. }: &PlanningEvent| *agent == of && kind == rule;
            events.iter().filter(|event| is_it(event)).count()
        };
        let counts = (counts(AgentType::Strategic, "ForeignTool"), counts(AgentType::Perception, "NoTool"));
        assert_eq!((counts, events.len()), ((1, 2), 3));
    }
}

/// A model with a scripted answer.
struct Says(Mutex<VecDeque<String>>);

impl Model for Says {
    fn ask<'a>(&'a self, request: &'a ModelRequest) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let text = self.0.lock().unwrap().pop_front().expect("no more is asked than was expected");
            Ok(Reply { text, usage: Usage::default(), model: request.parameters.model.clone() })
        })
    }
}

fn by_model(store: &EventStore, answers: &[&str]) -> Agents {
    let model = Arc::new(Says(Mutex::new(answers.iter().map(|answer| (*answer).to_owned()).collect())));
    let asker = Asker::new(model, RetryClass::Transient.policy(), store.clone(), "text", Vec::new());
    let parameters = ModelParameters { model: "m".into(), max_tokens: None, temperature: None };
    Agents::new(ToolRegistry::coding()).with_model(PlansByModel { parameters, asker })
}

#[tokio::test]
async fn a_model_plans_in_the_agents_role_with_one_repair_turn() {
    for (store, _on) in logs().await {
        let foreign = r#"{"steps": [{"id": "a", "description": "look", "tool": "search_code"}]}"#;
        let mended = r#"{"steps": [{"id": "a", "description": "look", "tool": "look_up"}]}"#;
        let agents = by_model(&store, &[foreign, mended]);
        let plan = agents.plan(AgentType::Tactical, "Look for it", "").await.unwrap();
        assert_eq!(plan.steps[0].tool.as_deref(), Some("look_up"));
        let page = store.read(&Query::all(), crewlog_mq::Range::default(), 100).await.unwrap();
        let asked = page.events.iter().map(|recorded| recorded.data.clone()).collect::<String>();
        assert!(asked.contains("the tool search_code belongs to perception agents"), "it is told why: {asked}");
        assert_eq!(asked.matches("- search_code:").count(), 0, "nobody is told of tools that are not theirs");
        // Its answer is in the log: the same text needs no new request, another text does.
        let again = agents.plan(AgentType::Tactical, "Look for it", "").await.unwrap();
        assert_eq!(again, plan);
    }
}

#[tokio::test]
async fn a_changed_input_is_planned_again() {
    for (store, _on) in logs().await {
        let answers = ["one", "two", "three"]
            .map(|id| format!(r#"{{"steps": [{{"id": "{id}", "description": "x", "tool": "look_up"}}]}}"#));
        let agents = by_model(&store, &answers.each_ref().map(String::as_str));
        let mut ids = Vec::new();
        for (words, context) in [("Look", ""), ("Look", ""), ("Look again", ""), ("Look", "p: it is found")] {
            ids.push(agents.plan(AgentType::Tactical, words, context).await.unwrap().steps.remove(0).id);
        }
        assert_eq!(ids, ["one", "one", "two", "three"]);
    }
}

#[tokio::test]
async fn an_agent_whose_model_fails_plans_by_rule() {
    for (store, _on) in logs().await {
        let invented = r#"{"steps": [{"id": "a", "description": "x", "tool": "run_command", "command": "rm -rf /"}]}"#;
        let agents = by_model(&store, &[invented, "no plan at all"]);
        let plan = agents.plan(AgentType::Tactical, "Look for it", "").await.unwrap();
        assert_eq!(plan.steps[0].tool.as_deref(), Some("look_up"));
        assert_eq!(plan.steps[0].command, None);
    }
}
