//! `inbox`, `agents`, `leases`, `send`, `why`, `answer` of an agent: the crew as a person sees it, and what an agent may not do.

use std::sync::Arc;

use crewlog_executors::crew::{Caller, Crew, Join, NewTask};
use crewlog_executors::liveness::LivenessLock;
use crewlog_mq::{Append, CellChange, EventStore};
use crewlog_planner::claim::TaskProgress;
use crewlog_planner::crew::agents::{Profile, Wish};
use crewlog_planner::crew::asks::{Ask, Wanted};
use crewlog_planner::crew::leases::{LeaseCommand, Request, TTL, Turn};
use crewlog_planner::crew::target::Target;
use reqwest::Method;
use rustix::process::Signal;
use serde_json::Value;

use super::crew::{form, keys};
use super::scene::{Gate, Running, Scene};
use crate::crew::team::letter;
use crate::views::Api;

/// The crew in another process.
pub async fn crew(scene: &Scene) -> Crew {
    scene.run(&["init"]).expect(0);
    let store = EventStore::open(scene.path(".crewlog/log.db").to_str().expect("it is text")).await.expect("it opens");
    let life = LivenessLock::begin(&scene.path(".crewlog/log.db-workers")).expect("a lock can be made");
    // The first command that needs the project names it.
    scene.run(&["agents"]).expect(0);
    Crew::new(&store, scene.read(".crewlog/project").trim(), Arc::new(life))
}

pub async fn joined(crew: &Crew, name: &str) -> Caller {
    let profile = Profile {
        program: "claude-code".into(),
        model: Some("opus".into()),
        capabilities: vec!["review".into()],
        focus: Vec::new(),
        worktree: "host:tree".into(),
        process: Some(crew.process(name)),
        program_process: None,
    };
    let join = Join { wish: Wish::of(name), session: name.into(), profile };
    crew.join(join).await.expect("it joins").caller
}

pub async fn lease(crew: &Crew, caller: &Caller, path: &str, task: Option<&str>) {
    let request = Request {
        holder: caller.holder(),
        targets: vec![Target::written(path).expect("it is a target")],
        is_exclusive: true,
        ttl: TTL,
        reason: "it is edited".into(),
        task: task.map(str::to_owned),
        is_strict: false,
    };
    crew.reserve(caller, request, Turn::Wait(crew.store().now().plus(TTL))).await.expect("it is answered");
}

pub fn ask(wanted: Wanted, text: &str, task: Option<&str>) -> Ask {
    let task = task.map(str::to_owned);
    Ask { agent: String::new(), wanted, text: text.into(), choices: Vec::new(), task, call: None }
}

async fn two_tasks(crew: &Crew, caller: &Caller) {
    let task = |title: &str, depends_on: &[&str]| NewTask {
        key: title.into(),
        title: title.into(),
        depends_on: depends_on.iter().map(|key| (*key).into()).collect(),
        ..NewTask::default()
    };
    crew.create_tasks(caller, vec![task("first", &[]), task("second", &["first"])]).await.expect("they are made");
}

/// Lets three agents die with `backlog/1`.
async fn park(scene: &Scene, by: &Crew) {
    for n in 0..3 {
        let victim = crew(scene).await;
        let caller = joined(&victim, &format!("victim{n}")).await;
        victim.claim(&caller, "backlog/1", None).await.expect("it can be claimed");
        drop(victim);
        by.fire_timers().await.expect("the log is written");
    }
}

