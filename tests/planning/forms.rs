//! What is said of a plan that is not of its agent's form: where it is wrong, what belongs there, and an example that mends it.

use crewlog_planner::agents::{AgentPlan, Misfit, PlanError};
use crewlog_planner::protocol::AgentType;
use serde_json::{Value, json};

use super::plans::first_version;

fn misfit(agent: AgentType, json: &str) -> Misfit {
    match AgentPlan::read(agent, json) {
        Err(PlanError::Form { misfit, .. }) => *misfit,
        other => panic!("{json}: {other:?}"),
    }
}

/// A plan of each type that says all that its form lets it say, if not all of it in one step.
fn full(agent: AgentType) -> Value {
    let care = json!({ "retry": 1, "deadline_ms": 60_000, "undo": "git checkout src" });
    let ask = |what: Value| json!({ "target_agent": "perception", "request": what, "timeout_ms": 5_000 });
    let asks = [
        ask(json!({ "analyse": { "text": "the last run" } })),
        ask(json!({ "extract": { "context": "src" } })),
        ask(json!({ "locate": { "entity": "struct User" } })),
    ];
    let mut plan = first_version(agent);
    plan["version"] = json!(1);
    match agent {
        AgentType::Strategic => {
            plan["dramatic_beats"][0]["care"] = care;
            for (beat, ask) in asks.into_iter().enumerate() {
                plan["dramatic_beats"][beat]["request"] = ask;
            }
        }
        AgentType::Tactical => {
            plan["execution_steps"][0]["care"] = care;
            plan["execution_steps"][0]["args"] = json!(["src"]);
            for (step, ask) in asks.into_iter().enumerate() {
                plan["execution_steps"][step]["request"] = ask;
            }
        }
        AgentType::Perception => {
            plan["extraction_patterns"][0]["care"] = care.clone();
            plan["extraction_patterns"][0]["args"] = json!(["fn main"]);
            plan["state_update_sequence"][0]["care"] = care;
        }
        AgentType::Orchestrator => {
            plan["assignments"][0]["care"] = care;
            for (work, ask) in asks.into_iter().enumerate() {
                plan["assignments"][work]["request"] = ask;
            }
        }
    }
    AgentPlan::read(agent, &plan.to_string()).expect("it is of the form");
    plan
}

