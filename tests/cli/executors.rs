//! `crewlog agents --configured`: which configuration applies, and the errors for an unreadable one.

use std::path::Path;

use rustix::process::Signal;

use super::scene::{Gate, Ran, Running, Scene, named_pipe};

/// A configuration with one executor of this name.
fn config(name: &str) -> String {
    format!("[executors.{name}]\ncommand = ['true']\n")
}

/// The names of the executors that apply in a folder.
fn names(scene: &Scene, folder: &Path, words: &[&str]) -> Vec<String> {
    let ran = run_in(scene, folder, words).expect(0).json();
    let executors = ran["executors"].as_array().expect("a list").clone();
    executors.iter().map(|executor| executor["name"].as_str().expect("text").to_owned()).collect()
}

fn run_in(scene: &Scene, folder: &Path, words: &[&str]) -> Ran {
    Running::start(&mut scene.crewlog_in(folder, &[&["agents", "--configured", "-o", "json"], words].concat())).finish()
}

fn folder(scene: &Scene, name: &str) -> std::path::PathBuf {
    std::fs::create_dir_all(scene.path(name)).expect("a folder can be made");
    scene.path(name)
}

#[test]
fn executors_are_listed_by_name_kinds_and_command() {
    let scene = Scene::new();
    let none = scene.run(&["agents", "--configured"]).expect(0);
    assert_eq!(none.stdout, "");
    none.says(&["no agents are configured", "there is no crewlog.toml"]);
    assert_eq!(scene.run(&["agents", "--configured", "-q"]).expect(0).stderr, "");
    scene.write(
        "crewlog.toml",
        "[executors.zoe]\nkinds = ['Analysis', 'Refactor']\ncommand = ['claude', '-p', 'be brief']\n\
         [executors.anabel]\ncommand = \"\"\"\nset -e\nagent \\u001b[31m\n\"\"\"\n",
    );
    let listed = scene.run(&["agents", "--configured"]).expect(0);
    let lines = listed.stdout.lines().collect::<Vec<_>>();
    assert_eq!(
        lines,
        [
            "zoe     Analysis, Refactor              claude -p 'be brief'",
            "anabel  every kind                      set -e; agent \\u{1b}[31m",
        ],
        "in the order of the file, and playing no tricks"
    );
    assert_eq!(listed.stderr, "");
    let shown = scene.run(&["agents", "--configured", "-o", "json"]).expect(0).json();
    let by_line = scene.run(&["agents", "--configured", "-o", "jsonl"]).expect(0).stdout;
    let by_line = by_line.lines().map(|line| serde_json::from_str(line).expect("each line is JSON"));
    assert_eq!(shown["executors"], serde_json::Value::Array(by_line.collect()));
}

#[test]
fn the_nearest_configuration_in_the_worktree_wins_before_the_main_worktrees() {
    let scene = Scene::with_repository();
    let deep = folder(&scene, "a/b");
    std::fs::write(scene.around().join("crewlog.toml"), config("outside")).expect("a file can be written");
    assert_eq!(names(&scene, &deep, &[]), [""; 0], "what lies outside of the repository does not count");
    scene.write("crewlog.toml", config("root"));
    assert_eq!(names(&scene, &deep, &[]), ["root"]);
    scene.write("a/crewlog.toml", config("near"));
    assert_eq!(names(&scene, &deep, &[]), ["near"]);
    scene.git(&["worktree", "add", "-q", "../other"]);
    let other = scene.around().join("other");
    assert_eq!(names(&scene, &other, &[]), ["root"], "a worktree without one has the main worktree's");
    std::fs::write(other.join("crewlog.toml"), config("own")).expect("a file can be written");
    assert_eq!(names(&scene, &other, &[]), ["own"]);

    let bare = Scene::new();
    bare.write("crewlog.toml", config("above"));
    assert_eq!(names(&bare, &folder(&bare, "a/b"), &[]), ["above"], "without a repository it may lie anywhere above");
}