fn items(scene: &Scene, words: &[&str]) -> Vec<Value> {
    let listed = scene.run(&[&["inbox", "-o", "json"], words].concat()).expect(0).json();
    listed["items"].as_array().expect("a list").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_item_of_the_inbox_is_settled_by_its_command() {
    let scene = Scene::new();
    let (plan, ran) = scene.plan("1. Which colour is it?\n2. Run `true`\n");
    ran.expect(5);
    scene.plan("Which taste is it?\n").1.expect(5);
    let crew = crew(&scene).await;
    let ann = joined(&crew, "ann").await;
    two_tasks(&crew, &ann).await;
    park(&scene, &crew).await;
    crew.ask(&ann, ask(Wanted::Permission, "may I drop the table?", Some("backlog/1"))).await.expect("it is asked");
    crew.ask(&ann, ask(Wanted::Answer, "which port?", None)).await.expect("it is asked");
    scene.run(&["pause", &plan]).expect(0);

    let listed = scene.run(&["inbox", "-o", "json"]).expect(0).json();
    assert_eq!(keys(&listed), keys(&form("`inbox`")), "{listed:#}");
    let found = items(&scene, &[]);
    let kinds: Vec<_> = found.iter().map(|item| item["kind"].as_str().expect("text")).collect();
    assert_eq!(kinds, ["permission", "question", "question", "question", "parked", "paused"]);
    assert_eq!(found[0]["holds_up"], serde_json::json!(["backlog/1", "backlog/2"]), "what waits for it too");
    assert!(found.iter().all(|item| item["age_ms"].is_u64()), "{found:#?}");
    let text = scene.run(&["inbox"]).expect(0).stdout;
    let first = text.lines().next().and_then(|line| line.strip_prefix("a1  permission  ann  "));
    assert!(first.is_some_and(|age| age == "just now" || age.ends_with(" s ago")), "{text}");
    assert!(text.contains("\n    crewlog answer a1 allow\n"), "{text}");

    let before = listed["at"].as_i64().expect("a position").to_string();
    for (n_settled, item) in found.iter().enumerate() {
        assert_eq!(items(&scene, &[]).len(), found.len() - n_settled);
        let command = item["commands"][0].as_str().expect("text").replace("\"...\"", "blue");
        let words: Vec<_> = command.split(' ').skip(1).collect();
        scene.run(&[&words[..], &["--quiet"]].concat()).expect(0);
    }
    assert_eq!(items(&scene, &[]), Vec::<Value>::new());
    assert_eq!(items(&scene, &["--at", &before]).len(), found.len(), "it can be seen as it was");
    assert!(crew.claim(&ann, "backlog/1", None).await.is_ok());
    let asks = crew.asks().await.expect("it is read");
    assert_eq!(asks.answer(1).map(|(_, answer)| answer.is_granted), Some(Some(true)));
    assert_eq!(asks.answer(2).map(|(_, answer)| answer.text.as_str()), Some("blue"));
}

#[test]
fn a_question_names_what_it_holds_up_as_the_person_wrote_it() {
    let scene = Scene::new();
    let (plan, _) = scene.plan("- A: Which colour is it?\n- Paint the door (after A)\n- C: Run `true` (after 2)\n");
    let expected = [format!("{plan}/2"), format!("{plan}/C")];
    assert_eq!(items(&scene, &[])[0]["holds_up"], serde_json::json!(expected));
    for (what, says) in [
        ("/C", vec![format!("{plan}/C"), format!("{plan}/2"), "state: planned".to_owned()]),
        ("/q1", vec![format!("{plan}/A"), "state: waiting_for_you".to_owned(), "q1".to_owned()]),
        ("", vec![plan.clone(), "waits for your answer to q1".to_owned()]),
    ] {
        let why = scene.run(&["why", &format!("{plan}{what}")]).expect(0).stdout;
        assert!(says.iter().all(|says| why.contains(says)), "{what}: {why}");
    }
}

#[test]
fn a_failed_task_that_its_plan_asks_about_is_listed_with_the_answers() {
    let scene = Scene::new();
    scene.write("plan.md", "1. Run `exit 3`\n2. Run `true`\n");
    let ran = scene.run(&["run", "plan.md", "--yes", "--set", "on-failure=ask"]).expect(5);
    let (plan, found) = (ran.stdout.trim(), items(&scene, &[]));
    assert_eq!((found.len(), &found[0]["kind"], &found[0]["from"]), (1, &"failure".into(), &plan.into()));
    assert_eq!(found[0]["holds_up"], serde_json::json!([format!("{plan}/2")]));
    let skip =
        found[0]["commands"].as_array().expect("a list").iter().find(|command| {
            command.as_str().is_some_and(|command| command == format!("crewlog answer {plan}/q1 skip"))
        });
    assert!(skip.is_some(), "{found:#?}");
    scene.run(&["answer", &format!("{plan}/q1"), "skip"]).expect(0);
    assert_eq!(items(&scene, &[]), Vec::<Value>::new());
}

/// The kind of the only item, its first command, and the state of the plan in lists and in `show`.
fn only_item(scene: &Scene, plan: &str) -> [String; 4] {
    let found = items(scene, &[]);
    let [item] = &found[..] else { panic!("{found:#?}") };
    let listed = scene.run(&["ls", "-o", "json"]).expect(0).json()["plans"][0]["status"].clone();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    [text(&item["kind"]), text(&item["commands"][0]), text(&listed), text(&scene.show(plan)["status"])]
}

#[test]
fn a_plan_whose_run_died_or_that_nobody_runs_is_listed_until_it_is_resumed() {
    let scene = Scene::new();
    let mut gate = Gate::new(&scene, "gate");
    scene.write(
        "plan.md",
        format!("1. Run `test -e side || {{ touch side; {}; exec sleep 1000; }}`\n", Gate::pass("gate")),
    );
    let running = scene.start(&["run", "plan.md", "--yes"]);
    gate.wait();
    assert_eq!(items(&scene, &[]), Vec::<Value>::new(), "it runs");
    running.signal(Signal::KILL);
    let plan = running.finish().stdout.trim().to_owned();
    gate.wait_until_free();
    let resume = format!("crewlog resume {plan}");
    let interrupted = ["interrupted", &resume, "interrupted", "interrupted"];
    assert_eq!(only_item(&scene, &plan), interrupted);
    let shown = scene.run(&["show", &plan]).expect(0).stdout;
    assert!(
        shown.contains("  interrupted  ") && shown.contains(&format!("task 1; resuming runs it again\n  {resume}\n")),
        "{shown}"
    );
    scene.run(&["resume", &plan]).expect(0);
    assert_eq!(items(&scene, &[]), Vec::<Value>::new());

    let scene = Scene::new();
    let (plan, ran) = scene.plan("1. Which colour is it?\n2. Run `true`\n3. Paint the door\n");
    ran.expect(5);
    scene.run(&["answer", &format!("{plan}/q1"), "red"]).expect(0);
    let resume = format!("crewlog resume {plan}");
    assert_eq!(only_item(&scene, &plan), ["ready", &resume, "ready", "ready"]);
    scene.run(&["resume", &plan]).expect(5).says(&["YOURS"]);
    let done = format!("crewlog task done {plan}/3 \"...\"");
    assert_eq!(only_item(&scene, &plan), ["step", &done, "waiting_for_you", "waiting_for_you"]);
    scene.run(&["task", "done", &format!("{plan}/3"), "it is red"]).expect(0);
    assert_eq!(items(&scene, &[]), Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_may_not_do_what_is_for_a_person() {
    let scene = Scene::new();
    let (plan, _) = scene.plan("1. Which colour is it?\n");
    let crew = crew(&scene).await;
    let ann = joined(&crew, "ann").await;
    two_tasks(&crew, &ann).await;
    lease(&crew, &ann, "a", None).await;
    crew.ask(&ann, ask(Wanted::Permission, "may I?", None)).await.expect("it is asked");
    park(&scene, &crew).await;
    let n_events = scene.events().len();
    for words in [
        &["leases", "--force", "1", "--reason", "it is in the way"][..],
        &["answer", "a1", "allow"],
        &["answer", &format!("{plan}/q1"), "blue"],
        &["resume", "backlog/1"],
        &["task", "withdraw", &format!("{plan}/q1")],
        &["task", "skip", &format!("{plan}/1")],
        &["task", "edit", &format!("{plan}/1"), "text=Go on"],
    ] {
        for name in ["AGENT_ID", "CLAUDECODE"] {
            let mut command = scene.crewlog(words);
            let ran = super::scene::Running::start(command.env(name, "ann")).finish();
            ran.expect(11).says(&["an agent may not", "ask_person"]);
        }
    }
    assert_eq!(scene.events().len(), n_events, "nothing was appended");
    scene.run(&["answer", "a1"]).expect(2);
    scene.run(&["answer", "a1", "maybe"]).expect(1).says(&["neither allow nor deny"]);
    scene.run(&["answer", "a1", "deny"]).expect(0);
    scene.run(&["answer", "a1", "deny"]).expect(9).says(&["a1 is answered or withdrawn already"]);
    scene.run(&["answer", "a7", "deny"]).expect(4).says(&["no agent has asked a question a7"]);
    scene.run(&["leases", "--force", "77", "--reason", "it is in the way"]).expect(4);
    scene.run(&["leases", "--force", "1", "--reason", "it is in the way"]).expect(0);
    assert_eq!(scene.run(&["leases"]).expect(0).stdout, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_leases_and_why_tell_who_does_what() {
    let scene = Scene::new();
    let crew = crew(&scene).await;
    let (ann, bob) = (joined(&crew, "ann").await, joined(&crew, "bob").await);
    two_tasks(&crew, &ann).await;
    let before = scene.run(&["agents", "-o", "json"]).expect(0).json()["at"].as_i64().expect("a position").to_string();
    crew.claim(&ann, "backlog/1", None).await.expect("it can be claimed");
    let progress = TaskProgress { next_step: Some("write the test".into()), ..TaskProgress::default() };
    crew.update_task(&ann, "backlog/1", progress, None).await.expect("it is hers");
    lease(&crew, &ann, "src/*.rs", Some("backlog/1")).await;
    lease(&crew, &bob, "src/a.rs", None).await;
    let refused = |now| LeaseCommand::RefuseEdit {
        holder: crewlog_planner::crew::leases::LeaseHolder { agent: "bob".into(), worktree: "host:tree".into() },
        target: Target::literal("src/a.rs").expect("it is a target"),
        lease: 1,
        now,
    };
    crew.record_edit(refused).await.expect("it is recorded");
    scene.write("free.md", "");

    let agents = scene.run(&["agents", "-o", "json"]).expect(0).json();
    assert_eq!(keys(&agents), keys(&form("`agents`")), "{agents:#}");
    assert_eq!((&agents["agents"][0]["agent"], &agents["agents"][0]["liveness"]), (&"ann".into(), &"alive".into()));
    let leases = scene.run(&["leases", "src/a.rs", "-o", "json"]).expect(0).json();
    assert_eq!(keys(&leases), keys(&form("`leases [PATH]`")), "{leases:#}");
    assert_eq!(leases["leases"].as_array().map(Vec::len), Some(2), "the lease, and who waits for it");
    assert_eq!(scene.run(&["leases", "docs"]).expect(0).stdout, "");
    assert_eq!(scene.run(&["leases", "--at", &before]).expect(0).stdout, "");
    scene.run(&["leases", "/etc/passwd"]).expect(1).says(&["outside the repository"]);

    for (what, expected) in [
        (
            "src/a.rs",
            &[
                "path: src/*.rs",
                "agent: ann",
                "reason: it is edited",
                "task: backlog/1",
                "waiting: 1",
                "event: EditRefused",
            ][..],
        ),
        ("backlog/1", &["backlog/1\n", "state: running", "assignee: ann", "next step: write the test", "src/*.rs"]),
        ("backlog/2", &["state: planned", "title: second", "depends on:\n    backlog/1\n"]),
        ("ann", &["ann\n", "liveness: alive", "activity: idle", "model: opus", "tasks:\n    backlog/1\n", "src/*.rs"]),
        ("free.md", &["free.md\n"]),
    ] {
        let text = scene.run(&["why", what]).expect(0).stdout;
        for part in expected {
            assert!(text.contains(part), "{part:?} is not in:\n{text}");
        }
        let json = scene.run(&["why", what, "-o", "json"]).expect(0).json();
        assert!(json["at"].is_u64(), "{json:#}");
    }
    let earlier = scene.run(&["why", "backlog/1", "--at", &before]).expect(0).stdout;
    assert!(earlier.contains("state: ready"), "{earlier}");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_and_positions_that_do_not_exist_are_refused() {
    let scene = Scene::new();
    let crew = crew(&scene).await;
    let ann = joined(&crew, "ann").await;
    lease(&crew, &ann, "gone.rs", None).await;
    scene.run(&["why", "nobody"]).expect(4).says(&["no agent, plan, task or file nobody", "crewlog agents"]);
    scene.run(&["why", "gone.rs"]).expect(0);
    scene.run(&["why", "*.md"]).expect(0);
    scene.run(&["inbox", "--agent", "nobody"]).expect(4).says(&["there is no agent \"nobody\"", "crewlog agents"]);
    for words in [
        &["agents"][..],
        &["leases"],
        &["inbox"],
        &["inbox", "--agent", "ann"],
        &["why", "ann"],
        &["stats"],
        &["leases", "--conflicts"],
    ] {
        let beyond = [words, &["--at", "99999"]].concat();
        scene.run(&beyond).expect(4).says(&["the log does not reach position 99999 yet"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_stays_unread_until_it_is_read() {
    let scene = Scene::new();
    let crew = crew(&scene).await;
    let (ann, _bob) = (joined(&crew, "ann").await, joined(&crew, "bob").await);
    let sent =
        scene.run(&["send", "bob", "--subject", "hello", "--body", "- look", "--ack", "-o", "json"]).expect(0).json();
    assert_eq!(keys(&sent), keys(&form("`send TO... --subject TEXT`")));
    crew.send(&ann, letter("ann", "everyone", "all")).await.expect("sent");
    let inbox =
        |words: &[&str]| scene.run(&[&["inbox", "--agent", "bob", "-o", "json"], words].concat()).expect(0).json();
    let unread = inbox(&[]);
    assert_eq!(keys(&unread), keys(&form("`inbox --agent NAME`")), "{unread:#}");
    assert_eq!(unread["messages"].as_array().map(Vec::len), Some(2));
    assert_eq!(
        (&unread["messages"][0]["body"], &unread["messages"][0]["ack_is_due"]),
        (&"- look".into(), &true.into())
    );
    assert_eq!(inbox(&["--read"])["messages"].as_array().map(Vec::len), Some(2));
    assert_eq!(inbox(&[])["messages"].as_array().map(Vec::len), Some(0));
    assert_eq!(inbox(&["--all"])["messages"].as_array().map(Vec::len), Some(2));
    let at = unread["at"].as_i64().expect("a position").to_string();
    assert_eq!(inbox(&["--at", &at])["messages"].as_array().map(Vec::len), Some(2), "it was unread then");
    let bob = super::scene::Running::start(scene.crewlog(&["send", "ann", "--subject", "re"]).env("AGENT_ID", "bob"))
        .finish();
    bob.expect(0);
    let text = scene.run(&["inbox", "--agent", "ann"]).expect(0).stdout;
    assert!(text.contains("  bob  normal  ") && text.contains("subject: re"), "{text}");
    scene.run(&["send", "nobody", "--subject", "x"]).expect(4).says(&["there is no agent or role"]);
}

/// The words of an answer, whether they grant the permission, and the text that the agent reads.
const PERMISSIONS: [(&[&str], Option<bool>, &str); 8] = [
    (&["allow"], Some(true), "allow"),
    (&["Yes"], Some(true), "Yes"),
    (&["deny"], Some(false), "deny"),
    (&["no"], Some(false), "no"),
    (&["allow", "once"], Some(true), "once"),
    (&["deny", "-- use the branch"], Some(false), "-- use the branch"),
    (&["maybe"], None, "neither allow nor deny"),
    (&[""], None, "neither allow nor deny"),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_permission_is_answered_alike_on_every_face() {
    let scene = Scene::new();
    let crew = crew(&scene).await;
    let ann = joined(&crew, "ann").await;
    let api = Api::start(&scene);
    let cookie = api.cookie().await;
    let mut number = 0;
    for face in ["command line", "API", "page"] {
        for (words, is_granted, text) in PERMISSIONS {
            number += 1;
            let id = format!("a{number}");
            crew.ask(&ann, ask(Wanted::Permission, &format!("may I do {number}?"), None)).await.expect("it is asked");
            let fields: Vec<_> = [("question", id.as_str())]
                .into_iter()
                .chain(["text", "note"].into_iter().zip(words.iter().copied()))
                .collect();
            let (is_done, said) = match face {
                "command line" => {
                    let ran = scene.run(&[&["answer", "--", &id], words].concat());
                    (ran.status.success(), ran.stderr)
                }
                "API" => {
                    let body: serde_json::Map<_, _> =
                        fields.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect();
                    let (status, body) = api.command("answer", &body.into()).await;
                    (status == 200, body.to_string())
                }
                _page => {
                    let posted = api.bare(Method::POST, "/do/answer").header("cookie", &cookie);
                    let body: Vec<_> =
                        fields.iter().map(|(name, value)| format!("{name}={}", value.replace(' ', "+"))).collect();
                    let posted =
                        posted.header("content-type", "application/x-www-form-urlencoded").body(body.join("&"));
                    let posted = posted.send().await.expect("it answers");
                    (posted.status() == 303, posted.text().await.expect("text"))
                }
            };
            assert_eq!(is_done, is_granted.is_some(), "{face} {words:?}: {said}");
            let asks = crew.asks().await.expect("it is read");
            let answer = asks.answer(number).map(|(_, answer)| (answer.is_granted, answer.text.clone()));
            match is_granted {
                Some(_) => assert_eq!(answer, Some((is_granted, text.to_owned())), "{face} {words:?}"),
                None => {
                    assert!(answer.is_none() && (face == "page" || said.contains(text)), "{face} {words:?}: {said}");
                }
            }
        }
    }
    crew.ask(&ann, ask(Wanted::Answer, "which port?", None)).await.expect("it is asked");
    let (id, number) = (format!("a{}", number + 1), number + 1);
    scene.run(&["answer", &id, "--yes"]).expect(2);
    scene.run(&["answer", &id, "yes", "8080"]).expect(1).says(&["one text, and two were given", "quotes"]);
    scene.run(&["answer", &id, "yes"]).expect(0);
    let asks = crew.asks().await.expect("it is read");
    assert_eq!(asks.answer(number).map(|(_, answer)| (answer.is_granted, answer.text.as_str())), Some((None, "yes")));
}

/// Deletes the stored items; true if there were any.
async fn forget_items(scene: &Scene) -> bool {
    let store = EventStore::open(scene.path(".crewlog/log.db").to_str().expect("it is text")).await.expect("it opens");
    let project = scene.read(".crewlog/project");
    let space = format!("{}@{}:snapshot:needs:1", project.trim(), crewlog_executors::caller::host());
    let cells = store.cells(&space, "", 10).await.expect("they can be read");
    for cell in &cells {
        let forget = Append::default().cell(CellChange::delete(&cell.space, &cell.key));
        store.append(forget).await.expect("it can be deleted");
    }
    !cells.is_empty()
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_items_of_plans_at_rest_follow_what_changes_them() {
    const AGENT: &str = "[executors.claude]\ncommand = [\"true\"]\n";
    const OTHER: &str = "[executors.claude]\ncommand = [\"false\"]\n";
    let scene = Scene::new();
    scene.write(
        "tasks",
        "- [P] Run `true`\n- [P] Run `false`\n- [P] Review it\n- [P] Paint it (@ann)\n- [P] Mow it (@claude)\n",
    );
    for n in 1..=18 {
        let name = format!("p{n}");
        let mut add = scene.crewlog(&["task", "add", "-", "--new", "--yes", "--plan", &name]);
        let tasks = std::fs::File::open(scene.path("tasks")).expect("it is there");
        Running::start(add.env("AGENT_ID", "ada").stdin(tasks)).finish().expect(0);
    }
    let crew = crew(&scene).await;
    // A command, a file and its content, or an agent that joins.
    let deeds: [&[&str]; 14] = [
        &["agents"],
        &["agree", "p1/1", "--yes"],
        &["task", "skip", "p2/3"],
        &["work", "--until-idle"],
        &["task", "done", "p3/3", "it is fine"],
        &["pause", "p4"],
        &["pause", "p5/1"],
        &["task", "add", "What?", "--plan", "p6"],
        &["cancel", "p7"],
        &["crewlog.toml", AGENT],
        &["crewlog.toml", OTHER],
        &["agree", "--always", "true"],
        &["ann"],
        &["work", "--until-idle"],
    ];
    for (n, deed) in deeds.iter().enumerate() {
        match deed {
            ["crewlog.toml", content] => scene.write("crewlog.toml", content),
            ["ann"] => drop(joined(&crew, "ann").await),
            ["work", ..] => drop(scene.run(deed)),
            command => drop(scene.run(command).expect(0)),
        }
        let without_ages = |mut items: Vec<Value>| {
            items.iter_mut().for_each(|item| drop(item.as_object_mut().expect("fields").remove("age_ms")));
            items
        };
        let stored = without_ages(items(&scene, &[]));
        assert!(forget_items(&scene).await, "items are stored: {n} {deed:?}");
        assert_eq!(stored, without_ages(items(&scene, &[])), "{n} {deed:?}");
    }
}
