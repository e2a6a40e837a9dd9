//! Nothing runs that no person agreed to: who orders it, by which face, and what the log says.

use reqwest::Method;
use serde_json::{Value, json};

use crate::cli::scene::{Gate, Ran, Running, Scene, named_pipe};
use crate::views::api::{Api, answered, token};

fn by_agent(scene: &Scene, words: &[&str]) -> Ran {
    Running::start(scene.crewlog(words).env("AGENT_ID", "ann")).finish()
}

fn works(scene: &Scene) -> Ran {
    scene.run(&["work", "--until-idle"])
}

/// The tasks that wait for an agreement, with what they run.
fn waiting(scene: &Scene) -> Vec<(String, String)> {
    let items = scene.run(&["inbox", "-o", "json"]).json()["items"].take();
    let items = items.as_array().unwrap().iter().filter(|item| item["kind"] == "consent");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut waiting: Vec<_> = items.map(|item| (text(&item["id"]), text(&item["text"]))).collect();
    waiting.sort();
    waiting
}

fn agreements(scene: &Scene) -> usize {
    scene.events_of_type("Agreed").len()
}

#[test]
fn an_unchanged_plan_asks_once_and_a_changed_step_asks_again() {
    let scene = Scene::with_repository();
    scene.write("plan.md", "1. Run `echo a >> out`\n2. Run `echo b >> out`\n");
    scene.run(&["run", "plan.md"]).expect(1).says(&["nothing was run: no terminal to ask on"]);
    scene.run(&["run", "plan.md", "--yes"]).expect(0);
    let again = scene.run(&["run", "plan.md"]).expect(0);
    again.says(&["as you agreed to, last "]);
    assert_eq!(scene.read("out"), "a\nb\na\nb\n");
    scene.write("plan.md", "1. Run `echo a >> out`\n2. Run `echo c >> out`\n");
    let changed = scene.run(&["run", "plan.md"]).expect(1);
    changed.says(&["echo a >> out  (agreed ", "  2  echo c >> out\n"]);
    // The same words in another folder are another command.
    std::fs::create_dir(scene.path("sub")).unwrap();
    std::fs::write(scene.path("sub/plan.md"), "1. Run `echo a >> out`\n").unwrap();
    Running::start(&mut scene.crewlog_in(&scene.path("sub"), &["run", "plan.md"])).finish().expect(1);
    // A linked worktree is the same project.
    scene.git(&["worktree", "add", "-q", "../linked"]);
    let linked = scene.around().join("linked");
    std::fs::write(linked.join("plan.md"), "1. Run `echo a >> out`\n").unwrap();
    Running::start(&mut scene.crewlog_in(&linked, &["run", "plan.md"])).finish().expect(0);
}

#[test]
fn a_no_is_recorded_and_asks_again() {
    let scene = Scene::with_repository();
    scene.write("plan.md", "1. Run `echo a >> out`\n");
    scene.run(&["run", "plan.md", "--yes"]).expect(0);
    scene.write("plan.md", "1. Run `echo a >> out`\n2. Run `echo b >> out`\n");
    let mut running = Running::start_on_terminal(&mut scene.crewlog(&["run", "plan.md"]));
    running.stderr.until("Run them?");
    running.types("n");
    running.finish().expect(1);
    assert_eq!(scene.events_of_type("Declined").len(), 1);
    scene.write("plan.md", "1. Run `echo a >> out`\n");
    scene.run(&["run", "plan.md"]).expect(1).says(&["no terminal to ask on"]);
    assert_eq!(scene.read("out"), "a\n");
}