#[test]
fn an_explicit_configuration_is_the_only_one_read() {
    let scene = Scene::new();
    scene.write("crewlog.toml", config("near"));
    scene.write("option.toml", config("option"));
    scene.write("variable.toml", config("variable"));
    let scene = scene.with_env("CREWLOG_CONFIG", "variable.toml");
    assert_eq!(names(&scene, scene.folder(), &[]), ["variable"]);
    assert_eq!(names(&scene, scene.folder(), &["--config", "option.toml"]), ["option"]);
    let missing = run_in(&scene, scene.folder(), &["--config", "gone.toml"]).expect(1);
    missing.says(&["gone.toml cannot be read: No such file", "--config or CREWLOG_CONFIG"]);
    // Also if the command needs no executor.
    scene.run(&["ls", "--config", "gone.toml"]).expect(1).says(&["gone.toml cannot be read: No such file"]);
}

#[test]
fn an_unreadable_configuration_is_reported_with_location_and_hint() {
    let scene = Scene::new();
    let refused = |content: &[u8], parts: &[&str]| {
        scene.write("crewlog.toml", content);
        let ran = scene.run(&["agents", "--configured"]).expect(1);
        assert_eq!(ran.stdout, "");
        ran.says(parts);
    };
    refused(b"[executors.a]\ncommand = ['x']\njobs = 0\n", &["crewlog.toml:3:8: jobs is 1 to 1000"]);
    refused(
        b"\n[executors.a]\nkinds = ['Cooking']\ncommand = 'x'",
        &["crewlog.toml:3:10: unknown variant `Cooking`", "`ToolCall`"],
    );
    refused(b"[executors.a]\n# \xc3\xa4\xff", &["crewlog.toml:2:4: this byte is not UTF-8: save the file as UTF-8"]);
    refused(&b"#".repeat((1 << 20) + 1), &["exceeds the limit of 1048576 bytes"]);
    refused(format!("a = {}", "[".repeat(100_000)).as_bytes(), &["crewlog.toml:1:"]);
    scene.write("crewlog.toml", "#".repeat(1 << 20));
    scene.run(&["agents", "--configured"]).expect(0);
    scene.run(&["agents", "--configured", "--config", "."]).expect(1).says(&[". cannot be read", "directory"]);
}

#[test]
fn a_configuration_that_is_not_a_regular_file_is_refused() {
    let scene = Scene::new();
    let refused = |says: &str| {
        scene.run(&["agents", "--configured"]).expect(1).says(&["crewlog.toml", says, "hint: "]);
    };
    std::fs::create_dir(scene.path("crewlog.toml")).expect("it can be made");
    refused("is not a regular file");
    std::fs::remove_dir(scene.path("crewlog.toml")).expect("it is empty");
    named_pipe(&scene, "crewlog.toml");
    refused("is not a regular file");
    std::fs::remove_file(scene.path("crewlog.toml")).expect("it is there");
    std::os::unix::fs::symlink("nowhere", scene.path("crewlog.toml")).expect("it can be made");
    refused("cannot be read");
}

#[test]
fn hints_repeat_the_configuration_option() {
    let scene = Scene::new();
    scene.write("own crew.toml", config("own"));
    scene.write("plan.md", "Look at it @ana\n");
    let ran = scene.run(&["--config", "own crew.toml", "run", "plan.md"]).expect(5);
    ran.says(&["crewlog --config 'own crew.toml' task done"]);
}

#[test]
fn a_task_an_agent_can_take_is_not_reported_as_waiting_for_a_person() {
    let scene = Scene::new();
    scene.write("plan.md", "- Review the design\n");
    let plan = scene.run(&["run", "plan.md", "--yes", "--detach"]).expect(0).stdout.trim().to_owned();
    let shown = || scene.run(&["show", &plan]).expect(0).stdout;
    assert!(shown().contains("task 1 waits for you: Review the design\n"), "{}", shown());
    scene.write("crewlog.toml", "[executors.reviewer]\ncommand = ['sh', '-c', 'echo seen']\nkinds = [\"Analysis\"]\n");
    let starts = "reviewer starts: sh -c 'echo seen' (new in crewlog.toml)";
    let unagreed = format!("task 1 runs once you agree: Review the design ⏎ {starts}\n  crewlog agree {plan}/1\n");
    assert!(shown().contains(&unagreed) && !shown().contains("crewlog task done"), "{}", shown());
    scene.run(&["agree", "--yes"]).expect(0);
    let nobody = format!("plan {plan}: it can go on, and nobody runs it\n  crewlog resume {plan}\n");
    assert!(shown().contains(&nobody) && !shown().contains("crewlog task done"), "{}", shown());
}

