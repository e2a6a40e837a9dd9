//! `show PLAN TASK --prompt`: the prompt that an agent got, or a warning that it got a different one.

use rustix::process::Signal;

use super::scene::{Gate, Scene};

const AGENT: &str = "[executors.parrot]\ncommand = [\"sh\", \"-c\", \"cat > prompt-$CREWLOG_TASK; echo painted\"]\n";

/// A plan of two tasks that an agent has completed, and its id.
fn ran(scene: &Scene) -> String {
    scene.write("crewlog.toml", AGENT);
    scene.write("plan.md", "1. Paint the wall\n2. Paint the door (depends on 1)\n3. Run `true`\n");
    scene.run(&["run", "plan.md", "--yes", "-q", "--set", "prompt.system=Be brief."]).expect(0).stdout.trim().to_owned()
}

#[test]
fn a_prompt_is_reproduced_and_a_differing_one_is_reported() {
    let scene = Scene::new();
    let plan = ran(&scene);
    let shown = scene.run(&["show", &format!("{plan}/2"), "--prompt"]).expect(0);
    let prompt = shown.stdout;
    assert_eq!((prompt.as_str(), shown.stderr.as_str()), (scene.read("prompt-2").as_str(), ""));
    assert!(
        prompt.starts_with("Be brief.\n\n# Your task\n\nPaint the door\n") && prompt.contains("painted"),
        "{prompt}"
    );

    let json = scene.run(&["show", &format!("{plan}/1"), "--prompt", "--attempt", "1", "-o", "json"]).json();
    assert_eq!(json["prompt"].as_str(), Some(scene.read("prompt-1").as_str()));
    assert_eq!((json["attempt"].as_u64(), &json["digest"]), (Some(1), &json["recorded"]));
    let n_chars = json["recorded"]["n_chars"].as_u64().expect("a number");

    let export = scene.run(&["export"]).expect(0).stdout.clone();
    let recorded = format!("\"n_chars\":{n_chars}");
    assert!(export.contains(&recorded), "{export}");
    scene.write("export.jsonl", export.replacen(&recorded, "\"n_chars\":7", 1));
    scene.run(&["import", "export.jsonl", "--store", "other.db"]).expect(0);
    let other = scene.run(&["show", &format!("{plan}/1"), "--prompt", "--store", "other.db"]).expect(0);
    assert_eq!(other.stdout, scene.read("prompt-1"));
    assert!(other.stderr.contains("the agent got another prompt, of 7 characters"), "{}", other.stderr);
}

#[test]
fn an_agent_is_told_that_the_run_before_it_was_cut_short() {
    let scene = Scene::new();
    let mut gate = Gate::new(&scene, "gate");
    let agent = format!("cat > prompt-$CREWLOG_EPOCH; test -e prompt-2 || ({}; sleep 1000)", Gate::pass("gate"));
    scene.write("crewlog.toml", format!("[executors.parrot]\ncommand = [\"sh\", \"-c\", '''{agent}''']\n"));
    scene.write("plan.md", "1. Paint the wall\n");
    let running = scene.start(&["run", "plan.md", "--yes", "-q"]);
    gate.wait();
    running.signal(Signal::INT);
    let plan = running.finish().expect(130).stdout.trim().to_owned();
    gate.wait_until_free();
    scene.run(&["resume", &plan, "-q"]).expect(0);
    let [first, second] = ["prompt-1", "prompt-2"].map(|prompt| scene.read(prompt));
    let told = second.strip_prefix(&first).expect("more is said");
    assert!(told.contains("may have left its work half done"), "{told}");
    let shown = scene.run(&["show", &format!("{plan}/1"), "--prompt"]).expect(0);
    assert_eq!((shown.stdout.as_str(), shown.stderr.as_str()), (second.as_str(), ""), "the log reproduces it");
}

#[test]
fn showing_the_prompt_of_a_task_without_one_is_refused() {
    let scene = Scene::new();
    let plan = ran(&scene);
    for (words, says) in [
        (["show", &format!("{plan}/3"), "--prompt"].as_slice(), "task 3 has no prompt"),
        (&["show", &format!("{plan}/2"), "--prompt", "--attempt", "9"], "no attempt 9"),
        (&["show", &format!("{plan}/nine"), "--prompt"], "no task"),
    ] {
        let refused = scene.run(words).expect(4);
        assert!(refused.stderr.contains(says), "{}", refused.stderr);
    }
    scene.run(&["show", &plan, "--prompt"]).expect(1).says(&["write PLAN/TASK"]);
}
