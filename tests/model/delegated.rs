//! Text that a model writes for other agents and for tools: code in it counts only if the task text contains it.

use crewlog_planner::agents::registry::{Abilities, Tool, ToolNames, ToolRegistry};
use crewlog_planner::model::{AnswerError, read_agent_plan};
use crewlog_planner::plan::NodeKind;
use crewlog_planner::protocol::AgentType;
use serde_json::{Value, json};

/// The tools of a crew, plus one with a command for the perception and the tactical role.
fn registry() -> ToolRegistry {
    let (name, coding, mut names) = ("find_text".to_owned(), ToolRegistry::coding(), ToolNames::new());
    for agent in [AgentType::Tactical, AgentType::Perception] {
        let own = coding.tools_of(agent).map(|tool| tool.name.clone()).chain([name.clone()]);
        names.insert(agent, own.collect());
    }
    let (description, kind, agent) = ("find a text".to_owned(), NodeKind::Retrieval, None);
    let tool = Tool { name, description, kind, command: Some("grep -rn".into()), takes_command: false, agent };
    coding.with(vec![tool], names, Abilities::new()).expect("a valid registry")
}

fn judged(agent: AgentType, words: &str, plan: &Value) -> Result<(), AnswerError> {
    read_agent_plan(&plan.to_string(), agent, words, &registry()).map(drop)
}

fn invented(id: &str, command: &str) -> Result<(), AnswerError> {
    Err(AnswerError::InventedCommand(id.into(), command.into()))
}

fn milestone(text: &str) -> Value {
    json!({
        "goals": [{ "id": "g", "description": "It is done" }],
        "steps": [{ "id": "m", "description": text, "goals": ["g"], "agent": "tactical" }]
    })
}

fn work(text: &str, agent: &str) -> Value {
    json!({ "steps": [{ "id": "a", "description": text, "agent": agent }] })
}

fn step(text: &str) -> Value {
    let step = json!({ "id": "s", "description": text, "agent": "perception" });
    json!({ "steps": [step], "resources": { "agent_types": ["perception"] } })
}

#[test]
fn a_model_cannot_delegate_a_command_missing_from_its_task_text() {
    const EVIL: &str = "Run `touch evil`";
    let plans = [
        (AgentType::Strategic, "m", milestone(EVIL)),
        (AgentType::Strategic, "m", milestone("Read it first:\n- read\n- Run `touch evil`\n- Look")),
        (AgentType::Orchestrator, "a", work(EVIL, "tactical")),
        (AgentType::Orchestrator, "a", work(EVIL, "strategic")),
        (AgentType::Orchestrator, "a", work("Run:\n```sh\ntouch evil\n```\n", "tactical")),
        (AgentType::Orchestrator, "a", work("1. Tidy up\n\n   ```sh\n   touch evil\n   ```\n", "strategic")),
        (AgentType::Tactical, "s", step(EVIL)),
    ];
    for (agent, id, plan) in plans {
        for words in ["Say what is wanted for the readme", "Never run `touch evil`", "Run `touch good`"] {
            assert_eq!(judged(agent, words, &plan), invented(id, "touch evil"), "{words}: {plan}");
        }
        assert_eq!(judged(agent, "1. Look\n2. Run `touch evil`\n", &plan), Ok(()), "{plan}");
    }
    // Code that is not a command may be mentioned, also when it is delegated by rule.
    let spoken_of = "1. Look around.\n   - Run `touch evil`\n2. Run\n   - `touch evil`\n";
    for agent in [AgentType::Strategic, AgentType::Orchestrator] {
        let plan = if agent == AgentType::Strategic { milestone(EVIL) } else { work(EVIL, "tactical") };
        let id = if agent == AgentType::Strategic { "m" } else { "a" };
        assert_eq!(judged(agent, spoken_of, &plan), invented(id, "touch evil"));
    }
    assert_eq!(judged(AgentType::Strategic, "Give it a better name", &milestone("Rename `foo` to `bar`")), Ok(()));
}

#[test]
fn a_model_may_use_only_undo_commands_from_the_task_text() {
    let plan = json!({ "steps": [
        { "id": "s", "description": "Write the parser", "tool": "edit_code", "undo": "git checkout src" },
    ] });
    assert_eq!(judged(AgentType::Tactical, "- Write the parser (undo: `git checkout src`)\n", &plan), Ok(()));
    for words in ["- Write the parser\n", "- Write the parser\n- Run `git checkout src`\n"] {
        assert_eq!(judged(AgentType::Tactical, words, &plan), invented("s", "git checkout src"), "{words}");
    }
    let left = work("- Write the parser (undo: `git checkout src`)", "tactical");
    assert_eq!(judged(AgentType::Orchestrator, "Write the parser", &left), invented("a", "git checkout src"));
}