#[test]
fn an_attempt_that_timed_out_leaves_no_tool_beside_the_next() {
    let scene = Scene::new();
    // The tool has a session of its own, as those of Codex and Node have.
    let agent = "tool=tool-$CREWLOG_ATTEMPT\n\
                 setsid sh -c 'trap \"\" TERM HUP; echo $$ > '$tool'.tmp; mv '$tool'.tmp '$tool'; sleep 1000' &\n\
                 until [ -e $tool ]; do sleep 0.01; done\n\
                 kill -0 $(cat tool-1) && [ $CREWLOG_ATTEMPT = 2 ] && touch beside\nsleep 1000\n";
    scene.write("agent.sh", agent);
    scene.write("crewlog.toml", "[executors.w]\ncommand = ['sh', 'agent.sh']\n");
    scene.write("plan.md", "- Write it @w (timeout 500ms) (retry 1)\n");
    scene.run(&["run", "plan.md", "--yes"]).expect(100);
    assert!(!scene.path("beside").exists(), "the first attempt's tool is gone");
    for tool in ["tool-1", "tool-2"] {
        let pid = scene.read(tool).trim().parse().ok().and_then(rustix::process::Pid::from_raw).expect("a number");
        assert!(rustix::process::test_kill_process(pid).is_err(), "{tool} runs");
    }
}

#[test]
fn of_many_tasks_one_meets_a_rate_limit_and_one_tries_again() {
    let scene = Scene::new();
    scene.write("agent.sh", "echo x >> runs; mkdir met 2>/dev/null || exit 0; echo 'try again in 1 second'; exit 75\n");
    scene.write("crewlog.toml", "[executors.w]\ncommand = ['sh', 'agent.sh']\njobs = 1\nrate_limited = ['again']\n");
    scene.write("plan.md", "- [P] Look @w\n".repeat(12));
    Running::start_on_terminal(&mut scene.crewlog(&["run", "plan.md", "--yes"])).finish().expect(0);
    assert_eq!(scene.read("runs").lines().count(), 12 + 1);
    let types = ["BreakerOpened", "ProbeClaimed", "BreakerClosed", "TaskClaimed"];
    let events = scene.events();
    let told = events.iter().filter_map(|event| types.iter().find(|known| event["event_type"] == **known));
    let told = told.map(|known| if *known == "TaskClaimed" { "." } else { *known }).collect::<Vec<_>>().join("");
    assert_eq!(told, format!(".BreakerOpenedProbeClaimed.BreakerClosed{}", ".".repeat(11)));
}

#[test]
fn without_a_terminal_a_plan_gets_past_a_limit_once_it_is_over() {
    let scene = Scene::new();
    // The task that tries takes its time.
    scene.write(
        "agent.sh",
        "echo x >> runs; mkdir met 2>/dev/null && { echo 'again in 1 second'; exit 75; }; sleep 1\n",
    );
    scene.write("crewlog.toml", "[executors.w]\ncommand = ['sh', 'agent.sh']\njobs = 1\nrate_limited = ['again']\n");
    scene.write("plan.md", "- [P] Look @w\n".repeat(2));
    let plan = scene.run(&["run", "plan.md", "--yes"]).expect(5).stdout.trim().to_owned();
    let resumed = (0..1_000).map(|_| scene.run(&["resume", &plan])).find(|resumed| resumed.status.code() != Some(5));
    resumed.expect("the limit ends").expect(0);
    assert_eq!(scene.read("runs"), "x\n".repeat(1 + 2));
}