#[test]
fn what_an_agent_orders_waits_for_a_person_even_if_it_is_known() {
    let scene = Scene::with_repository();
    scene.write(
        "crewlog.toml",
        "[executors.writer]\ncommand = ['sh', '-c', 'echo \"$0\" >> told', '{prompt}']\nprompt = \"argument\"\n",
    );
    scene.write("plan.md", "1. Run `echo known >> out`\n2. Which colour?\n");
    let plan = scene.run(&["run", "plan.md", "--yes"]).expect(5).stdout.trim().to_owned();
    let n_agreed = agreements(&scene);
    by_agent(&scene, &["task", "add", "Run `echo known >> out`", "--plan", &plan, "--yes"])
        .expect(0)
        .says(&["crewlog agree"]);
    by_agent(&scene, &["task", "add", "Run `echo mine >> out`", "--new", "--plan", "side", "--yes"]).expect(0);
    by_agent(&scene, &["task", "add", "Write a poem", "--plan", "side", "--yes"]).expect(0);
    assert_eq!(agreements(&scene), n_agreed);
    works(&scene).expect(5).says(&["side/1", "crewlog agree"]);
    assert_eq!((scene.read("out").as_str(), scene.read_if_any("told")), ("known\n", None));
    let waits = waiting(&scene);
    assert!(waits.contains(&("side/1".into(), "echo mine >> out".into())), "{waits:?}");
    let poem = "Write a poem\nwriter starts: sh -c 'echo \"$0\" >> told' '{prompt}'  (new in crewlog.toml)";
    assert!(waits.contains(&("side/2".into(), poem.into())), "{waits:?}");
    let refused = by_agent(&scene, &["agree", "side", "--yes"]);
    refused.expect(11).says(&["an agent may not agree to what runs"]);
    scene.run(&["agree", "side"]).expect(1).says(&["echo mine >> out", "Write a poem", "nothing was agreed to"]);
    scene.run(&["agree", "side/1", "--yes"]).expect(0);
    works(&scene);
    assert_eq!((scene.read("out").as_str(), scene.read_if_any("told")), ("known\nmine\n", None));
    scene.run(&["agree", "side", "--yes"]).expect(0);
    works(&scene);
    assert!(scene.read("told").contains("Write a poem"));
}

#[test]
fn an_amendment_ends_the_consent_to_its_task_and_to_no_other() {
    let scene = Scene::with_repository();
    scene.write("plan.md", "1. Which colour?\n2. Run `echo a >> out` (after 1)\n3. Run `echo b >> out` (after 2)\n");
    let plan = scene.run(&["run", "plan.md", "--yes"]).expect(5).stdout.trim().to_owned();
    let edited = by_agent(&scene, &["task", "edit", &format!("{plan}/3"), "command=echo evil >> out", "--yes"]);
    edited.expect(0).says(&["crewlog agree"]);
    scene.run(&["answer", &format!("{plan}/q1"), "red"]).expect(0);
    scene.run(&["resume", &plan]).expect(5).says(&["task 3 runs once you agree: echo evil >> out"]);
    assert_eq!(scene.read("out"), "a\n");
}

const POEM: &str = "1. Write a poem\n2. Run `echo a >> out` (after 1)\n3. Run `echo b >> out` (after 2)\n";
const LISTED: &str = "1. Write a poem\n2. Run `echo a >> out`\n3. Run `echo b >> out`\n";
const SIGNED: &str =
    "1. Write a poem\n2. Sign it (after 1)\n3. Run `echo a >> out` (after 2)\n4. Run `echo b >> out` (after 3)\n";

/// After a person has agreed to a plan, an agent gives these orders or writes these texts into its file; then these tasks wait.
const AMENDED: [(&str, &[&str], &[&str]); 15] = [
    (POEM, &["task|edit|P/3|command=echo evil|--yes", "task|edit|P/3|command=echo b >> out|--yes"], &["P/3"]),
    (POEM, &["task|edit|P/3|timeout=1h"], &["P/3"]),
    (POEM, &["task|move|P/3"], &["P/3"]),
    (POEM, &["task|move|P/3|--after|1"], &["P/3"]),
    (POEM, &["task|move|P/3|--after|1,2"], &[]),
    (LISTED, &["task|move|P/3|--after|2,1"], &[]),
    (POEM, &["task|edit|P/3|priority=P0|label=last"], &[]),
    (POEM, &["task|skip|P/2"], &[]),
    (POEM, &["task|skip|P/3", "task|skip|P/2", "retry|P/3"], &[]),
    (POEM, &["file|(after 2)|(after 1)", "plan|sync|P|--yes"], &["P/3"]),
    (POEM, &["file|echo b >> out|echo evil", "plan|sync|P|--yes", "file||", "plan|sync|P|--yes"], &["P/3"]),
    (LISTED, &["file|3. Run|3. Look\n4. Run", "plan|sync|P|--yes"], &[]),
    (SIGNED, &["file|(after 3)|(after 1)", "plan|sync|P|--yes"], &["P/4"]),
    (
        SIGNED,
        &[
            "file|3. Run `echo a >> out` (after 2)\n4. Run `echo b >> out` (after 3)|4. Run `echo b >> out` (after 1)",
            "plan|sync|P|--yes",
        ],
        &["P/4"],
    ),
    (SIGNED, &["cancel|P/4", "task|skip|P/3", "retry|P/4"], &[]),
];

