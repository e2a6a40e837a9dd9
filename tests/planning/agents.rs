//! Agents that plan, each alone: by rule and by a model, side by side, from memory; and what they may not read.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crewlog_executors::agents::{Agents, PLANS_TOLD_MAX, PlanningError, PlansByModel, SharedContext, record_failure};
use crewlog_executors::model::{Asker, Model, ModelError, Patience, Reply};
use crewlog_mq::{Cause, EventStore, Query};
use crewlog_planner::agents::failures::{self, PlanningEvent, PlanningFailures};
use crewlog_planner::agents::registry::ToolRegistry;
use crewlog_planner::agents::{AgentPlan, PlanError, plan_words};
use crewlog_planner::event::{Command, PlannerConfig, plan_tag};
use crewlog_planner::model::{CountedTokens, Request, Terms};
use crewlog_planner::protocol::AgentType;
use crewlog_planner::sealed::SEALED;
use futures::future::BoxFuture;

use super::plans::first_version;
use crate::log::backends::logs;

const WORDS: &str = "# Log in\n\n1. Look for where users are kept\n2. Implement the form in `src/form.rs`\n\
                     3. Run `cargo test`\n";

fn tools(plan: &AgentPlan) -> Vec<String> {
    let tasks = plan.lower(&ToolRegistry::coding()).unwrap().tasks;
    let done = tasks.iter().map(|task| {
        let to = task.sub_plan.as_ref().and_then(|sub_plan| sub_plan.agent.clone());
        task.tool.clone().or(to).unwrap_or_default()
    });
    done.collect()
}

#[tokio::test]
async fn each_agent_plans_the_same_words_alone_in_its_own_form_with_its_own_tools() {
    let agents = Agents::new(ToolRegistry::coding());
    let nothing = SharedContext::default();
    let goals = agents.plan_goals(WORDS, &nothing).await.unwrap();
    assert_eq!(goals.narrative_goals[0].goal, "Log in");
    assert_eq!(tools(&AgentPlan::Strategic(goals)), ["tactical", "tactical", "tactical"]);
    let steps = agents.plan_steps(WORDS, &nothing).await.unwrap();
    assert_eq!(steps.execution_steps[2].command.as_deref(), Some("cargo test"));
    assert_eq!(tools(&AgentPlan::Tactical(steps)), ["look_up", "edit_code", "run_command"]);
    let team = agents.plan_team(WORDS, &nothing).await.unwrap();
    assert_eq!(tools(&AgentPlan::Orchestration(team)), ["perception", "tactical", "tactical"]);
    let survey = agents.plan_survey("Look for where users are kept", &nothing).await.unwrap();
    assert_eq!(tools(&AgentPlan::Perception(survey)), ["search_code", "record_finding"]);
    // One that has no tool for a step says so, and no other is asked for one.
    let PlanningError::Plan(error) = agents.plan_survey(WORDS, &nothing).await.unwrap_err() else { panic!() };
    assert_eq!(error.name(), "NoTool");
}

#[tokio::test]
async fn agents_plan_side_by_side_and_what_they_planned_is_not_planned_again() {
    let agents = Agents::new(ToolRegistry::coding());
    let told = || AgentType::ALL.map(|agent| (agent, "Look for where users are kept".to_owned())).to_vec();
    let first = agents.plan_all(told(), &SharedContext::default()).await;
    let first = first.into_iter().map(Result::unwrap).collect::<Vec<_>>();
    assert_eq!(first.iter().map(AgentPlan::agent).collect::<Vec<_>>(), AgentType::ALL);
    assert_eq!(agents.n_found(), 0);
    let second = agents.plan_all(told(), &SharedContext::default()).await;
    assert_eq!(second.into_iter().map(Result::unwrap).collect::<Vec<_>>(), first);
    assert_eq!(agents.n_found(), 4);
    agents.plan_steps("Look for where users are stored", &SharedContext::default()).await.unwrap();
    let mut known = SharedContext::default();
    known.plans.push(glance("users are in src/user.rs"));
    agents.plan_steps("Look for where users are kept", &known).await.unwrap();
    assert_eq!(agents.n_found(), 4, "other words, or other knowledge, are another plan");
}

fn glance(result: &str) -> crewlog_executors::agents::PlanGlance {
    crewlog_executors::agents::PlanGlance {
        plan: "p".into(),
        title: None,
        status: crewlog_planner::view::PlanStatus::Completed,
        open: Vec::new(),
        results: vec![("look".into(), result.into())],
    }
}