/// The task continues once the person has acted, and has not failed meanwhile.
#[test]
fn an_executor_that_is_not_logged_in_waits_for_a_person() {
    let scene = Scene::new();
    let agent = "[ -e login ] && exit 0; echo 'Invalid API key · Please run /login'; exit 1\n";
    scene.write("agent.sh", agent);
    scene.write("crewlog.toml", "[executors.w]\ncommand = ['sh', 'agent.sh']\n");
    scene.write("plan.md", "- Look @w (retry 3)\n- Paint it @w\n");
    let plan = scene.run(&["run", "plan.md", "--yes"]).expect(5).stdout.trim().to_owned();
    let asked = scene.run(&["inbox"]).expect(0).stdout;
    assert!(
        asked.contains("Task 1 needs a person first: exit code 1: Invalid API key · Please run /login."),
        "{asked}"
    );
    assert_eq!(scene.events_of_type("TaskFailed").len(), 1, "its own retries are for its own failures");
    scene.write("login", "");
    scene.run(&["answer", &format!("{plan}/q1"), "retry"]).expect(0);
    scene.run(&["resume", &plan]).expect(0);
}

/// The waits of a plan are also those of the executor.
#[test]
fn the_waits_for_a_limit_without_a_time_are_settings() {
    let scene = Scene::new();
    scene.write("agent.sh", "mkdir met 2>/dev/null || exit 0; exit 75\n");
    scene.write("crewlog.toml", "[executors.w]\ncommand = ['sh', 'agent.sh']\n");
    scene.write("plan.md", "---\ncrewlog: retry.rate-limited.first=1s\n---\n- Look @w\n");
    Running::start_on_terminal(&mut scene.crewlog(&["run", "plan.md", "--yes"])).finish().expect(0);
    assert_eq!(scene.events_of_type("BreakerOpened").len(), 1);
}

#[test]
fn a_person_ends_the_wait_for_a_rate_limit() {
    let scene = Scene::new();
    scene.write(
        "agent.sh",
        "echo x >> runs; [ -e free ] && exit 0; echo 'usage limit, try again in 2 hours'; exit 75\n",
    );
    scene.write("crewlog.toml", "[executors.w]\ncommand = ['sh', 'agent.sh']\njobs = 1\n");
    scene.write("plan.md", "- [P] Look @w\n".repeat(4));
    let ran = scene.run(&["run", "plan.md", "--yes"]).expect(5);
    ran.says(&["task 2 waits until ", "for a rate limit: that of its executor\n", "so for 1 more task\n"]);
    let plan = ran.stdout.trim();
    let waits = scene.show(plan)["tasks"].take();
    assert!(waits.as_array().unwrap().iter().all(|task| task["state"] == "waiting"), "{waits:#}");
    // In another plan, too.
    scene.write("other.md", "- Look @w\n");
    let other = scene.run(&["run", "other.md", "--yes"]).expect(5);
    other.says(&["task 1 waits until ", "for a rate limit: that of its executor\n"]);
    assert_eq!(scene.read("runs"), "x\n");
    scene.write("free", "");
    scene.run(&["retry", &format!("{plan}/3"), "--now"]).expect(0);
    scene.run(&["resume", other.stdout.trim()]).expect(0);
    scene.run(&["resume", plan]).expect(5).says(&["task 1 waits until "]);
    assert_eq!(scene.read("runs"), "x\n".repeat(1 + 1 + 3));
    scene.run(&["retry", &format!("{plan}/1"), "--now"]).expect(0);
    scene.run(&["resume", plan]).expect(0);
}

