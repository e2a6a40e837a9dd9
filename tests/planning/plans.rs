//! The four forms of plan: what they keep, what they mean as tasks, and what is refused.

use crewlog_mq::Handler;
use crewlog_planner::agents::registry::ToolRegistry;
use crewlog_planner::agents::{
    AgentPlan, AgentProposal, PLAN_BYTES_MAX, PlanError, STEP_TIMEOUT_MS_MAX, STEPS_MAX, plan_words, schema,
};
use crewlog_planner::event::{Command, Event, PlannerConfig};
use crewlog_planner::plan::{NodeKind, Origin, ParentTask, Proposal, SUB_PLAN_DEPTH_MAX, TaskId};
use crewlog_planner::planner::{Planner, PlannerError, RETRIES_MAX};
use crewlog_planner::protocol::AgentType;
use serde_json::{Value, json};

/// A plan of each type as the first version of its form has it. These never change: old plans stay readable.
pub fn first_versions() -> [(AgentType, Value); 4] {
    let strategic = json!({
        "narrative_goals": [
            { "id": "login", "goal": "people can log in", "reached_when": "a session is kept" },
            { "id": "safe", "goal": "nobody logs in for another" },
        ],
        "thematic_elements": [
            { "constraint": "no new dependency" },
            { "constraint": "every secret is hashed", "goals": ["safe"] },
        ],
        "dramatic_beats": [
            { "id": "store", "milestone": "sessions are stored", "goals": ["login", "safe"], "agent": "tactical" },
            { "id": "form", "milestone": "the form is there", "goals": ["login"], "after": ["store"], "agent": "tactical" },
            { "id": "where", "milestone": "it is known where users are kept", "request": {
                "target_agent": "perception", "request": { "locate": { "entity": "struct User" } }, "timeout_ms": 5000 } },
            { "id": "judge", "milestone": "it is good enough", "after": ["form", "where"], "tool": "review_outcome" },
        ],
    });
    let tactical = json!({
        "execution_steps": [
            { "id": "edit", "step": "Write the parser", "tool": "edit_code", "timeout_ms": 60000 },
            { "id": "run", "step": "Run the tests", "tool": "run_command", "command": "cargo test" },
            { "id": "ask", "step": "Which tests are slow?", "request": {
                "target_agent": "perception", "request": { "analyse": { "text": "the last run" } }, "timeout_ms": 1 } },
            { "id": "look", "step": "Survey the benches", "agent": "perception" },
        ],
        "dependencies": { "run": ["edit"], "ask": ["run"] },
        "resource_requirements": {
            "files": { "edit": ["src/**"] }, "agent_types": ["perception"], "capacities": { "cores": 2 } },
    });
    let perception = json!({
        "extraction_patterns": [
            { "id": "entry", "look_for": "entry points", "within": ["src/**"], "tool": "search_code" },
            { "id": "tests", "look_for": "tests", "tool": "survey_files" },
        ],
        "entity_resolution_strategy": { "by": ["symbol", "path"], "ambiguous": "first" },
        "state_update_sequence": [
            { "id": "map", "keep": "a map of the parts", "from": ["entry"], "tool": "record_finding" },
            { "id": "gaps", "keep": "what has no test", "from": ["tests"], "tool": "record_finding" },
        ],
    });
    let orchestration = json!({
        "assignments": [
            { "id": "aim", "work": "Say what is wanted", "agent": "strategic" },
            { "id": "build", "work": "Build it", "agent": "tactical", "after": ["aim"], "timeout_ms": 3600000 },
            { "id": "end", "work": "See where all stands", "tool": "review_progress", "after": ["build"] },
        ],
    });
    [
        (AgentType::Strategic, strategic),
        (AgentType::Tactical, tactical),
        (AgentType::Perception, perception),
        (AgentType::Orchestrator, orchestration),
    ]
}

pub fn first_version(agent: AgentType) -> Value {
    first_versions().into_iter().find(|(of, _)| *of == agent).unwrap().1
}

fn lowered(agent: AgentType, plan: &Value) -> Result<Proposal, PlanError> {
    AgentPlan::read(agent, &plan.to_string())?.lower(&ToolRegistry::coding())
}

pub fn proposed(agent: AgentType, plan: &Value) -> Command {
    let (registry, origin) = (ToolRegistry::coding(), Origin::default());
    let proposal = Box::new(AgentProposal { agent, plan: plan.to_string(), registry, origin });
    Command::ProposeAgentPlan { proposal, attachments: Vec::new(), config: PlannerConfig::default() }
}