#[tokio::test]
async fn what_is_sealed_is_not_planned_without_its_key() {
    let agents = Agents::new(ToolRegistry::coding());
    let sealed = agents.plan_steps(SEALED, &SharedContext::default()).await;
    assert!(matches!(sealed, Err(PlanningError::Sealed)), "{sealed:?}");
    let mut context = SharedContext::default();
    context.plans.push(glance(SEALED));
    let sealed = agents.plan_steps("Write it", &context).await;
    assert!(matches!(sealed, Err(PlanningError::Sealed)), "{sealed:?}");
}

#[tokio::test]
async fn agents_see_the_newest_plans_of_their_project_and_no_others() {
    for (store, _on) in logs().await {
        let make = async |plan: &str, project: &str| {
            let tags = vec![plan_tag(plan), format!("project:{project}")];
            let mut planner = crewlog_executors::planning::planner_of(&store, plan, tags).await.unwrap();
            let (attachments, config) = (Vec::new(), PlannerConfig::default());
            let user_input = format!("# {plan}\n\n- [x] done before\n- [ ] Think about {plan}\n");
            let command = Command::Initialize { user_input, attachments, config, parallel: false };
            planner.execute(command, &Cause::request()).await.unwrap();
        };
        make("other", "b").await;
        for n in 0..PLANS_TOLD_MAX + 2 {
            make(&format!("plan-{n}"), "a").await;
        }
        let context = SharedContext::read(&store, "project:a").await.unwrap();
        let plans = context.plans.iter().map(|glance| glance.plan.as_str()).collect::<Vec<_>>();
        assert_eq!((plans.len(), plans[0], context.at), (PLANS_TOLD_MAX, "plan-2", store.head().await.unwrap()));
        let told = context.told();
        assert!(told.contains("plan-3 (Waiting): plan-3\n- open: Think about plan-3"), "{told}");
    }
}

#[tokio::test]
async fn failures_to_plan_are_counted_by_agent_and_rule() {
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
        let mut failures = PlanningFailures::default();
        events.iter().for_each(|event| failures.apply(event));
        let counts = failures.counts().collect::<Vec<_>>();
        assert_eq!(counts, [(AgentType::Strategic, "ForeignTool", 1), (AgentType::Perception, "NoTool", 2)]);
    }
}

/// A model that says what it was told to say.
struct Says(Mutex<VecDeque<String>>);

impl Model for Says {
    fn ask<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let text = self.0.lock().unwrap().pop_front().expect("no more is asked than was expected");
            Ok(Reply { text, usage: CountedTokens::default(), cost_micros: None, model: request.terms.model.clone() })
        })
    }
}

fn by_model(store: &EventStore, answers: &[&str]) -> Agents {
    let model = Arc::new(Says(Mutex::new(answers.iter().map(|answer| (*answer).to_owned()).collect())));
    let asker = Asker::new(model, Patience::default(), store.clone(), "text", Vec::new());
    let terms = Terms { model: "m".into(), max_tokens: None, temperature: None };
    Agents::new(ToolRegistry::coding()).with_model(PlansByModel { terms, asker })
}

#[tokio::test]
async fn a_model_plans_as_the_agent_and_is_told_once_what_to_mend() {
    for (store, _on) in logs().await {
        let foreign = r#"{"execution_steps": [{"id": "a", "step": "look", "tool": "search_code"}]}"#;
        let mended = r#"{"execution_steps": [{"id": "a", "step": "look", "tool": "look_up"}]}"#;
        let agents = by_model(&store, &[foreign, mended]);
        let plan = agents.plan_steps("Look for it", &SharedContext::default()).await.unwrap();
        assert_eq!(plan.execution_steps[0].tool.as_deref(), Some("look_up"));
        let page = store.read(&Query::all(), crewlog_mq::Range::default(), 100).await.unwrap();
        let asked = page.events.iter().map(|recorded| recorded.data.clone()).collect::<String>();
        assert!(asked.contains("the tool search_code is of perception agents"), "it is told why: {asked}");
        assert_eq!(asked.matches("- search_code:").count(), 0, "nobody is told of tools that are not theirs");
    }
}

#[tokio::test]
async fn an_agent_whose_model_gives_no_plan_plans_by_rule() {
    for (store, _on) in logs().await {
        let invented =
            r#"{"execution_steps": [{"id": "a", "step": "x", "tool": "run_command", "command": "rm -rf /"}]}"#;
        let agents = by_model(&store, &[invented, "no plan at all"]);
        let plan = agents.plan_steps("Look for it", &SharedContext::default()).await.unwrap();
        assert_eq!(plan.execution_steps[0].tool.as_deref(), Some("look_up"));
        assert_eq!(plan.execution_steps[0].command, None);
    }
}

#[test]
fn the_first_versions_are_valid_by_the_tools_of_coding_crews() {
    for agent in AgentType::ALL {
        let plan = AgentPlan::read(agent, &first_version(agent).to_string()).unwrap();
        assert_eq!(plan.validate(&ToolRegistry::coding()), Ok(()));
    }
}