#[test]
fn a_run_without_a_terminal_ends_at_a_rate_limit_and_says_until_when() {
    let scene = Scene::new();
    scene.write(
        "agent.sh",
        "echo x >> runs; [ -e free ] && exit 0; echo 'usage limit reached, try again in 2 hours'; exit 75\n",
    );
    scene.write("crewlog.toml", "[executors.w]\ncommand = ['sh', 'agent.sh']\n");
    scene.write("plan.md", "- Look @w\n- Run `touch after`\n");
    let ran = scene.run(&["run", "plan.md", "--yes"]).expect(5);
    ran.says(&["task 1 waits until ", "for a rate limit: exit code 75: usage limit reached, try again in 2 hours"]);
    let plan = ran.stdout.trim();
    assert_eq!(scene.show(plan)["tasks"][0]["state"], "waiting");
    assert_eq!(scene.read("runs"), "x\n");
    let why = scene.run(&["why", plan]).expect(0).stdout;
    assert!(why.contains("is at a rate limit and waits for its next attempt"), "{why}");
    let resumed = scene.run(&["resume", plan]).expect(5);
    resumed.says(&["task 1 waits until "]);
    scene.run(&["work", "--until-idle"]).expect(5);
    assert_eq!(scene.read("runs"), "x\n", "it is not tried before");
    // A question that is open, too, keeps nobody waiting.
    scene.write("asks.md", "- Look @w (parallel)\n- Which colour is it? (parallel)\n");
    scene.run(&["run", "asks.md", "--yes"]).expect(5).says(&["task 1 waits until ", "q1 asks: "]);
    scene.write("free", "");
    scene.write("runs", "");
    scene.run(&["retry", &format!("{plan}/1"), "--now"]).expect(0);
    scene.run(&["resume", plan]).expect(0);
    assert!(scene.path("after").exists());
}

#[test]
fn an_agent_gets_only_the_variables_that_are_named() {
    let scene = Scene::new().with_env("DEPLOY_TOKEN", "hunter2").with_env("WANTED", "yes");
    let agent = |env: &str| {
        format!("[executors.a]\ncommand = [\"sh\", \"-c\", \"cat > /dev/null; env > seen\"]\nenv = {env}\n")
    };
    scene.write("plan.md", "1. Look around\n");
    for (env, has, lacks) in [
        ("[\"PATH\", \"WANTED\", \"OWN=1=2\"]", ["WANTED=yes", "OWN=1=2", "CREWLOG_TASK=1"], Some("DEPLOY_TOKEN")),
        ("[]", ["CREWLOG_TASK=1", "CREWLOG_STORE=", "CREWLOG_PLAN="], Some("WANTED")),
        ("{ OWN = \"1\" }", ["DEPLOY_TOKEN=hunter2", "WANTED=yes", "OWN=1"], None),
    ] {
        scene.write("crewlog.toml", agent(env));
        scene.run(&["run", "plan.md", "--yes", "-q"]).expect(0);
        let seen = scene.read("seen");
        assert!(has.iter().all(|variable| seen.lines().any(|line| line.starts_with(variable))), "{env}: {seen}");
        assert!(lacks.is_none_or(|name| !seen.contains(name)), "{env}: {seen}");
    }
}

#[test]
fn an_agent_has_its_grace_time_to_end() {
    let scene = Scene::new();
    let go = named_pipe(&scene, "go");
    scene.write("plan.md", "1. Work on it\n");
    let work = "cat > /dev/null; trap 'read x < go; touch saved; exit 1' TERM; sleep 1000 & wait";
    for (grace, is_saved) in [("1ms", false), ("30s", true)] {
        let executor = format!("[executors.a]\ncommand = \"{work}\"\ntimeout = \"300ms\"\ngrace = \"{grace}\"\n");
        scene.write("crewlog.toml", executor);
        let running = scene.start(&["run", "plan.md", "--yes", "-q", "--set", "retry.transient.count=0"]);
        if is_saved {
            std::fs::write(&go, "go\n").expect("it is asked to end");
        }
        running.finish().expect(100);
        assert_eq!(scene.path("saved").exists(), is_saved, "{grace}");
    }
    scene.write("crewlog.toml", "grace = \"31s\"\n");
    scene.run(&["agents", "--configured"]).expect(1).says(&["crewlog.toml:1:9", "grace is at most 30 s"]);
}