/// Runs a plan until it waits for its first step, and does this.
fn amended(scene: &Scene, text: &str, orders: &[&str]) -> String {
    scene.write("plan.md", text);
    let plan = scene.run(&["run", "plan.md", "--yes"]).expect(5).stdout.trim().to_owned();
    for order in orders {
        let order = order.replace("P/", &format!("{plan}/")).replace("|P|", &format!("|{plan}|"));
        match order.split('|').collect::<Vec<_>>().as_slice() {
            ["file", "", ""] => scene.write("plan.md", text),
            ["file", from, to] => scene.write("plan.md", text.replace(from, to)),
            words => {
                let did = by_agent(scene, words).expect(0);
                assert!(!did.stdout.contains("by a person"), "{}", did.stdout);
            }
        }
    }
    plan
}

#[test]
fn what_an_agent_amends_waits_even_if_it_runs_the_command_that_was_agreed_to() {
    for (text, orders, expected) in AMENDED {
        let scene = Scene::with_repository();
        let plan = amended(&scene, text, orders);
        works(&scene);
        assert_eq!(scene.read_if_any("out"), None, "{orders:?}");
        let signed = ["1", "2"].iter().filter(|step| **step == "1" || text == SIGNED);
        for step in signed {
            scene.run(&["task", "done", &format!("{plan}/{step}")]).expect(0);
        }
        works(&scene);
        let expected: Vec<_> = expected.iter().map(|id| id.replace("P/", &format!("{plan}/"))).collect();
        let waits: Vec<_> = waiting(&scene).into_iter().map(|(id, _)| id).collect();
        assert_eq!(waits, expected, "{orders:?}");
        let _ = scene.run(&["agree", &plan, "--yes"]);
        works(&scene);
        let _ = scene.run(&["task", "done", &format!("{plan}/3")]);
        works(&scene);
        assert!(scene.read("out").contains('b'), "{orders:?}");
    }
}

#[test]
fn what_an_agent_amends_while_the_plan_runs_waits_too() {
    for order in ["task move P/3", "task edit P/3 timeout=1h"] {
        let scene = Scene::with_repository();
        let (mut started, go) = (Gate::new(&scene, "started"), named_pipe(&scene, "go"));
        let first = Gate::pass("started");
        scene.write("plan.md", format!("1. Run `{first}; cat go`\n2. Run `echo a >> out`\n3. Run `echo b >> out`\n"));
        let mut running = scene.start(&["run", "plan.md", "--yes"]);
        let plan = running.stdout.line();
        started.wait();
        let order = order.replace("P/", &format!("{plan}/"));
        by_agent(&scene, &order.split(' ').collect::<Vec<_>>()).expect(0).says(&["the agreement to 3 ends"]);
        std::fs::write(go, "").unwrap();
        running.finish().expect(5);
        assert_eq!(scene.read("out"), "a\n", "{order}");
        scene.run(&["agree", &plan, "--yes"]).expect(0);
        works(&scene);
        assert_eq!(scene.read("out"), "a\nb\n", "{order}");
    }
}

#[test]
fn what_waits_is_not_agreed_to_with_something_else() {
    let scene = Scene::with_repository();
    let plan = amended(&scene, POEM, &["task|move|P/3"]);
    let waits = vec![(format!("{plan}/3"), "echo b >> out".to_owned())];
    // Neither with a task of the same command nor with a fork.
    scene.run(&["task", "add", "Run `echo b >> out`", "--plan", &plan, "--after", "1"]).expect(0);
    assert_eq!(waiting(&scene), waits);
    let fork = scene.run(&["fork", &plan]).expect(0).stdout.trim().to_owned();
    let mut all = [waits, vec![(format!("{fork}/3"), "echo b >> out".to_owned())]].concat();
    all.sort();
    assert_eq!(waiting(&scene), all);
}

