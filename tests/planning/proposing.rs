//! Plans of agents on the command line: proposed, refused, shown, run; and the tools from the configuration.

use serde_json::json;

use super::plans::plan_of;
use crate::cli::scene::Scene;
use crewlog_planner::protocol::AgentType;

#[test]
fn a_proposed_plan_records_its_agent() {
    let scene = Scene::new();
    for agent in AgentType::ALL {
        scene.write("plan.json", plan_of(agent).to_string());
        let plan = scene.run(&["plan", "propose", "plan.json", "--agent", agent.as_str(), "--yes"]).expect(0).stdout;
        let planned = scene.events_of_type("TasksPlanned").pop().expect("an event");
        assert_eq!(planned["origin"]["agent"]["agent"], agent.as_str());
        assert!(scene.show(plan.trim())["tasks"].as_array().is_some_and(|tasks| tasks.len() > 2));
    }
}

#[test]
fn a_proposed_plan_with_a_foreign_tool_is_refused() {
    let scene = Scene::new();
    let mut plan = plan_of(AgentType::Strategic);
    plan["steps"][0]["description"] = json!("edit_code is used");
    scene.write("plan.json", plan.to_string());
    let refused = scene.run(&["plan", "propose", "plan.json", "--agent", "strategic"]).expect(3);
    refused.says(&[
        "/steps/0/description: the tool edit_code belongs to tactical agents: a strategic plan cannot use it",
        "plan schema --agent strategic",
    ]);
    assert_eq!(scene.events().len(), 1, "there is no plan");
    let failed = scene.events_of_type("PlanningFailed").remove(0);
    assert_eq!((&failed["agent"], &failed["kind"]), (&json!("strategic"), &json!("ForeignTool")));
    let other = scene.run(&["plan", "propose", "plan.json", "--agent", "tactical"]).expect(3);
    other.says(&["the tool review_outcome belongs to strategic agents", "plan schema --agent tactical"]);
    scene.run(&["plan", "propose", "plan.json", "--agent", "poet"]).expect(2).says(&["possible values: strategic,"]);
}

#[test]
fn a_strategic_plan_runs_tactical_sub_plans_that_show_lists() {
    let scene = Scene::new();
    let plan = json!({
        "goals": [{ "id": "g", "description": "Say hello" }],
        "steps": [
            { "id": "hello", "description": "Run `echo hello >> said; echo hello`", "goals": ["g"], "agent": "tactical" },
            { "id": "again", "description": "Run `echo again >> said; echo again`", "agent": "tactical" },
        ],
        "dependencies": { "again": ["hello"] },
    });
    scene.write("plan.json", plan.to_string());
    let ran = scene.run(&["plan", "propose", "plan.json", "--agent", "strategic", "--run", "--yes"]).expect(0);
    let id = ran.stdout.trim().to_owned();
    ran.says(&["hello  a plan of its own (tactical) of:", "Run `echo hello >> said; echo hello`"]);
    assert_eq!(scene.read("said"), "hello\nagain\n");
    let shown = scene.show(&id);
    assert_eq!(shown["tasks"][0]["plan"], format!("{id}.1-1"));
    assert!(shown["tasks"][1]["result"].as_str().is_some_and(|result| result.ends_with(":\nagain")), "{shown}");
    let text = scene.run(&["show", &id]).expect(0).stdout;
    assert!(text.contains(&format!("plan {id}.2-1")), "{text}");
    // The log names the agent of every plan, and no task has a tool foreign to its agent.
    for planned in scene.events_of_type("TasksPlanned") {
        let tools = planned["origin"]["agent"]["tools"].as_array().expect("the tools of its agent").clone();
        let used = planned["tasks"].as_array().expect("tasks").iter().filter_map(|task| task.get("tool"));
        assert!(used.clone().all(|tool| tools.contains(tool)), "{planned}");
    }
}

#[test]
fn a_plan_waits_with_its_sub_plan_and_shows_the_open_question() {
    let scene = Scene::new();
    let plan = json!({ "steps": [{ "id": "ask", "description": "Which colour shall it be?", "agent": "tactical" }] });
    scene.write("plan.json", plan.to_string());
    let ran = scene.run(&["plan", "propose", "plan.json", "--agent", "orchestrator", "--run", "--yes"]).expect(5);
    let id = ran.stdout.trim().to_owned();
    ran.says(&["q1 asks: Which colour shall it be?", &format!("crewlog answer {id}.1-1/q1")]);
    scene.run(&["answer", &format!("{id}.1-1/q1"), "blue"]).expect(0);
    scene.run(&["resume", &id, "--yes"]).expect(0);
    assert!(scene.show(&id)["tasks"][0]["result"].as_str().is_some_and(|result| result.contains("blue")));
}