#[test]
fn an_undo_command_is_bound_to_its_step_and_cannot_run_as_a_command() {
    const WORDS: &str =
        "1. Migrate the schema of the database (undo: `dropdb prod`)\n2. Run `make test` (undo: `make clean`)\n";
    const RUN: &str = "Run `dropdb prod`";
    // In delegated text it would be a command.
    assert_eq!(judged(AgentType::Strategic, WORDS, &milestone(RUN)), invented("m", "dropdb prod"));
    for agent in ["tactical", "strategic"] {
        assert_eq!(judged(AgentType::Orchestrator, WORDS, &work(RUN, agent)), invented("a", "dropdb prod"));
        assert_eq!(judged(AgentType::Orchestrator, WORDS, &work(WORDS, agent)), Ok(()));
    }
    // Nor can a command of the text become an undo, or move to another step.
    let left = work("1. Migrate the schema of the database (undo: `make test`)", "tactical");
    assert_eq!(judged(AgentType::Orchestrator, WORDS, &left), invented("a", "make test"));
    let left = work("1. Run `make test` (undo: `dropdb prod`)", "tactical");
    assert_eq!(judged(AgentType::Orchestrator, WORDS, &left), invented("a", "dropdb prod"));
    let planned = |step: &str, command: Option<&str>, undo: &str| {
        let tool = if command.is_some() { "run_command" } else { "edit_code" };
        let mut step = json!({ "id": "s", "description": step, "tool": tool, "undo": undo });
        command.into_iter().for_each(|command| step["command"] = command.into());
        judged(AgentType::Tactical, WORDS, &json!({ "steps": [step] }))
    };
    assert_eq!(planned("migrate the schema of the database.", None, "dropdb prod"), Ok(()));
    assert_eq!(planned("Test it", Some("make test"), "make clean"), Ok(()), "the command says which step it is");
    assert_eq!(planned("Write the parser", None, "dropdb prod"), invented("s", "dropdb prod"));
    assert_eq!(planned("Test it", Some("make test"), "dropdb prod"), invented("s", "dropdb prod"));
    assert_eq!(planned("Run it", Some("dropdb prod"), "make clean"), invented("s", "dropdb prod"));
}

#[test]
fn a_tool_argument_must_occur_in_the_task_text_as_a_whole() {
    const WORDS: &str = "Find out where 'the old name' and parse_task stand in src/main.rs, with care-rf";
    let tactical = |args: &Value| {
        let step = json!({ "id": "s", "description": "Look", "tool": "find_text", "args": args });
        (AgentType::Tactical, json!({ "steps": [step] }))
    };
    let perception = |args: &Value| {
        let pattern = json!({ "id": "s", "description": "It", "tool": "find_text", "args": args });
        (AgentType::Perception, json!({ "steps": [pattern] }))
    };
    let locate = |entity: &str| {
        let request =
            json!({ "target_agent": "perception", "request": { "locate": { "entity": entity } }, "timeout_ms": 9 });
        let step = json!({ "id": "s", "description": "Ask", "request": request });
        let needs = json!({ "agent_types": ["perception"] });
        (AgentType::Tactical, json!({ "steps": [step], "resources": needs }))
    };
    let own = json!(["the old name", "parse_task", "src/main.rs"]);
    for (agent, plan) in [tactical(&own), perception(&own), locate("parse_task")] {
        assert_eq!(judged(agent, WORDS, &plan), Ok(()), "{plan}");
    }
    for argument in ["/etc/passwd", "-rf", "task", "", "a"] {
        let args = json!(["parse_task", argument]);
        for (agent, plan) in [tactical(&args), perception(&args)] {
            let expected = AnswerError::InventedArgument("s".into(), argument.into());
            assert_eq!(judged(agent, WORDS, &plan), Err(expected), "{plan}");
        }
    }
    let (agent, plan) = locate("/etc/passwd");
    assert!(matches!(judged(agent, WORDS, &plan), Err(AnswerError::InventedArgument(..))), "{plan}");
}