#[test]
fn workers_are_listed_with_their_machines_and_what_they_run() {
    let scene = Scene::new();
    let mut gate = Gate::new(&scene, "gate");
    scene.write("plan.md", format!("1. Run `true`\n2. Run `{}; sleep 1000`\n", Gate::pass("gate")));
    let running = scene.start(&["run", "plan.md", "--yes", "-q"]);
    gate.wait();
    let workers = scene.run(&["agents", "--workers", "-o", "json"]).json()["workers"].clone();
    let plan = scene.run(&["ls", "-o", "json"]).json()["plans"][0]["plan"].as_str().expect("an id").to_owned();
    assert_eq!(workers.as_array().map(Vec::len), Some(1), "{workers}");
    assert_eq!(workers[0]["runs"], serde_json::json!([format!("{plan}/2 by shell")]));
    assert!(workers[0]["host"].is_string() && workers[0]["worker"].is_string() && workers[0]["heard"].is_string());
    let shown = scene.run(&["agents", "--workers"]).expect(0).stdout;
    assert!(shown.contains(&format!("{plan}/2 by shell")) && shown.contains("heard: just now"), "{shown}");
    running.signal(Signal::INT);
    running.finish().expect(130);
    let workers = scene.run(&["agents", "--workers", "-o", "json"]).json()["workers"].clone();
    assert_eq!(workers[0]["runs"], serde_json::json!([]), "{workers}");
}

#[test]
fn a_later_run_continues_the_session_of_an_earlier_one() {
    let scene = Scene::new();
    let begin = r#"{"type":"system","subtype":"init","session_id":"s-7"}"#;
    let end = r#"{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s-7"}"#;
    scene.write("begin", format!("{begin}\n"));
    scene.write("end", format!("{end}\n"));
    scene.write("asks", end.replace("done", "QUESTION: which one?"));
    let again = "cat > /dev/null; echo \"$0 $CREWLOG_ATTEMPT\" > how; cat end";
    let agent = |first: &str| {
        let first = format!("[executors.a]\ncommand = ['sh', '-c', 'cat > /dev/null; cat begin; {first}']\n");
        format!("{first}resume = ['sh', '-c', '{again}', '{{session}}']\n")
    };
    // After a failure.
    scene.write("crewlog.toml", agent("exit 1"));
    scene.write("plan.md", "1. Work on it (retry 1)\n");
    scene.run(&["run", "plan.md", "--yes", "-q"]).expect(0);
    assert_eq!(scene.read("how"), "s-7 2\n");
    // After the death of its worker.
    scene.write("crewlog.toml", agent("sleep 1000"));
    scene.write("plan.md", "1. Work on it\n");
    let mut following = scene.start(&["events", "--follow", "--after", "12", "--type", "TaskProgressed"]);
    let mut running = scene.start(&["run", "plan.md", "--yes"]);
    let plan = running.stdout.line().trim().to_owned();
    following.stdout.until(&plan);
    running.killed();
    following.kill();
    scene.run(&["resume", &plan, "-q"]).expect(0);
    assert_eq!(scene.read("how"), "s-7 1\n");
    // After an answer.
    scene.write("crewlog.toml", agent("cat asks"));
    let (plan, asked) = scene.plan("1. Work on it\n");
    asked.expect(5);
    scene.run(&["answer", &format!("{plan}/q1"), "this one"]).expect(0);
    scene.run(&["resume", &plan, "-q"]).expect(0);
    assert_eq!(scene.read("how"), "s-7 2\n");
    // One that is gone is not tried again.
    let gone = "cat > /dev/null; echo no session $0; exit 1";
    scene.write("crewlog.toml", agent("echo run >> runs; exit 1").replace(again, gone));
    scene.write("plan.md", "1. Work on it (retry 3)\n");
    scene.run(&["run", "plan.md", "--yes", "-q"]).expect(100);
    assert_eq!(scene.read("runs"), "run\nrun\n", "every other run is a new one");
    for (resume, says) in [("true", "resume = true is for claude"), ("['sh', '-c', 'x']", "no word has {session}")] {
        scene.write("crewlog.toml", format!("[executors.a]\ncommand = ['sh']\nresume = {resume}\n"));
        scene.run(&["agents", "--configured"]).expect(1).says(&["crewlog.toml:3:10", says]);
    }
}