#[test]
fn what_an_agent_changes_during_the_question_waits() {
    let scene = Scene::with_repository();
    let plan = amended(&scene, "1. Write a poem\n", &["task|add|Run `echo a >> out`|--plan|P|--after|1|--yes"]);
    let mut running = Running::start_on_terminal(&mut scene.crewlog(&["agree", &plan]));
    running.stderr.until("Let 1 task run?");
    by_agent(&scene, &["task", "move", &format!("{plan}/2")]).expect(0);
    running.types("y");
    running.finish().expect(9).says(&["what was shown has changed"]);
    works(&scene);
    assert_eq!(scene.read_if_any("out"), None);
}

#[test]
fn a_persons_own_change_needs_no_second_question() {
    let scene = Scene::with_repository();
    scene.write("plan.md", "1. Which colour?\n2. Run `echo a >> out` (after 1)\n");
    let plan = scene.run(&["run", "plan.md", "--yes"]).expect(5).stdout.trim().to_owned();
    scene.run(&["task", "edit", &format!("{plan}/2"), "command=echo mine >> out", "--yes"]).expect(0);
    scene.run(&["answer", &format!("{plan}/q1"), "red"]).expect(0);
    scene.run(&["resume", &plan]).expect(0);
    assert_eq!(scene.read("out"), "mine\n");
}

#[test]
fn a_run_of_an_agent_binds_its_own_process_alone() {
    let scene = Scene::with_repository();
    scene.write("plan.md", "1. Run `echo a >> out`\n2. Which colour?\n3. Run `echo b >> out`\n");
    let plan = by_agent(&scene, &["run", "plan.md", "--yes"]).expect(5).stdout.trim().to_owned();
    assert_eq!((scene.read("out").as_str(), agreements(&scene)), ("a\n", 0));
    scene.run(&["answer", &format!("{plan}/q1"), "red"]).expect(0);
    works(&scene).expect(5);
    assert_eq!(scene.read("out"), "a\n");
    assert_eq!(waiting(&scene), [(format!("{plan}/3"), "echo b >> out".to_owned())]);
}

#[test]
fn an_import_brings_no_consent() {
    let (scene, there) = (Scene::with_repository(), Scene::with_repository());
    // Clones of one project.
    [&scene, &there].iter().for_each(|clone| clone.write("crewlog.toml", "project = 'shop'\n"));
    scene.write("plan.md", "1. Run `touch ran`\n");
    scene.run(&["run", "plan.md", "--yes", "--detach"]).expect(0);
    scene.run(&["export", "--to", "log.jsonl"]).expect(0);
    std::fs::copy(scene.path("log.jsonl"), there.path("log.jsonl")).unwrap();
    there.run(&["import", "log.jsonl"]).expect(0);
    works(&there).expect(5).says(&["runs once you agree: touch ran"]);
    there.run(&["agree", "--yes"]).expect(0);
    works(&there).expect(0);
    there.run(&["import", "log.jsonl"]).expect(0);
    works(&there).expect(0);
}

