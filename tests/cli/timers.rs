//! The timers of agents: every long-running process fires them, and a command that only looks appends nothing.

use std::process::Stdio;

use super::inbox::{crew, joined, lease};
use super::scene::{Running, Scene};

/// A log in which a dead agent holds a task and a lease, and where the default answer to a question is due.
async fn scene() -> (Scene, String) {
    let scene = Scene::new();
    scene.write("plan.md", "1. Which colour is it? (default: red after 1s)\n2. Run `true`\n");
    scene.run(&["run", "plan.md", "--yes", "--timeout", "1ms"]).expect(8);
    let plan = scene.run(&["ls", "-o", "json"]).json()["plans"][0]["plan"].as_str().expect("an id").to_owned();
    let crew = crew(&scene).await;
    let ann = joined(&crew, "ann").await;
    lease(&crew, &ann, "src/a.rs", None).await;
    (scene, plan)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_only_looks_appends_nothing() {
    let (scene, plan) = scene().await;
    let before = scene.events();
    let looks = "ls|show PLAN|show PLAN/1|why PLAN|why src/a.rs|inbox|agents|agents --all|leases|stats|events|\
                 replay PLAN|diff PLAN PLAN|doctor|export|plan check plan.md|db info|db check|groups ls|\
                 ls -o json|show PLAN -o json|inbox -o json|agents -o json|leases -o json|--store .crewlog/log.db inbox";
    for look in looks.split('|').map(str::trim) {
        let look = look.replace("PLAN", &plan);
        let ran = scene.run(&look.split(' ').collect::<Vec<_>>());
        assert!(!ran.stderr.contains("Usage"), "{look}: {}", ran.stderr);
        assert_eq!(scene.events(), before, "{look}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_long_running_process_ends_what_a_dead_agent_held() {
    for process in ["run wait.md --yes", "work", "serve --port 0", "mcp", "top"] {
        let (scene, _) = scene().await;
        scene.write("wait.md", "1. Run `read line < go`\n");
        super::scene::named_pipe(&scene, "go");
        let mut command = scene.crewlog(&process.split(' ').collect::<Vec<_>>());
        let mut followed = scene.start(&["events", "--follow"]);
        let (running, terminal) = match process {
            "top" => {
                let (running, terminal) = Running::start_full_screen(&mut command, (80, 24));
                (running, Some(terminal))
            }
            // An MCP server ends at the end of its input.
            _lines => (Running::start(command.stdin(Stdio::piped())), None),
        };
        followed.stdout.until("AgentLost");
        let ended = ["LeasesAbandoned", "AgentLost"].map(|kind| scene.events_of_type(kind).len());
        assert_eq!(ended, [1, 1], "{process}");
        drop((running, terminal, followed));
    }
}