#[test]
fn cancelling_a_plan_cancels_its_sub_plans_in_the_same_command() {
    let scene = Scene::new();
    let plan = json!({ "steps": [
        { "id": "ask", "description": "Which colour shall it be?", "agent": "tactical" },
        { "id": "aim", "description": "Say what is wanted", "agent": "strategic" },
    ] });
    scene.write("plan.json", plan.to_string());
    let propose = ["plan", "propose", "plan.json", "--agent", "orchestrator", "--run", "--yes", "--jobs", "4"];
    let id = scene.run(&propose).expect(5).stdout.trim().to_owned();
    let open = |plan: &str| scene.show(plan)["status"].clone();
    let (first, second, third) = (format!("{id}.1-1"), format!("{id}.2-1"), format!("{id}.2-1.1-1"));
    assert_eq!(
        [&first, &second, &third].map(|plan| open(plan)),
        ["waiting_for_you", "waiting_for_you", "waiting_for_you"]
    );
    scene.run(&["cancel", &format!("{id}/ask")]).expect(0);
    assert_eq!([&first, &second, &third].map(|plan| open(plan)), ["cancelled", "waiting_for_you", "waiting_for_you"]);
    scene.run(&["cancel", &id]).expect(0);
    assert_eq!([&second, &third].map(|plan| open(plan)), ["cancelled", "cancelled"], "nobody works");
}

#[test]
fn prose_in_an_agents_plan_never_runs_as_a_command() {
    let scene = Scene::new();
    scene.write("plan.json", plan_of(AgentType::Tactical).to_string());
    // Nor in a plan that is only accepted, since any worker would run it.
    for run in [&["--run"][..], &[]] {
        let propose = ["plan", "propose", "plan.json", "--agent", "tactical"];
        let refused = scene.run(&[&propose, run].concat()).expect(1);
        refused.says(&["cargo test", "nothing was run", "with --yes"]);
    }
    assert!(!scene.path(".crewlog").exists());
}

#[test]
fn agents_get_their_tools_from_the_configuration() {
    let scene = Scene::new();
    let config = "[agents.tactical]\ntools = [\"say_it\"]\n\n[[tools]]\nname = \"say_it\"\ndescription = \"says it\"\n\
                  kind = \"ToolCall\"\ncommand = \"echo said\"\n";
    scene.write("crewlog.toml", config);
    let plan = |tool: &str| json!({ "steps": [{ "id": "a", "description": "x", "tool": tool, "args": ["a b"] }] });
    scene.write("plan.json", plan("say_it").to_string());
    let run = ["plan", "propose", "plan.json", "--agent", "tactical", "--run", "--yes"];
    let id = scene.run(&run).expect(0).stdout.trim().to_owned();
    assert_eq!(scene.show(&id)["tasks"][0]["result"], "said a b");
    scene.write("plan.json", plan("edit_code").to_string());
    scene.run(&run).expect(3).says(&["the tool edit_code belongs to nobody: a tactical plan cannot use it"]);
    let schema = scene.run(&["plan", "schema", "--agent", "tactical", "-o", "json"]).expect(0).json();
    assert_eq!(schema["properties"]["steps"]["items"]["properties"]["tool"]["enum"], json!(["say_it"]));
    scene.write("crewlog.toml", "[agents.tactical]\ntools = [\"no_such\"]\n");
    scene.run(&run).expect(1).says(&["crewlog.toml:2:9: tactical agents have the undefined tool \"no_such\""]);
    scene.write("crewlog.toml", "[[tools]]\nname = \"edit\"\ndescription = \"x\"\nkind = \"ToolCall\"\n");
    scene.run(&run).expect(1).says(&["crewlog.toml:1:1: \"edit\" is not a valid tool name"]);
    scene.write("crewlog.toml", "[agents.poet]\n");
    scene.run(&run).expect(1).says(&["unknown variant `poet`"]);
}

#[test]
fn the_text_of_a_milestone_becomes_tasks_but_its_goals_and_constraints_do_not() {
    let docs = include_str!("../../docs/models.md");
    let example = docs.split("```json\n").find(|part| part.contains("\"goals\"")).expect("there is an example");
    let mut plan: serde_json::Value =
        serde_json::from_str(example.split("```").next().expect("its end")).expect("it is JSON");
    let beats = plan["steps"].as_array_mut().expect("milestones");
    beats.push(json!({ "id": "more", "description": "Write the form\nwith two fields", "goals": ["login"],
        "agent": "tactical" }));
    beats.push(json!({ "id": "list", "description": "1. Draw it\n2. Show it", "agent": "tactical" }));
    let scene = Scene::new();
    scene.write("plan.json", plan.to_string());
    let propose = ["plan", "propose", "plan.json", "--agent", "strategic", "--run", "--yes", "--jobs", "8"];
    let id = scene.run(&propose).expect(5).stdout.trim().to_owned();
    for (task, words) in
        [("1", &["sessions are stored"][..]), ("3", &["Write the form"]), ("4", &["Draw it", "Show it"])]
    {
        let within = scene.show(&format!("{id}.{task}-1"));
        let tasks = within["tasks"].as_array().expect("tasks");
        assert_eq!(tasks.len(), words.len(), "{within}");
        for (task, words) in tasks.iter().zip(words) {
            assert!(task["description"].as_str().is_some_and(|said| said.contains(words)), "{within}");
        }
    }
}