#[test]
fn a_worker_runs_what_its_account_or_a_trusted_one_agreed_to() {
    let scene = Scene::with_repository();
    scene.write("plan.md", "1. Run `echo a >> out`\n");
    scene.run(&["run", "plan.md", "--yes", "--detach"]).expect(0);
    let account = scene.events_of_type("Agreed")[0]["by"].as_str().unwrap().to_owned();
    // In a namespace without users the process is nobody, and may still use the files.
    let by_nobody = |trusted: &[&str]| {
        let crewlog = scene.crewlog(&[&["work", "--until-idle"], trusted].concat());
        let mut command = std::process::Command::new("unshare");
        command.arg("--user").arg(crewlog.get_program()).args(crewlog.get_args()).current_dir(scene.folder());
        command.env_clear().envs(crewlog.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Running::start(&mut command).finish()
    };
    by_nobody(&[]).expect(5).says(&["task 1 runs once you agree: echo a >> out"]);
    by_nobody(&["--trust", "zoe"]).expect(5);
    assert!(!scene.path("out").exists());
    by_nobody(&["--trust", &account]).expect(0);
    assert_eq!(scene.read("out"), "a\n");
}

#[test]
fn a_fork_of_what_was_agreed_to_asks_nothing() {
    let scene = Scene::with_repository();
    let (plan, ran) = scene.plan("1. Run `echo a >> out`\n2. Run `test -e fixed`\n3. Run `echo b >> out`\n");
    ran.expect(100);
    scene.write("fixed", "");
    let fork = scene.run(&["fork", &plan, "--at", "failure"]).expect(0).stdout.trim().to_owned();
    scene.run(&["resume", &fork]).expect(0);
    assert_eq!(scene.read("out"), "a\nb\n");
    let by_agent = by_agent(&scene, &["fork", &plan, "--at", "before:1"]).expect(0).stdout.trim().to_owned();
    scene.run(&["resume", &by_agent]).expect(5).says(&["runs once you agree"]);
}

#[test]
fn an_agreement_has_no_text_and_names_its_author() {
    let scene = Scene::with_repository();
    scene.write("plan.md", "1. Run `echo secret >> out`\n");
    scene.run(&["run", "plan.md", "--yes"]).expect(0);
    let export = scene.run(&["export"]).expect(0).stdout.clone();
    let agreed: Value = serde_json::from_str(export.lines().find(|line| line.contains("\"Agreed\"")).unwrap()).unwrap();
    assert_eq!((&agreed["data"]["how"], &agreed["metadata"]["extra"]["by"]["face"]), (&json!("yes"), &json!("cli")));
    assert!(!agreed["data"].to_string().contains("secret"), "{agreed}");
}

#[tokio::test]
async fn over_http_a_right_to_say_yes_agrees_and_a_look_agrees_only_to_what_was_seen() {
    let scene = Scene::with_repository();
    scene.run(&["init", "--no-hosts"]).expect(0);
    let api = Api::start(&scene);
    let executor = token(&scene, "executor", "read,write,execute");
    let order = |name: &str, body: Value| {
        let request = api.bare(Method::POST, &format!("/api/commands/{name}")).bearer_auth(&executor);
        async move { answered(request, &body).await }
    };
    let agreed = json!({ "text": "# Build\n1. Run `echo built >> out`\n", "yes": true });
    assert_eq!(order("run", agreed).await.0, 200);
    works(&scene).expect(0);
    assert_eq!(scene.read("out"), "built\n");
    by_agent(&scene, &["task", "add", "Run `echo a >> out`", "--new", "--plan", "side", "--yes"]).expect(0);
    let item = api.view("/api/needs").await["items"][0].clone();
    assert_eq!((&item["kind"], &item["text"]), (&json!("consent"), &json!("echo a >> out")), "{item}");
    let mut action = item["actions"][0].clone();
    action.as_object_mut().unwrap().remove("action");
    assert_eq!(order("agree", action.clone()).await.0, 403, "only an operator decides");
    let other = json!({ "target": "side/1", "seen": ["0123"] });
    assert_eq!(api.command("agree", &other).await.0, 409, "what was shown is not what would run");
    assert_eq!(api.command("agree", &action).await.0, 200);
    works(&scene);
    assert_eq!(scene.read("out"), "built\na\n");
    // The form of the page sends the same.
    by_agent(&scene, &["task", "add", "Run `echo b >> out`", "--plan", "side", "--yes"]).expect(0);
    let action = api.view("/api/needs").await["items"][0]["actions"][0].clone();
    let (target, seen) = (action["target"].as_str().unwrap(), action["seen"][0].as_str().unwrap());
    let request = api.bare(Method::POST, "/do/agree").header("cookie", api.cookie().await);
    let form = request.header("content-type", "application/x-www-form-urlencoded");
    let done = form.body(format!("target={target}&seen={seen}&back=/")).send().await.unwrap();
    assert_eq!(done.status(), 303, "{}", done.text().await.unwrap());
    works(&scene);
    assert_eq!(scene.read("out"), "built\na\nb\n");
}
