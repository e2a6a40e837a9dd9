//! Agents' plans: one form for four roles; the fields each keeps, its tasks, and its refusals.

use std::collections::BTreeSet;

use crewlog_mq::Handler;
use crewlog_planner::agents::registry::{Abilities, Tool, ToolNames, ToolRegistry};
use crewlog_planner::agents::{
    AgentPlan, PLAN_BYTES_MAX, PlanError, Role, STEP_TIMEOUT_MS_MAX, STEPS_MAX, plan_words, schema,
};
use crewlog_planner::event::{Command, Event, PlannerConfig};
use crewlog_planner::plan::{NodeKind, Origin, ParentTask, Proposal, RETRIES_MAX, SUB_PLAN_DEPTH_MAX, TaskId};
use crewlog_planner::planner::{Planner, PlannerError};
use crewlog_planner::protocol::{AgentRequest, AgentType, REQUEST_CHARS_MAX, REQUEST_TIMEOUT_MS_MAX};
use serde_json::{Value, json};

/// A plan of each role.
pub fn plans() -> [(AgentType, Value); 4] {
    let strategic = json!({
        "goals": [
            { "id": "login", "description": "people can log in", "done_when": "a session is kept" },
            { "id": "safe", "description": "nobody logs in for another" },
        ],
        "constraints": [
            { "description": "no new dependency" },
            { "description": "every secret is hashed", "goals": ["safe"] },
        ],
        "steps": [
            { "id": "store", "description": "sessions are stored", "goals": ["login", "safe"], "agent": "tactical" },
            { "id": "form", "description": "the form is there", "goals": ["login"], "agent": "tactical" },
            { "id": "where", "description": "it is known where users are kept", "request": {
                "target_agent": "perception", "request": { "locate": { "entity": "struct User" } }, "timeout_ms": 5000 } },
            { "id": "judge", "description": "it is good enough", "tool": "review_outcome" },
        ],
        "dependencies": { "form": ["store"], "judge": ["form", "where"] },
    });
    let tactical = json!({
        "steps": [
            { "id": "edit", "description": "Write the parser", "tool": "edit_code", "timeout_ms": 60000 },
            { "id": "run", "description": "Run the tests", "tool": "run_command", "command": "cargo test" },
            { "id": "ask", "description": "Which tests are slow?", "request": {
                "target_agent": "perception", "request": { "analyse": { "text": "the last run" } }, "timeout_ms": 1 } },
            { "id": "look", "description": "Survey the benches", "agent": "perception" },
        ],
        "dependencies": { "run": ["edit"], "ask": ["run"] },
        "resources": {
            "files": { "edit": ["src/**"] }, "agent_types": ["perception"], "capacities": { "cores": 2 } },
    });
    let perception = json!({
        "steps": [
            { "id": "entry", "description": "entry points", "tool": "search_code" },
            { "id": "tests", "description": "tests", "tool": "survey_files" },
        ],
        "updates": [
            { "id": "map", "description": "a map of the parts", "tool": "record_finding" },
            { "id": "gaps", "description": "what has no test", "tool": "record_finding" },
        ],
        "dependencies": { "map": ["entry"], "gaps": ["tests"] },
        "resources": { "files": { "entry": ["src/**"] } },
        "resolution": { "by": ["symbol", "path"], "ambiguous": "first" },
    });
    let orchestration = json!({
        "steps": [
            { "id": "aim", "description": "Say what is wanted", "agent": "strategic" },
            { "id": "build", "description": "Build it", "agent": "tactical", "timeout_ms": 3600000 },
            { "id": "end", "description": "See where all stands", "tool": "review_progress" },
        ],
        "dependencies": { "build": ["aim"], "end": ["build"] },
    });
    [
        (AgentType::Strategic, strategic),
        (AgentType::Tactical, tactical),
        (AgentType::Perception, perception),
        (AgentType::Orchestrator, orchestration),
    ]
}

pub fn plan_of(agent: AgentType) -> Value {
    plans().into_iter().find(|(of, _)| *of == agent).unwrap().1
}

pub fn compiled(agent: AgentType, plan: &Value) -> Result<Proposal, PlanError> {
    AgentPlan::read(&plan.to_string())?.compile(agent, &ToolRegistry::coding())
}