/// The places of all values in a plan, but for itself.
fn places(of: &Value, at: &str, places: &mut Vec<String>) {
    let mut inner = |key: String, value: &Value| {
        let at = format!("{at}/{key}");
        self::places(value, &at, places);
        places.push(at);
    };
    match of {
        Value::Object(object) => object.iter().for_each(|(key, value)| inner(key.clone(), value)),
        Value::Array(list) => list.iter().enumerate().for_each(|(n, value)| inner(n.to_string(), value)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The words of the library that reads JSON, which people and agents should not have to know.
const NOT_OUR_WORDS: [&str; 9] = [
    "missing field",
    "unknown field",
    "invalid type",
    "invalid value",
    "invalid length",
    "unknown variant",
    "expected",
    "EOF",
    "at line",
];

fn is_in_our_words(said: &str) {
    assert!(!NOT_OUR_WORDS.iter().any(|words| said.contains(words)), "{said}");
}

/// The object in which a refusal names a field, the field, and the example that it gives of it.
fn named(misfit: &Misfit) -> Option<(&str, &str, Value)> {
    let (of, field, example) = match misfit {
        Misfit::Missing { at, field, example, .. } => (at.as_str(), field, example),
        // The fault may be within the field.
        Misfit::Kind { at, field, example, .. } => {
            let end = format!("{at}/").rfind(&format!("/{field}/")).expect("the place is in the field");
            (&at[..end], field, example)
        }
        Misfit::Unknown { .. } | Misfit::NoPlan { .. } | Misfit::NoJson(_) => return None,
    };
    Some((of, field, serde_json::from_str(example).expect("an example is JSON")))
}

/// That a plan is taken as soon as every example has been followed that its refusals give.
fn is_mended_by_examples(agent: AgentType, mut plan: Value) {
    /// More fields than one are missing of any object.
    const STEPS_MAX: usize = 4;
    for _ in 0..STEPS_MAX {
        let Err(refused) = AgentPlan::read(agent, &plan.to_string()) else { return };
        let PlanError::Form { misfit, .. } = &refused else { panic!("{refused}") };
        let Some((of, field, example)) = named(misfit) else { panic!("{refused}") };
        plan.pointer_mut(of).expect("it is there")[field] = example;
    }
    panic!("{plan} is not mended by examples");
}

#[test]
fn whatever_stands_where_something_else_belongs_is_told_with_its_place_and_an_example_that_mends_it() {
    let others = [
        json!(7),
        json!(-1),
        json!(0.5),
        json!("x"),
        json!(true),
        json!(null),
        json!([]),
        json!([[]]),
        json!({}),
        json!({ "x": 7 }),
    ];
    let mut n_told = 0;
    for agent in AgentType::ALL {
        let full = full(agent);
        let mut all = Vec::new();
        places(&full, "", &mut all);
        for at in all {
            for other in &others {
                let mut plan = full.clone();
                *plan.pointer_mut(&at).unwrap() = other.clone();
                let Err(refused) = AgentPlan::read(agent, &plan.to_string()) else { continue };
                let said = refused.to_string();
                is_in_our_words(&said);
                if at == "/version" {
                    continue;
                }
                n_told += 1;
                match misfit(agent, &plan.to_string()) {
                    Misfit::Missing { at: place, .. } | Misfit::Kind { at: place, .. } => {
                        assert!(place.starts_with(&at), "{said}");
                        is_mended_by_examples(agent, plan);
                    }
                    Misfit::Unknown { at: place, known, .. } => {
                        assert!(place.starts_with(&at) && !known.is_empty(), "{said}");
                    }
                    Misfit::NoPlan { .. } | Misfit::NoJson(_) => panic!("{said}"),
                }
            }
        }
    }
    assert!(n_told > 500, "{n_told}");
}

#[test]
fn a_field_that_is_missing_is_named_with_what_it_says() {
    let mut n_missing = 0;
    for agent in AgentType::ALL {
        let full = full(agent);
        let mut all = Vec::new();
        places(&full, "", &mut all);
        for at in all {
            let (of, field) = at.rsplit_once('/').unwrap();
            let mut plan = full.clone();
            let Some(object) = plan.pointer_mut(of).unwrap().as_object_mut() else { continue };
            object.remove(field);
            let Err(refused) = AgentPlan::read(agent, &plan.to_string()) else { continue };
            is_in_our_words(&refused.to_string());
            n_missing += 1;
            match misfit(agent, &plan.to_string()) {
                Misfit::Missing { at, field: missing, .. } => {
                    assert_eq!((&*at, missing), (of, field));
                    is_mended_by_examples(agent, plan);
                }
                // Of what may be asked exactly one must stand there.
                Misfit::Kind { at, .. } => assert_eq!(at, of),
                other => panic!("{other}"),
            }
        }
    }
    assert!(n_missing > 20, "{n_missing}");
}

/// What is said of a plan that is not of its agent's form.
fn check(agent: AgentType, plan: &Value, expected: &str) {
    let said = AgentPlan::read(agent, &plan.to_string()).unwrap_err().to_string();
    assert_eq!(said, format!("this is no {agent} plan: {expected}"));
}

#[test]
fn a_plan_that_is_not_of_its_form_is_refused_in_words_that_say_what_to_mend() {
    let tactical = |step: Value| json!({ "execution_steps": [step] });
    check(
        AgentType::Tactical,
        &json!({}),
        r#""execution_steps" is missing: it says which steps there are, in order; write "execution_steps": [{ "id": "edit", "step": "Write the parser", "tool": "edit_code" }]"#,
    );
    check(
        AgentType::Tactical,
        &tactical(json!({ "id": "a" })),
        r#"/execution_steps/0: "step" is missing: it says what is done; write "step": "Write the parser""#,
    );
    check(
        AgentType::Tactical,
        &tactical(json!({ "id": "a", "step": 7 })),
        r#"/execution_steps/0/step: 7 is no text: "step" says what is done; write "step": "Write the parser""#,
    );
    check(
        AgentType::Tactical,
        &tactical(json!({ "id": "a", "step": "x", "tol": "edit_code" })),
        r#"/execution_steps/0: nothing here is called "tol"; what may stand here is id, step, tool, args, command, request, agent, timeout_ms, care"#,
    );
    check(
        AgentType::Tactical,
        &tactical(json!({ "id": "a", "step": "x", "timeout_ms": "5s" })),
        r#"/execution_steps/0/timeout_ms: "5s" is no number of milliseconds: "timeout_ms" says after how many milliseconds a run of it is stopped; write "timeout_ms": 60000"#,
    );
    check(
        AgentType::Tactical,
        &tactical(json!({ "id": "a", "step": "x", "args": ["--all", 7] })),
        r#"/execution_steps/0/args/1: 7 is no text: "args" says which further words the tool's command is given; write "args": ["src/lib.rs"]"#,
    );
    check(
        AgentType::Tactical,
        &tactical(json!({ "id": "a", "step": "x", "care": { "retry": -1 } })),
        r#"/execution_steps/0/care/retry: -1 is no number of tries: "retry" says how often it is tried again after a failure of its own; write "retry": 2"#,
    );
    check(
        AgentType::Tactical,
        &tactical(json!("Run the tests")),
        r#"/execution_steps/0: "Run the tests" is no object with the fields id, step, tool, args, command, request, agent, timeout_ms, care: "execution_steps" says which steps there are, in order; write "execution_steps": [{ "id": "edit", "step": "Write the parser", "tool": "edit_code" }]"#,
    );
    check(
        AgentType::Tactical,
        &json!({ "execution_steps": [], "dependencies": { "run": "edit" } }),
        r#"/dependencies/run: "edit" is no list: "dependencies" says by the id of a step, which steps it waits for; write "dependencies": { "run": ["edit"] }"#,
    );
    check(
        AgentType::Tactical,
        &json!(["Run the tests"]),
        r#"a list is no plan: a plan is an object with the fields version, execution_steps, dependencies, resource_requirements"#,
    );
}

#[test]
fn what_is_asked_and_chosen_is_refused_in_words_that_say_what_may_stand_there() {
    check(
        AgentType::Strategic,
        &json!({ "execution_steps": [] }),
        r#"nothing here is called "execution_steps"; what may stand here is version, narrative_goals, thematic_elements, dramatic_beats"#,
    );
    check(
        AgentType::Strategic,
        &json!({ "dramatic_beats": [{ "id": "a", "milestone": "x", "agent": "Tactic" }] }),
        r#"/dramatic_beats/0/agent: "Tactic" is no type of agent (strategic, tactical, perception, orchestrator): "agent" says which agent makes a plan of its own for it; write "agent": "tactical""#,
    );
    let asks = |what: Value| json!({ "target_agent": "perception", "request": what, "timeout_ms": 1 });
    let asks = |what: Value| json!({ "assignments": [{ "id": "a", "work": "x", "request": asks(what) }] });
    check(
        AgentType::Orchestrator,
        &asks(json!({})),
        r#"/assignments/0/request/request: an empty object is no object with exactly one of analyse, extract, locate: "request" says what it is asked; write "request": { "locate": { "entity": "struct User" } }"#,
    );
    check(
        AgentType::Orchestrator,
        &asks(json!({ "find": { "entity": "struct User" } })),
        r#"/assignments/0/request/request: nothing here is called "find"; what may stand here is analyse, extract, locate"#,
    );
    check(
        AgentType::Orchestrator,
        &asks(json!({ "locate": "struct User" })),
        r#"/assignments/0/request/request/locate: "struct User" is no object with the fields entity: "locate" says what is to be found; write "locate": { "entity": "struct User" }"#,
    );
    let looks = |by: &str| json!({ "extraction_patterns": [], "entity_resolution_strategy": { "by": [by] } });
    check(
        AgentType::Perception,
        &looks("name"),
        r#"/entity_resolution_strategy/by/0: "name" is no word that is known here (path, symbol, text): "by" says by what a name is looked up, in this order; write "by": ["path", "symbol"]"#,
    );
}

#[test]
fn what_is_no_json_is_told_with_its_line_and_column_and_what_to_mend() {
    let check = |json: &str, expected: &str| {
        assert_eq!(misfit(AgentType::Tactical, json).to_string(), expected);
    };
    check("", "line 1, column 1: there is nothing");
    check(" \n", "line 2, column 1: there is nothing");
    check("{", "line 1, column 2: it ends in the middle: a quote, a bracket or a brace is not closed");
    check(
        "{\n  \"execution_steps\": [\n    { \"id\": \"a",
        "line 3, column 15: it ends in the middle: a quote, a bracket or a brace is not closed",
    );
    check("{\"execution_steps\": [],}", "line 1, column 24: the comma before this is one too many: leave it out");
    check("{\"execution_steps\": [1,]}", "line 1, column 24: the comma before this is one too many: leave it out");
    check("{'execution_steps': []}", "line 1, column 2: texts and names stand between double quotes, \"so\"");
    check("{\"execution_steps\": [] // none yet\n}", "line 1, column 24: there are no comments in JSON: leave it out");
    check(
        "{\"execution_steps\": [\n  {\"id\": \"a\" \"step\": \"x\"}]}",
        "line 2, column 14: a comma or a colon is missing before this",
    );
    check("{\"execution_steps\" []}", "line 1, column 20: a comma or a colon is missing before this");
    check(
        "{\"execution_steps\": [{\"id\": \"a\nb\"}]}",
        "line 1, column 31: a line does not end within a text: write \\n there, or close the quote",
    );
    check(
        "{\"execution_steps\": [{\"id\": \"a\tb\"}]}",
        "line 1, column 31: a text has no control characters: write \\t or \\u0000 and the like",
    );
    check("{\"execution_steps\": [\"\\x\"]}", "line 1, column 24: JSON cannot go on with 'x' here");
    check("{\"execution_steps\": []} {}", "line 1, column 25: something stands behind its end: leave that out");
    check(
        "```json\n{}\n```",
        "line 1, column 1: JSON does not begin with '`': give it alone, without words or a fence around it",
    );
    check(
        "Here is the plan: {}",
        "line 1, column 1: JSON does not begin with 'H': give it alone, without words or a fence around it",
    );
    check("{\"execution_steps\": [NaN]}", "line 1, column 22: JSON cannot go on with 'N' here");
    check("{\"execution_steps\": [01]}", "line 1, column 23: JSON cannot go on with '1' here");
    check(
        "{\"execution_steps\": [], \"ä\": 1, \"execution_steps\": []}",
        "line 1, column 49: \"execution_steps\" stands here a second time: keep one of them",
    );
    check(
        "{\"dependencies\": {\"run\": [], \"run\": [\"edit\"]}}",
        "line 1, column 34: \"run\" stands here a second time: keep one of them",
    );
    check(&"[".repeat(200), "line 1, column 33: lists and objects stand more than 32 deep in each other");
}

#[test]
fn what_is_null_says_nothing_where_it_may_be_left_out() {
    let tactical =
        |step: Value| AgentPlan::read(AgentType::Tactical, &json!({ "execution_steps": [step] }).to_string());
    let step = json!({ "id": "a", "step": "x", "tool": "edit_code" });
    for field in ["args", "command", "request", "agent", "timeout_ms", "care"] {
        let mut null = step.clone();
        null[field] = Value::Null;
        assert_eq!(tactical(null), tactical(step.clone()), "{field}");
    }
    for field in ["id", "step"] {
        let mut null = step.clone();
        null[field] = Value::Null;
        assert!(tactical(null).is_err(), "{field}");
    }
}