/// A plan with one thing changed.
fn with(agent: AgentType, at: &str, value: Value) -> Value {
    let mut plan = first_version(agent);
    let (of, key) = at.rsplit_once('/').unwrap();
    match plan.pointer_mut(of).unwrap() {
        Value::Array(list) => list[key.parse::<usize>().unwrap()] = value,
        object => object[key] = value,
    }
    plan
}

/// Each task in a line: what it waits for, what it is, how it is done.
fn lines(proposal: &Proposal) -> String {
    let lines = proposal.tasks.iter().map(|task| {
        let after = task.depends_on.iter().map(|on| on.task.to_string()).collect::<Vec<_>>().join(",");
        let tool = task.tool.as_deref().unwrap_or("-");
        let command = task.command.as_deref().map(|line| format!(" `{line}`")).unwrap_or_default();
        let to = task.sub_plan.as_ref().and_then(|sub| sub.agent.clone()).map(|to| format!(" plan:{to}"));
        let asks = task.request.as_ref().map(|asking| format!(" asks:{}", asking.step.target_agent));
        let (kind, name) = (task.kind.as_str(), task.name());
        format!(
            "{} {name} [{after}] {kind} {tool}{command}{}{}",
            task.id,
            to.unwrap_or_default(),
            asks.unwrap_or_default()
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn each_form_keeps_all_that_it_was_given_in_its_order() {
    for (agent, plan) in first_versions() {
        let read = AgentPlan::read(agent, &plan.to_string()).unwrap();
        assert_eq!(read.agent(), agent);
        let mut written: Value = serde_json::from_str(&read.json()).unwrap();
        assert_eq!(written["version"], 1);
        written.as_object_mut().unwrap().remove("version");
        assert_eq!(written, plan, "{agent}");
        assert_eq!(AgentPlan::read(agent, &read.json()).unwrap(), read);
    }
}

#[test]
fn a_strategic_plan_means_milestones_with_their_goals_and_constraints() {
    let proposal = lowered(AgentType::Strategic, &first_version(AgentType::Strategic)).unwrap();
    let expected = "1 store [] Processing - plan:tactical\n\
                    2 form [1] Processing - plan:tactical\n\
                    3 where [] Retrieval - asks:perception\n\
                    4 judge [2,3] Analysis review_outcome";
    assert_eq!(lines(&proposal), expected);
    let told = |n: usize| proposal.tasks[n].notes.join("; ");
    assert_eq!(
        told(0),
        "goal: people can log in (reached when a session is kept); goal: nobody logs in for another; \
         constraint: no new dependency; constraint: every secret is hashed"
    );
    assert_eq!(told(1), "goal: people can log in (reached when a session is kept); constraint: no new dependency");
    let sub_plan = proposal.tasks[1].sub_plan.as_ref().unwrap();
    let text = "## Background\n\n- goal: people can log in (reached when a session is kept)\n\
                - constraint: no new dependency\n\n## Tasks\n\n- the form is there\n";
    assert_eq!(sub_plan.text, text);
    assert_eq!(proposal.title.as_deref(), Some("people can log in"));
}

#[test]
fn a_tactical_plan_means_steps_with_what_they_need() {
    let proposal = lowered(AgentType::Tactical, &first_version(AgentType::Tactical)).unwrap();
    let expected = "1 edit [] CodeImplementation edit_code\n\
                    2 run [1] ToolCall run_command `cargo test`\n\
                    3 ask [2] Analysis - asks:perception\n\
                    4 look [] Processing - plan:perception";
    assert_eq!(lines(&proposal), expected);
    let edit = &proposal.tasks[0];
    assert_eq!((&*edit.files, edit.timeout_ms), (&["src/**".to_owned()][..], Some(60_000)));
    assert_eq!(proposal.tasks[2].retry, Some(0), "what was asked for in time is not asked for again");
    assert_eq!(proposal.context, ["needs 2 of cores"]);
}

#[test]
fn a_perception_plan_looks_side_by_side_and_keeps_one_after_another() {
    let proposal = lowered(AgentType::Perception, &first_version(AgentType::Perception)).unwrap();
    let expected = "1 entry [] Retrieval search_code\n\
                    2 tests [] Retrieval survey_files\n\
                    3 map [1] Processing record_finding\n\
                    4 gaps [2,3] Processing record_finding";
    assert_eq!(lines(&proposal), expected);
    let names = "a name is looked up by symbol, then path; one that fits several things means the first";
    assert_eq!(proposal.tasks[0].notes, ["look in src/**", names]);
}

#[test]
fn an_orchestration_plan_says_who_does_what_and_when() {
    let proposal = lowered(AgentType::Orchestrator, &first_version(AgentType::Orchestrator)).unwrap();
    let expected = "1 aim [] Processing - plan:strategic\n\
                    2 build [1] Processing - plan:tactical\n\
                    3 end [2] Analysis review_progress";
    assert_eq!(lines(&proposal), expected);
    assert_eq!(proposal.tasks[1].timeout_ms, Some(3_600_000));
}

#[test]
fn a_fault_is_told_with_its_place_and_kind() {
    use AgentType::{Orchestrator, Perception, Strategic, Tactical};
    let request = |target: &str, what: Value, ms: u64| json!({ "id": "ask", "step": "x", "request": { "target_agent": target, "request": what, "timeout_ms": ms } });
    let analyse = |text: &str| json!({ "analyse": { "text": text } });
    let cases = [
        (
            with(Tactical, "/dependencies", json!({ "edit": ["look"], "look": ["run"], "run": ["edit"] })),
            "/dependencies/edit: these wait for each other in a circle: edit -> look -> run -> edit",
        ),
        (
            with(Tactical, "/dependencies", json!({ "run": ["run"] })),
            "/dependencies/run: these wait for each other in a circle: run -> run",
        ),
        (
            with(Tactical, "/dependencies", json!({ "run": ["gone"] })),
            "/dependencies/run: nothing in the plan has the id \"gone\"",
        ),
        (
            with(Tactical, "/dependencies", json!({ "gone": [] })),
            "/dependencies/gone: nothing in the plan has the id \"gone\"",
        ),
        (
            with(Tactical, "/execution_steps/3/id", json!("Edit")),
            "/execution_steps/3/id: the id \"Edit\" is used twice",
        ),
        (
            with(Tactical, "/execution_steps/3/id", json!("a b")),
            "/execution_steps/3/id: \"a b\" is no id: 1 to 64 letters, digits, - and _",
        ),
        (with(Tactical, "/execution_steps/0/step", json!(" ")), "/execution_steps/0: this is empty"),
        (
            with(Tactical, "/execution_steps/1/command", Value::Null),
            "/execution_steps/1: the tool run_command wants a command",
        ),
        (
            with(Tactical, "/execution_steps/0/tool", Value::Null),
            "/execution_steps/0: say exactly one of tool, request and agent",
        ),
        (
            with(Tactical, "/resource_requirements/agent_types", json!([])),
            "/execution_steps/2: a step needs a perception agent, which the resource requirements do not list",
        ),
        (
            with(Tactical, "/execution_steps/2", request("perception", analyse("x"), 0)),
            "/execution_steps/2/request: timeout_ms is 0, and must be from 1 to 86400000",
        ),
        (
            with(Tactical, "/execution_steps/2", request("perception", analyse(""), 1)),
            "/execution_steps/2/request: the request to perception asks about nothing: say what it is to analyse",
        ),
        (
            with(Strategic, "/thematic_elements/1/goals", json!(["gone"])),
            "/thematic_elements/1/goals/0: nothing in the plan has the id \"gone\"",
        ),
        (
            with(Strategic, "/dramatic_beats/0/agent", json!("orchestrator")),
            "/dramatic_beats/0: a strategic agent may not leave work to a orchestrator agent, which does not plan in more detail",
        ),
        (
            with(Perception, "/entity_resolution_strategy/by", json!([])),
            "/entity_resolution_strategy/by: this is empty",
        ),
        (
            with(Orchestrator, "/assignments/0/after", json!(["end"])),
            "/assignments/0/after: these wait for each other in a circle: aim -> end -> build -> aim",
        ),
    ];
    for (plan, expected) in cases {
        let agent = first_versions()
            .into_iter()
            .find(|(_, of)| of.as_object().unwrap().keys().eq(plan.as_object().unwrap().keys()));
        let refusal = Planner::new().process(proposed(agent.unwrap().0, &plan)).unwrap_err();
        assert_eq!(refusal.to_string(), expected);
        assert!(matches!(refusal, PlannerError::AgentPlan(_)), "{refusal:?}");
    }
}

#[test]
fn a_step_is_given_some_time_and_not_too_much() {
    let cases = [
        (AgentType::Tactical, "/execution_steps/0/timeout_ms", 0),
        (AgentType::Tactical, "/execution_steps/0/timeout_ms", STEP_TIMEOUT_MS_MAX + 1),
        (AgentType::Orchestrator, "/assignments/1/timeout_ms", 1_000_000_000_000_000_000),
    ];
    for (agent, at, value) in cases {
        let refusal = lowered(agent, &with(agent, at, json!(value))).unwrap_err();
        assert_eq!(refusal.to_string(), format!("{at}: {value} ms are no time for a step: 1 to 4294967295"));
    }
    lowered(AgentType::Tactical, &with(AgentType::Tactical, cases[0].1, json!(STEP_TIMEOUT_MS_MAX))).unwrap();
}

/// Where each form says what is done about the failures of a step.
const CARES: [(AgentType, &str); 5] = [
    (AgentType::Strategic, "/dramatic_beats/3"),
    (AgentType::Tactical, "/execution_steps/0"),
    (AgentType::Perception, "/extraction_patterns/0"),
    (AgentType::Perception, "/state_update_sequence/1"),
    (AgentType::Orchestrator, "/assignments/1"),
];

#[test]
fn each_form_says_how_often_a_step_is_tried_again_and_by_when_it_must_have_ended() {
    for (agent, at) in CARES {
        let said = with(agent, &format!("{at}/care"), json!({ "retry": 2, "deadline_ms": 60_000 }));
        let proposal = lowered(agent, &said).unwrap();
        let cared = proposal.tasks.iter().filter(|task| (task.retry, task.deadline_ms) == (Some(2), Some(60_000)));
        assert_eq!(cared.count(), 1, "{at}");
        let read = AgentPlan::read(agent, &said.to_string()).unwrap();
        assert_eq!(AgentPlan::read(agent, &read.json()).unwrap(), read, "it is kept");
        let often = with(agent, &format!("{at}/care"), json!({ "retry": RETRIES_MAX + 1 }));
        let (value, max, place) = (RETRIES_MAX + 1, RETRIES_MAX, format!("{at}/care/retry"));
        assert_eq!(lowered(agent, &often), Err(PlanError::Retry { at: place, value, max }));
        let never = with(agent, &format!("{at}/care"), json!({ "deadline_ms": 0 }));
        let (value, max, place) = (0, STEP_TIMEOUT_MS_MAX, format!("{at}/care/deadline_ms"));
        assert_eq!(lowered(agent, &never), Err(PlanError::Timeout { at: place, value, max }));
    }
}

#[test]
fn only_an_agent_that_may_run_commands_says_how_a_step_is_undone() {
    for (agent, at) in CARES {
        let undone = with(agent, &format!("{at}/care"), json!({ "undo": "git checkout src" }));
        let proposal = lowered(agent, &undone);
        if agent == AgentType::Tactical {
            assert_eq!(proposal.unwrap().tasks[0].compensate.as_deref(), Some("git checkout src"));
        } else {
            let refused = proposal.unwrap_err();
            assert!(
                matches!(&refused, PlanError::Care { at: place, .. } if *place == format!("{at}/care")),
                "{refused}"
            );
        }
    }
    let refused = |at: &str, care: Value| {
        let refused = lowered(AgentType::Tactical, &with(AgentType::Tactical, at, care)).unwrap_err();
        assert_eq!(refused.name(), "Care", "{refused}");
    };
    refused("/execution_steps/0/care", json!({ "undo": " " }));
    refused("/execution_steps/0/care", json!({ "undo": "a\0b" }));
    // What is asked changes nothing, and is asked once.
    refused("/execution_steps/2/care", json!({ "undo": "git checkout src" }));
    refused("/execution_steps/2/care", json!({ "retry": 1 }));
}

#[test]
fn what_words_say_of_failures_and_undoing_goes_into_the_plan_that_an_agent_makes_of_them() {
    let words = "- Write the parser (retry 3) (deadline 2h) (undo: `git checkout src`)\n";
    let task = |agent| {
        let plan = plan_words(agent, words, &ToolRegistry::coding()).unwrap();
        plan.lower(&ToolRegistry::coding()).unwrap().tasks.remove(0)
    };
    let (tactical, orchestrator) = (task(AgentType::Tactical), task(AgentType::Orchestrator));
    assert_eq!((tactical.retry, tactical.deadline_ms), (Some(3), Some(7_200_000)));
    assert_eq!(tactical.compensate.as_deref(), Some("git checkout src"));
    assert_eq!(
        (orchestrator.retry, orchestrator.deadline_ms, orchestrator.compensate),
        (Some(3), Some(7_200_000), None)
    );
}

#[test]
fn a_form_is_read_whole_or_not_at_all() {
    let tactical = AgentType::Tactical;
    let refusal = |json: &str| AgentPlan::read(tactical, json).unwrap_err();
    assert_eq!(refusal("{\n  \"steps\": []}").name(), "Form");
    assert_eq!(refusal("{").name(), "Form");
    assert_eq!(refusal("[]").name(), "Form");
    for version in ["0", "2", "\"1\"", "-1"] {
        let expected = format!("a tactical plan of version {version} cannot be read: the versions are 1 to 1");
        assert_eq!(refusal(&format!("{{\"version\": {version}, \"execution_steps\": []}}")).to_string(), expected);
    }
    let long = format!("{{\"execution_steps\": [], \"{}\": 1}}", "x".repeat(PLAN_BYTES_MAX));
    assert_eq!(refusal(&long).name(), "TooLong");
    let step = |n: usize| json!({ "id": format!("s{n}"), "step": "x", "tool": "do_step" });
    let many = json!({ "execution_steps": (0..=STEPS_MAX).map(step).collect::<Vec<_>>() });
    assert_eq!(lowered(tactical, &many).unwrap_err().name(), "TooMany");
    let none = Planner::new().process(proposed(tactical, &json!({ "execution_steps": [] }))).unwrap_err();
    assert!(none.to_string().starts_with("/execution_steps: there is nothing in it"), "{none}");
}

#[test]
fn an_accepted_plan_says_in_its_event_whose_it_is_and_by_which_tools_it_was_judged() {
    for (agent, plan) in first_versions() {
        let events = Planner::new().process(proposed(agent, &plan)).unwrap();
        let Event::TasksPlanned { source, origin, tasks, .. } = &events[0] else { panic!("{events:?}") };
        assert_eq!(*source, plan.to_string(), "the plan as it was given");
        let judged = origin.agent.as_ref().unwrap();
        assert_eq!((judged.agent, judged.version), (agent, 1));
        let uses = tasks.iter().filter_map(|task| task.tool.as_ref());
        assert!(uses.clone().count() > 0 && uses.clone().all(|tool| judged.tools.contains(tool)), "{agent}");
    }
}

#[test]
fn an_agents_plan_is_decided_again_from_what_is_kept() {
    for (agent, plan) in first_versions() {
        let parent = Some(ParentTask { plan: "p".into(), task: TaskId(3), attempt: 2 });
        let Command::ProposeAgentPlan { mut proposal, attachments, config } = proposed(agent, &plan) else { panic!() };
        proposal.origin = Origin { planned_by: Some("a model".into()), parent, depth: 1, agent: None };
        let command = Command::ProposeAgentPlan { proposal, attachments, config };
        let events = Planner::new().process(command.clone()).unwrap();
        let restored = Command::restore(&command.recorded(), &events).unwrap();
        assert_eq!(restored, command);
        assert_eq!(Planner::new().process(restored).unwrap(), events);
    }
}

#[test]
fn nothing_of_an_agents_plan_gets_in_by_another_door() {
    let by_the_other = |change: fn(&mut Proposal)| {
        let mut proposal = lowered(AgentType::Tactical, &first_version(AgentType::Tactical)).unwrap();
        change(&mut proposal);
        let proposal = Box::new(proposal);
        Planner::new().process(Command::Propose { proposal, attachments: Vec::new(), config: PlannerConfig::default() })
    };
    let refusal = by_the_other(|_| {}).unwrap_err();
    assert_eq!(refusal, PlannerError::OriginNotOfAgent);
    let refusal = by_the_other(|proposal| proposal.origin = Origin::default()).unwrap_err();
    assert_eq!(refusal, PlannerError::NotOfAgent { task: TaskId(1) });
    let refusal = by_the_other(|proposal| {
        proposal.origin = Origin::default();
        proposal.tasks.iter_mut().for_each(|task| task.tool = None);
    });
    assert_eq!(refusal.unwrap_err(), PlannerError::NotOfAgent { task: TaskId(3) }, "it asks an agent");
}

#[test]
fn a_plan_below_too_many_others_is_refused() {
    let at_depth = |depth| {
        let Command::ProposeAgentPlan { mut proposal, attachments, config } =
            proposed(AgentType::Perception, &first_version(AgentType::Perception))
        else {
            panic!()
        };
        proposal.origin.depth = depth;
        Planner::new().process(Command::ProposeAgentPlan { proposal, attachments, config })
    };
    assert!(at_depth(SUB_PLAN_DEPTH_MAX).is_ok());
    let refusal = at_depth(SUB_PLAN_DEPTH_MAX + 1).unwrap_err();
    assert_eq!(refusal, PlannerError::TooDeep { depth: SUB_PLAN_DEPTH_MAX + 1, max: SUB_PLAN_DEPTH_MAX });
}

#[test]
fn work_goes_only_to_agents_that_plan_in_more_detail_so_it_never_comes_back() {
    for agent in AgentType::ALL {
        assert!(!agent.may_delegate_to(agent));
        for other in AgentType::ALL {
            assert!(!(agent.may_delegate_to(other) && other.may_delegate_to(agent)), "{agent} and {other}");
        }
    }
}

#[test]
fn a_schema_names_all_fields_of_its_form_and_only_the_tools_of_its_agent() {
    let registry = ToolRegistry::coding();
    for (agent, plan) in first_versions() {
        let schema = schema(agent, &registry);
        for field in plan.as_object().unwrap().keys() {
            assert!(schema["properties"].get(field).is_some(), "{agent}: {field}");
        }
        let text = schema.to_string();
        assert!(["retry", "deadline_ms"].iter().all(|field| text.contains(&format!("{field:?}:"))), "{text}");
        assert_eq!(text.contains("\"undo\":"), agent == AgentType::Tactical, "{text}");
        for other in AgentType::ALL {
            for tool in registry.tools_of(other) {
                let is_own = registry.tools_of(agent).any(|own| own.name == tool.name);
                assert_eq!(text.contains(&format!("{:?}", tool.name)), is_own, "{agent}: {}", tool.name);
            }
        }
    }
}

#[test]
fn a_command_of_a_tool_takes_arguments_as_single_words_whatever_they_hold() {
    let mut parts = crewlog_planner::agents::registry::Parts::from(ToolRegistry::coding());
    let tool = parts.tools.iter_mut().find(|tool| tool.name == "look_up").unwrap();
    tool.command = Some("rg --json".into());
    tool.agent = Some("finder".into());
    let registry = ToolRegistry::new(parts).unwrap();
    let plan = json!({ "execution_steps": [
        { "id": "a", "step": "x", "tool": "look_up", "args": ["it's; rm -rf $HOME", "`b`"] } ] });
    let plan = AgentPlan::read(AgentType::Tactical, &plan.to_string()).unwrap();
    let task = &plan.lower(&registry).unwrap().tasks[0];
    assert_eq!(task.command.as_deref(), Some(r"rg --json 'it'\''s; rm -rf $HOME' '`b`'"));
    assert_eq!((task.kind, task.assignee.as_deref()), (NodeKind::Retrieval, Some("finder")));
}

#[test]
fn a_null_version_and_a_byte_order_mark_say_nothing_and_a_plan_of_no_steps_is_told_where() {
    for (agent, plan) in first_versions() {
        let mut nameless = plan.clone();
        nameless["version"] = Value::Null;
        assert_eq!(lowered(agent, &nameless).unwrap().tasks, lowered(agent, &plan).unwrap().tasks);
        let marked = format!("\u{feff}{plan}");
        assert_eq!(AgentPlan::read(agent, &marked), AgentPlan::read(agent, &plan.to_string()));
    }
    let empty = |agent, lists: &[&str]| {
        let mut plan = first_version(agent);
        lists.iter().for_each(|list| plan[*list] = json!([]));
        lowered(agent, &plan).unwrap_err().to_string()
    };
    let said =
        |at: &str| format!("{at}: there is nothing in it, so that nothing would be done; give it at least one entry");
    assert_eq!(empty(AgentType::Tactical, &["execution_steps"]), said("/execution_steps"));
    assert_eq!(empty(AgentType::Strategic, &["dramatic_beats"]), said("/dramatic_beats"));
    assert_eq!(empty(AgentType::Orchestrator, &["assignments"]), said("/assignments"));
    let of_perception = ["extraction_patterns", "state_update_sequence"];
    assert_eq!(empty(AgentType::Perception, &of_perception), said("/extraction_patterns"));
}