fn propose(proposal: Proposal) -> Result<Vec<Event>, PlannerError> {
    let (proposal, config) = (Box::new(proposal), PlannerConfig::default());
    Planner::default().process(Command::Initialize { proposal, attachments: Vec::new(), config })
}

/// A plan with one change.
pub fn with(agent: AgentType, at: &str, value: Value) -> Value {
    let mut plan = plan_of(agent);
    let (of, key) = at.rsplit_once('/').unwrap();
    match plan.pointer_mut(of).unwrap() {
        Value::Array(list) => list[key.parse::<usize>().unwrap()] = value,
        object => object[key] = value,
    }
    plan
}

/// Each task as a line: its dependencies, its kind, and its executor.
fn lines(proposal: &Proposal) -> String {
    let lines = proposal.tasks.iter().map(|task| {
        let after = task.depends_on.iter().map(|on| on.task.to_string()).collect::<Vec<_>>().join(",");
        let tool = task.tool.as_deref().unwrap_or("-");
        let command = task.command.as_deref().map(|line| format!(" `{line}`")).unwrap_or_default();
        let to = task.sub_plan.as_ref().map(|sub_plan| {
            let verb = if sub_plan.request.is_some() { "asks" } else { "plan" };
            format!(" {verb}:{}", sub_plan.agent.as_deref().unwrap_or_default())
        });
        let (kind, name) = (task.kind.as_str(), task.name());
        format!("{} {name} [{after}] {kind} {tool}{command}{}", task.id, to.unwrap_or_default())
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_plan_keeps_all_its_fields_in_order() {
    for (agent, plan) in plans() {
        let read = AgentPlan::read(&plan.to_string()).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&read.json()).unwrap(), plan, "{agent}");
        assert_eq!(AgentPlan::read(&format!("\u{feff}{plan}")).unwrap(), read);
    }
}

#[test]
fn the_names_of_earlier_designs_are_aliases() {
    let renamed = |agent: AgentType, names: &[(&str, &str)]| {
        let mut text = plan_of(agent).to_string();
        for (now, before) in names {
            assert!(text.contains(&format!("\"{now}\":")), "{now}");
            text = text.replace(&format!("\"{now}\":"), &format!("\"{before}\":"));
        }
        assert_eq!(AgentPlan::read(&text), AgentPlan::read(&plan_of(agent).to_string()), "{agent}");
    };
    let strategic = [("constraints", "thematic_elements"), ("locate", "FindSpatialContext"), ("entity", "entity_id")];
    renamed(
        AgentType::Strategic,
        &[&strategic[..], &[("steps", "dramatic_beats"), ("timeout_ms", "timeout")]].concat(),
    );
    renamed(AgentType::Strategic, &[("steps", "milestones")]);
    renamed(AgentType::Tactical, &[("steps", "execution_steps"), ("resources", "resource_requirements")]);
    renamed(AgentType::Tactical, &[("analyse", "AnalyzeNarrative")]);
    let perception = [("steps", "extraction_patterns"), ("updates", "state_update_sequence")];
    renamed(AgentType::Perception, &[&perception[..], &[("resolution", "entity_resolution_strategy")]].concat());
    let goals = r#"{"narrative_goals": [{"id": "g", "description": "x"}], "steps": []}"#;
    assert_eq!(AgentPlan::read(goals).unwrap().goals[0].id, "g");
    let extract: AgentRequest = serde_json::from_str(r#"{"ExtractEntities": {"context": "src"}}"#).unwrap();
    assert_eq!(extract, AgentRequest::Extract { context: "src".into() });
}

#[test]
fn a_strategic_plan_becomes_milestones_with_their_goals_and_constraints() {
    let proposal = compiled(AgentType::Strategic, &plan_of(AgentType::Strategic)).unwrap();
    let expected = "1 store [] Processing - plan:tactical\n\
                    2 form [1] Processing - plan:tactical\n\
                    3 where [] Retrieval - asks:perception\n\
                    4 judge [2,3] Analysis review_outcome";
    assert_eq!(lines(&proposal), expected);
    let notes = |n: usize| proposal.tasks[n].notes.join("; ");
    assert_eq!(
        notes(0),
        "goal: people can log in (done when a session is kept); goal: nobody logs in for another; \
         constraint: no new dependency; constraint: every secret is hashed"
    );
    assert_eq!(notes(1), "goal: people can log in (done when a session is kept); constraint: no new dependency");
    let sub_plan = proposal.tasks[1].sub_plan.as_ref().unwrap();
    let text = "## Background\n\n- goal: people can log in (done when a session is kept)\n\
                - constraint: no new dependency\n\n## Tasks\n\n- the form is there\n";
    assert_eq!(sub_plan.text, text);
    assert_eq!(proposal.title.as_deref(), Some("people can log in"));
}

#[test]
fn a_tactical_plan_becomes_steps_with_their_resources() {
    let proposal = compiled(AgentType::Tactical, &plan_of(AgentType::Tactical)).unwrap();
    let expected = "1 edit [] CodeImplementation edit_code\n\
                    2 run [1] ToolCall run_command `cargo test`\n\
                    3 ask [2] Analysis - asks:perception\n\
                    4 look [] Processing - plan:perception";
    assert_eq!(lines(&proposal), expected);
    let edit = &proposal.tasks[0];
    assert_eq!((&*edit.files, edit.timeout_ms), (&["src/**".to_owned()][..], Some(60_000)));
    assert_eq!(proposal.context, ["needs 2 of cores"]);
}

#[test]
fn a_perception_plan_searches_in_parallel_and_records_in_order() {
    let proposal = compiled(AgentType::Perception, &plan_of(AgentType::Perception)).unwrap();
    let expected = "1 entry [] Retrieval search_code\n\
                    2 tests [] Retrieval survey_files\n\
                    3 map [1] Processing record_finding\n\
                    4 gaps [2,3] Processing record_finding";
    assert_eq!(lines(&proposal), expected);
    assert_eq!(proposal.tasks[0].files, ["src/**"]);
    assert_eq!(proposal.tasks[0].notes, ["resolve names by symbol, then path; if several match: first"]);
}

#[test]
fn an_orchestrator_plan_delegates_its_steps_to_other_agents() {
    let proposal = compiled(AgentType::Orchestrator, &plan_of(AgentType::Orchestrator)).unwrap();
    let expected = "1 aim [] Processing - plan:strategic\n\
                    2 build [1] Processing - plan:tactical\n\
                    3 end [2] Analysis review_progress";
    assert_eq!(lines(&proposal), expected);
    assert_eq!(proposal.tasks[1].timeout_ms, Some(3_600_000));
}

#[test]
fn a_request_becomes_a_sub_plan_with_a_time_limit_and_no_retries() {
    let proposal = compiled(AgentType::Tactical, &plan_of(AgentType::Tactical)).unwrap();
    let task = &proposal.tasks[2];
    let sub_plan = task.sub_plan.as_ref().unwrap();
    assert_eq!((task.timeout_ms, task.retry, sub_plan.agent.as_deref()), (Some(1), Some(0), Some("perception")));
    assert_eq!(sub_plan.request, Some(AgentRequest::Analyse { text: "the last run".into() }));
}

#[test]
fn an_invalid_plan_is_refused_with_location_and_rule() {
    use AgentType::{Orchestrator, Perception, Strategic, Tactical};
    let cases = [
        (
            Tactical,
            ("/dependencies", json!({ "edit": ["look"], "look": ["run"], "run": ["edit"] })),
            "dependency cycle: edit -> look -> run -> edit; remove one of these dependencies",
        ),
        (Tactical, ("/dependencies", json!({ "run": ["run"] })), "task run waits for itself; remove that dependency"),
        (Tactical, ("/dependencies", json!({ "run": ["gone"] })), "/dependencies/run: the plan has no id \"gone\""),
        (Tactical, ("/dependencies", json!({ "gone": [] })), "/dependencies/gone: the plan has no id \"gone\""),
        (Tactical, ("/steps/3/id", json!("Edit")), "/steps/3/id: the id \"Edit\" is used twice"),
        (
            Tactical,
            ("/steps/3/id", json!("a b")),
            "/steps/3/id: \"a b\" is not an id: 1 to 64 letters, digits, - and _",
        ),
        (Tactical, ("/steps/0/description", json!(" ")), "/steps/0/description: this is empty"),
        (Tactical, ("/steps", json!([])), "/dependencies/ask: the plan has no id \"ask\""),
        (Tactical, ("/steps/1/command", Value::Null), "/steps/1: the tool needs a command"),
        (Tactical, ("/steps/0/command", json!("ls")), "/steps/0: the tool does not accept a command"),
        (Tactical, ("/steps/0/args", json!(["ls"])), "/steps/0/args: a tactical plan does not have this field"),
        (Tactical, ("/steps/0/description", json!("a\0b")), "/steps/0/description: a text holds no NUL"),
        (Tactical, ("/steps/0/tool", Value::Null), "/steps/0: name exactly one of tool, agent and request"),
        (Tactical, ("/steps/0/agent", json!("perception")), "/steps/0: name exactly one of tool, agent and request"),
        (
            Tactical,
            ("/goals", json!([{ "id": "g", "description": "x" }])),
            "/goals: a tactical plan does not have this field",
        ),
        (Orchestrator, ("/resources", json!({})), "/resources: a orchestrator plan does not have this field"),
        (Strategic, ("/constraints/1/goals", json!(["gone"])), "/constraints/1/goals: the plan has no id \"gone\""),
        (
            Strategic,
            ("/steps/0/agent", json!("orchestrator")),
            "/steps/0/agent: \"orchestrator\" is not one of tactical, perception",
        ),
        (Perception, ("/resolution/by", json!([])), "/resolution/by: 0 entries are not allowed: 1 to 1000"),
        (
            Orchestrator,
            ("/dependencies/aim", json!(["end"])),
            "dependency cycle: aim -> end -> build -> aim; remove one of these dependencies",
        ),
        (Tactical, ("/steps/0/timeout_ms", json!(0)), "/steps/0/timeout_ms: 0 is not allowed: 1 to 4294967295"),
        (Tactical, ("/steps/0/retry", json!(101)), "/steps/0/retry: 101 is not allowed: 0 to 100"),
    ];
    for (agent, (at, value), expected) in cases {
        assert_eq!(compiled(agent, &with(agent, at, value)).unwrap_err().to_string(), expected);
    }
}

#[test]
fn an_invalid_request_is_refused_when_its_plan_is_proposed() {
    use AgentType::{Perception, Strategic, Tactical};
    let request = |target: &str, what: Value, ms: u64| json!({ "id": "ask", "description": "x", "request": { "target_agent": target, "request": what, "timeout_ms": ms } });
    let analyse = |text: &str| json!({ "analyse": { "text": text } });
    let extract = || json!({ "extract": { "context": "x" } });
    let at = "/steps/0/request";
    let too_long = format!("{} characters are not allowed: 1 to {REQUEST_CHARS_MAX}", REQUEST_CHARS_MAX + 1);
    let out_of_range = |ms: u64| format!("{at}/timeout_ms: {ms} is not allowed: 1 to {REQUEST_TIMEOUT_MS_MAX}");
    let long = analyse(&"x".repeat(REQUEST_CHARS_MAX + 1));
    let ms_max = REQUEST_TIMEOUT_MS_MAX;
    let cases = [
        (Tactical, request("perception", analyse(" "), 1), format!("{at}/request/analyse/text: this is empty")),
        (Tactical, request("perception", long, 1), format!("{at}/request/analyse/text: {too_long}")),
        (Tactical, request("perception", analyse("x"), 0), out_of_range(0)),
        (Tactical, request("perception", analyse("x"), ms_max + 1), out_of_range(ms_max + 1)),
        (Perception, request("tactical", extract(), 1), format!("{at}: a perception plan does not have this field")),
        (
            Tactical,
            request("orchestrator", extract(), 1),
            format!("{at}/target_agent: \"orchestrator\" is not one of strategic, perception"),
        ),
        (
            Strategic,
            request("tactical", extract(), 1),
            format!("{at}: a tactical agent does not answer \"extract\": it answers [\"analyse\"]"),
        ),
    ];
    for (agent, step, expected) in cases {
        let refused = compiled(agent, &json!({ "steps": [step] })).unwrap_err();
        assert_eq!((refused.to_string(), refused.name()), (expected, "Rule"));
    }
    let without_time = json!({ "steps": [{ "id": "a", "description": "x", "request": {
        "target_agent": "perception", "request": { "locate": { "entity": "x" } } } }] });
    assert!(compiled(Tactical, &without_time).unwrap_err().to_string().contains("missing field `timeout_ms`"));
    let retried = with(Tactical, "/steps/2/retry", json!(1));
    assert_eq!(compiled(Tactical, &retried).unwrap_err().name(), "Rule", "it is made once");
}

#[test]
fn each_role_may_ask_and_delegate_only_to_its_listed_roles() {
    use AgentType::{Orchestrator, Perception, Strategic, Tactical};
    let asks = AgentType::ALL.map(|agent| Role::of(agent).asks);
    let expected: [&[AgentType]; 4] =
        [&[Tactical, Perception], &[Strategic, Perception], &[], &[Strategic, Tactical, Perception]];
    assert_eq!(asks, expected);
    // Delegation only goes down, so it never forms a cycle.
    let level = |agent| [Perception, Tactical, Strategic, Orchestrator].iter().position(|one| *one == agent);
    for agent in AgentType::ALL {
        let role = Role::of(agent);
        assert_eq!(role.agent, agent);
        assert!(role.delegates_to.iter().all(|to| level(*to) < level(agent)), "{agent}");
    }
}

/// The place in each role's form where failure handling is set.
const STEPS: [(AgentType, &str); 5] = [
    (AgentType::Strategic, "/steps/3"),
    (AgentType::Tactical, "/steps/0"),
    (AgentType::Perception, "/steps/0"),
    (AgentType::Perception, "/updates/1"),
    (AgentType::Orchestrator, "/steps/1"),
];

#[test]
fn every_role_may_set_retries_and_deadline_of_a_step() {
    for (agent, at) in STEPS {
        let mut plan = with(agent, &format!("{at}/retry"), json!(2));
        plan.pointer_mut(at).unwrap()["deadline_ms"] = json!(60_000);
        let tasks = compiled(agent, &plan).unwrap().tasks;
        let found = tasks.iter().filter(|task| (task.retry, task.deadline_ms) == (Some(2), Some(60_000)));
        assert_eq!(found.count(), 1, "{at}");
        let refusal = |field: &str, value: u64| {
            let at = format!("{at}/{field}");
            (compiled(agent, &with(agent, &at, json!(value))), at)
        };
        let (refused, place) = refusal("retry", u64::from(RETRIES_MAX) + 1);
        let (value, max) = (u64::from(RETRIES_MAX) + 1, u64::from(RETRIES_MAX));
        assert_eq!(refused.unwrap_err().to_string(), format!("{place}: {value} is not allowed: 0 to {max}"));
        let (refused, place) = refusal("deadline_ms", 0);
        let expected = format!("{place}: 0 is not allowed: 1 to {STEP_TIMEOUT_MS_MAX}");
        assert_eq!(refused.unwrap_err().to_string(), expected);
    }
}

#[test]
fn only_a_role_that_may_run_commands_may_set_an_undo() {
    for (agent, at) in STEPS {
        let undone = compiled(agent, &with(agent, &format!("{at}/undo"), json!("git checkout src")));
        if agent == AgentType::Tactical {
            assert_eq!(undone.unwrap().tasks[0].compensate.as_deref(), Some("git checkout src"));
        } else {
            let refused = undone.unwrap_err();
            assert!(matches!(&refused, PlanError::Rule(place, _) if *place == format!("{at}/undo")), "{refused}");
        }
    }
    for (at, undo) in [("/steps/0/undo", " "), ("/steps/0/undo", "a\0b"), ("/steps/2/undo", "git checkout src")] {
        compiled(AgentType::Tactical, &with(AgentType::Tactical, at, json!(undo))).unwrap_err();
    }
}

#[test]
fn failure_handling_and_undo_are_read_from_the_task_text() {
    let words = "- Write the parser (retry 3) (deadline 2h) (undo: `git checkout src`)\n";
    let registry = ToolRegistry::coding();
    let task = |agent| plan_words(agent, words, &registry).unwrap().compile(agent, &registry).unwrap().tasks.remove(0);
    let (tactical, orchestrator) = (task(AgentType::Tactical), task(AgentType::Orchestrator));
    assert_eq!((tactical.retry, tactical.deadline_ms), (Some(3), Some(7_200_000)));
    assert_eq!(tactical.compensate.as_deref(), Some("git checkout src"));
    let delegated = (orchestrator.retry, orchestrator.deadline_ms, orchestrator.compensate);
    assert_eq!(delegated, (Some(3), Some(7_200_000), None));
}

#[test]
fn an_agents_plan_is_accepted_completely_or_refused() {
    let refusal = |json: &str| AgentPlan::read(json).unwrap_err();
    let cases = [
        ("{", "EOF while parsing an object at line 1 column 1"),
        ("\"x\"", "invalid type: string \"x\""),
        (r#"{"tasks": []}"#, "unknown field `tasks`, expected one of"),
        (r#"{"steps": [], "steps": []}"#, "steps"),
        (r#"{"dependencies": {"a": [], "a": []}}"#, "duplicate key"),
        (r#"{"steps": [{"id": "a"}]}"#, "missing field `description`"),
        (r#"{"steps": [{"id": "a", "description": "x", "timeout_ms": "5s"}]}"#, "invalid type: string \"5s\""),
        (r#"{"steps": [{"id": "a", "description": "x", "agent": "poet"}]}"#, "unknown variant `poet`"),
    ];
    for (json, expected) in cases {
        let refused = refusal(json);
        assert_eq!(refused.name(), "Form", "{json}");
        assert!(refused.to_string().contains(expected), "{refused}");
    }
    let long = format!("{{\"steps\": [], \"{}\": 1}}", "x".repeat(PLAN_BYTES_MAX));
    assert_eq!(refusal(&long).name(), "Form");
    let step = |n: usize| json!({ "id": format!("s{n}"), "description": "x", "tool": "do_step" });
    let many = json!({ "steps": (0..=STEPS_MAX).map(step).collect::<Vec<_>>() });
    assert_eq!(compiled(AgentType::Tactical, &many).unwrap_err().name(), "Rule");
    assert_eq!(compiled(AgentType::Tactical, &json!({})).unwrap_err().name(), "EmptyPlan");
}

#[test]
fn an_accepted_plan_records_its_agent_and_tool_registry() {
    for (agent, plan) in plans() {
        let events = propose(compiled(agent, &plan).unwrap()).unwrap();
        let Event::TasksPlanned { origin, tasks, source, .. } = &events[0] else { panic!("{events:?}") };
        assert_eq!(serde_json::from_str::<Value>(source).unwrap(), plan);
        let checked = origin.agent.as_ref().unwrap();
        assert_eq!((checked.agent, checked.version), (agent, 1));
        let uses = tasks.iter().filter_map(|task| task.tool.as_ref());
        assert!(uses.clone().count() > 0 && uses.clone().all(|tool| checked.tools.contains(tool)), "{agent}");
    }
}

#[test]
fn an_agents_plan_is_replayed_from_its_recorded_command() {
    for (agent, plan) in plans() {
        let parent = Some(ParentTask { plan: "p".into(), task: TaskId(3), attempt: 2 });
        let mut proposal = Box::new(compiled(agent, &plan).unwrap());
        proposal.origin = Origin { planned_by: Some("a model".into()), parent, depth: 1, ..proposal.origin };
        let command = Command::Initialize { proposal, attachments: Vec::new(), config: PlannerConfig::default() };
        let events = Planner::default().process(command.clone()).unwrap();
        assert_eq!(Command::restore(&command.recorded(), &events).unwrap(), command);
    }
}

#[test]
fn the_planner_refuses_tools_and_requests_of_unchecked_plans() {
    let changed = |change: fn(&mut Proposal)| {
        let mut proposal = compiled(AgentType::Tactical, &plan_of(AgentType::Tactical)).unwrap();
        change(&mut proposal);
        propose(proposal)
    };
    assert!(changed(|_| {}).is_ok());
    let refusal = changed(|proposal| proposal.origin = Origin::default()).unwrap_err();
    assert_eq!(refusal, PlannerError::NotOfAgent("edit".into()));
    let refusal = changed(|proposal| {
        proposal.origin = Origin::default();
        proposal.tasks.iter_mut().for_each(|task| task.tool = None);
    });
    assert_eq!(refusal.unwrap_err(), PlannerError::NotOfAgent("ask".into()), "it asks an agent");
    let refusal = changed(|proposal| proposal.tasks[1].tool = Some("search_code".into()));
    assert_eq!(refusal.unwrap_err(), PlannerError::NotOfAgent("run".into()), "a tool of others");
}

#[test]
fn a_sub_plan_nested_too_deeply_is_refused() {
    let at_depth = |depth| {
        let mut proposal = compiled(AgentType::Perception, &plan_of(AgentType::Perception)).unwrap();
        proposal.origin.depth = depth;
        propose(proposal)
    };
    assert!(at_depth(SUB_PLAN_DEPTH_MAX).is_ok());
    let refusal = at_depth(SUB_PLAN_DEPTH_MAX + 1).unwrap_err();
    assert_eq!(refusal, PlannerError::TooDeep(SUB_PLAN_DEPTH_MAX + 1, SUB_PLAN_DEPTH_MAX));
}

#[test]
fn a_schema_has_the_fields_of_its_role_and_only_its_tools() {
    let registry = ToolRegistry::coding();
    for (agent, plan) in plans() {
        let schema = schema(agent, &registry);
        let properties = schema["properties"].as_object().unwrap();
        for field in plan.as_object().unwrap().keys() {
            assert!(properties.contains_key(field), "{agent}: {field}");
        }
        let step = &schema["properties"]["steps"]["items"]["properties"];
        assert!(["retry", "deadline_ms"].iter().all(|field| step.get(field).is_some()), "{step}");
        assert_eq!(step.get("undo").is_some(), agent == AgentType::Tactical, "{step}");
        assert_eq!(step.get("request").is_some(), agent != AgentType::Perception, "{step}");
        let text = schema.to_string();
        for other in AgentType::ALL {
            for tool in registry.tools_of(other) {
                let is_own = registry.tools_of(agent).any(|own| own.name == tool.name);
                assert_eq!(text.contains(&format!("{:?}", tool.name)), is_own, "{agent}: {}", tool.name);
            }
        }
    }
}

#[test]
fn a_schema_lists_exactly_the_fields_that_are_read() {
    // The JSON reader lists its fields after an unknown one.
    let known = |json: Value| {
        let refused = AgentPlan::read(&json.to_string()).unwrap_err().to_string();
        let list = refused.split("expected one of ").nth(1).unwrap().to_owned();
        list.split('`').skip(1).step_by(2).map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let fields = |of: &dyn Fn(&Value) -> Value| {
        let registry = searching(None);
        let all = AgentType::ALL.map(|agent| of(&schema(agent, &registry)["properties"]));
        all.iter().flat_map(|fields| fields.as_object().unwrap().keys().cloned()).collect::<BTreeSet<_>>()
    };
    const ALIASES: [&str; 9] = [
        "narrative_goals",
        "thematic_elements",
        "milestones",
        "dramatic_beats",
        "execution_steps",
        "extraction_patterns",
        "state_update_sequence",
        "resource_requirements",
        "entity_resolution_strategy",
    ];
    let mut plan = known(json!({ "?": 1 }));
    plan.retain(|field| !ALIASES.contains(&field.as_str()));
    assert_eq!(fields(&|plan| plan.clone()), plan);
    let step = known(json!({ "steps": [{ "?": 1 }] }));
    assert_eq!(fields(&|plan| plan["steps"]["items"]["properties"].clone()), step);
}

/// The default tools, where `look_up` has a command.
fn searching(agent: Option<&str>) -> ToolRegistry {
    let coding = ToolRegistry::coding();
    let look_up = coding.tool("look_up").unwrap().clone();
    let look_up = Tool { command: Some("rg --json".into()), agent: agent.map(str::to_owned), ..look_up };
    coding.with(vec![look_up], ToolNames::new(), Abilities::new()).unwrap()
}

#[test]
fn arguments_of_a_tools_command_are_single_words_whatever_they_hold() {
    let registry = searching(Some("finder"));
    let plan = json!({ "steps": [
        { "id": "a", "description": "x", "tool": "look_up", "args": ["it's; rm -rf $HOME", "`b`"] } ] });
    let plan = AgentPlan::read(&plan.to_string()).unwrap();
    let task = &plan.compile(AgentType::Tactical, &registry).unwrap().tasks[0];
    assert_eq!(task.command.as_deref(), Some(r"rg --json 'it'\''s; rm -rf $HOME' '`b`'"));
    assert_eq!((task.kind, task.assignee.as_deref()), (NodeKind::Retrieval, Some("finder")));
}
