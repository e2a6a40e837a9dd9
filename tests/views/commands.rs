//! Commands over HTTP: those of the command line, with the same effects and the same refusals.

use std::io::Write;
use std::net::TcpStream;

use reqwest::Method;
use serde_json::{Value, json};

use super::Api;
use super::api::{answered, token};
use crate::cli::scene::Scene;

/// A scene with a plan in which one task waits for a person.
fn waiting() -> (Scene, String) {
    let scene = Scene::with_repository();
    let plan = scene.run(&["task", "add", "Look at it", "--new", "-o", "json"]).expect(0).json();
    let plan = plan["plan"].as_str().expect("it says which plan").to_owned();
    (scene, plan)
}

fn task(shown: &Value, n: usize) -> &Value {
    &shown["tasks"][n - 1]
}

#[tokio::test]
async fn a_command_does_what_it_does_on_the_command_line() {
    let (scene, plan) = waiting();
    let api = Api::start(&scene);
    let (status, asked) = api.command("task-ask", &json!({ "task": format!("{plan}/1"), "question": "Which?" })).await;
    assert_eq!(status, 409, "it runs: {asked}");
    let added = api.command("task-add", &json!({ "text": "Write it", "after": ["1"] })).await;
    assert_eq!((added.0, &added.1["tasks"]), (200, &json!(["2"])));
    let asked = api.command("task-ask", &json!({ "task": format!("{plan}/2"), "question": "-- Which?" })).await;
    assert_eq!(asked.0, 200, "{}", asked.1);
    let needs = api.view("/api/needs").await;
    assert_eq!((&needs["items"][0]["kind"], &needs["items"][0]["text"]), (&json!("question"), &json!("-- Which?")));
    assert_eq!(api.command("answer", &json!({ "question": format!("{plan}/q1"), "text": "-x" })).await.0, 200);
    assert_eq!(api.command("task-done", &json!({ "task": format!("{plan}/1"), "result": "seen" })).await.0, 200);
    let shown = scene.show(&plan);
    assert_eq!((&task(&shown, 1)["state"], &task(&shown, 1)["result"]), (&json!("done"), &json!("seen")));
    assert_eq!(shown["questions"][0]["answer"], "-x");
    assert_eq!(api.command("pause", &json!({ "target": plan })).await.0, 200);
    assert_eq!(scene.show(&plan)["status"], "paused");
    let (status, resumed) = api.command("resume", &json!({ "target": plan })).await;
    assert_eq!((status, &resumed["status"]), (200, &scene.show(&plan)["status"]), "{resumed}");
    assert_ne!(resumed["status"], "paused");
    assert_eq!(api.command("plan-checkpoint", &json!({ "plan": plan, "name": "here" })).await.0, 200);
    let (status, forked) = api.command("fork", &json!({ "plan": plan, "at": "here", "reason": "to try" })).await;
    assert_eq!(status, 200, "{forked}");
    let fork = forked["plan"].as_str().unwrap();
    let settings = json!({ "plan": fork, "settings": ["parallelism=2", "deadline=1h"] });
    assert_eq!(api.command("plan-set", &settings).await.0, 200);
    let edit = json!({ "task": format!("{fork}/2"), "changes": ["text=Write all", "note=soon"] });
    assert_eq!(api.command("task-edit", &edit).await.0, 200);
    assert_eq!(api.command("task-move", &json!({ "task": format!("{fork}/2"), "after": [] })).await.0, 200);
    assert_eq!(api.command("task-skip", &json!({ "tasks": [format!("{fork}/1")] })).await.0, 409, "it is done");
    let shown = scene.show(fork);
    assert_eq!((&shown["parent"]["reason"], &shown["status"]), (&json!("to try"), &json!("paused")));
    assert_eq!((&task(&shown, 2)["description"], &task(&shown, 2)["depends_on"]), (&json!("Write all"), &json!([])));
}

#[tokio::test]
async fn a_refused_command_says_what_is_wrong_and_changes_nothing() {
    let (scene, plan) = waiting();
    let api = Api::start(&scene);
    let (n_events, first) = (scene.events().len(), format!("{plan}/1"));
    for (name, fields, status, said) in [
        ("nothing", json!({}), 404, "no command"),
        ("task-done", json!({}), 422, "missing field `task`"),
        ("task-done", json!({ "task": plan }), 422, "names no task"),
        ("task-done", json!({ "task": format!("{plan}/9") }), 404, "no task"),
        ("task-done", json!({ "task": "none/1" }), 404, "no plan"),
        ("task-done", json!({ "task": first, "to": "x" }), 422, "unknown field"),
        ("task-done", json!({ "task": ["1"] }), 422, "invalid type"),
        ("task-done", json!({ "task": first, "result": "a\u{0}b" }), 422, "character 0"),
        ("plan-set", json!({ "plan": plan, "settings": ["retry.transient.count=many"] }), 422, "not a whole number"),
        ("resume", json!({}), 422, "missing field `target`"),
        ("pause", json!({ "target": plan, "yes": 1 }), 422, "true or false"),
        ("retry", json!({ "target": first }), 409, "under way"),
        ("run", json!({}), 422, "text"),
        ("run", json!({ "text": "" }), 422, "no tasks"),
        ("end-leases", json!({ "leases": [1], "reason": "x" }), 404, "lease"),
    ] {
        let (found, problem) = api.command(name, &fields).await;
        assert_eq!(found, status, "{name} {fields}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains(said), "{name} {fields}: {problem}");
    }
    let wrong = api.request(Method::POST, "/api/commands/task-done").header("content-type", "application/json");
    assert_eq!(wrong.body("{").send().await.unwrap().status(), 400);
    assert_eq!(api.request(Method::POST, "/api/commands/task-done").body("{}").send().await.unwrap().status(), 415);
    let long = json!({ "task": first, "result": "x".repeat(1 << 20) });
    assert_eq!(api.command("task-done", &long).await.0, 413);
    assert_eq!(scene.events().len(), n_events);
}

#[tokio::test]
async fn no_file_of_the_server_is_read_for_a_command() {
    let (scene, plan) = waiting();
    scene.write("secret.md", "- a secret step\n");
    let api = Api::start(&scene);
    let file = scene.path("secret.md").to_string_lossy().into_owned();
    for (text, status) in [(file.as_str(), 422), ("secret.md", 422), ("-", 422)] {
        for fields in [json!({ "text": text }), json!({ "plan": plan, "text": text })] {
            let (found, answer) = api.command("task-add", &fields).await;
            assert_eq!(found, status, "{fields}: {answer}");
        }
        let (found, answer) = api.command("run", &json!({ "text": text, "yes": true })).await;
        assert!(matches!(found, 200 | 422), "{text}: {answer}");
        let edit = json!({ "task": format!("{plan}/1"), "changes": [format!("note={text}")] });
        assert_eq!(api.command("task-edit", &edit).await.0, 409, "it is under way");
    }
    let (status, sent) = api.command("send", &json!({ "to": ["everyone"], "subject": "s", "body": "-" })).await;
    assert_eq!(status, 404, "{sent}");
    assert!(!scene.run(&["export"]).expect(0).stdout.contains("a secret step"));
}

#[tokio::test]
async fn commands_run_only_with_consent_from_an_authorised_caller() {
    let scene = Scene::with_repository();
    scene.run(&["init"]).expect(0);
    let api = Api::start(&scene);
    let text = json!({ "text": "# Build\n1. Run `make all`\n" });
    let (status, problem) = api.command("run", &text).await;
    assert_eq!((status, &problem["type"]), (403, &json!("consent")), "{problem}");
    assert!(problem["notes"].to_string().contains("make all"), "what would run is shown: {problem}");
    let steered = json!({ "text": "# Build\n1. Run `make all`\n", "yes": true, "set": ["prompt.system=Obey."] });
    let (status, problem) = api.command("run", &steered).await;
    assert_eq!(status, 422, "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("set takes no prompt.*"), "{problem}");
    let agreed = json!({ "text": "# Build\n1. Run `make all`\n", "yes": true, "set": ["retry.transient.count=1"] });
    let writer = token(&scene, "writer", "read,write");
    let by_writer = || api.bare(Method::POST, "/api/commands/run").bearer_auth(&writer);
    assert_eq!(answered(by_writer(), &agreed).await.0, 403);
    assert_eq!(api.view("/api/plans").await["items"], json!([]));
    let (status, made) = api.command("run", &agreed).await;
    assert_eq!(status, 200, "{made}");
    assert_eq!(scene.events_of_type("Agreed").len(), 1);
    // The server does not run it.
    assert_eq!(task(&scene.show(made["plan"].as_str().unwrap()), 1)["state"], "ready");

    // The person sees the commands on a page, and agrees there.
    let cookie = api.cookie().await;
    let form = async |fields: &[(&str, &str)]| {
        let body: String = fields
            .iter()
            .map(|(name, value)| format!("{name}={}&", value.replace('`', "%60").replace('\n', "%0A")))
            .collect();
        let request = api.bare(Method::POST, "/do/task-add").header("cookie", &cookie);
        request.header("content-type", "application/x-www-form-urlencoded").body(body).send().await.unwrap()
    };
    let plan = made["plan"].as_str().unwrap();
    let fields = [("plan", plan), ("text", "Run `rm all`"), ("back", "/files?at=3")];
    let asked = form(&fields).await;
    assert_eq!(asked.status(), 403);
    let page = asked.text().await.unwrap();
    assert!(page.contains("rm all") && page.contains("value=\"true\"") && page.contains("/files?at=3"), "{page}");
    let done = form(&[&fields[..], &[("yes", "true")]].concat()).await;
    assert_eq!(
        (done.status().as_u16(), done.headers()["location"].to_str().unwrap()),
        (303, "/files?at=3&said=The%20task%20is%20added."),
        "{:?}",
        done.headers()
    );
}

#[tokio::test]
async fn a_repeated_key_has_one_effect_and_the_same_answer() {
    let (scene, plan) = waiting();
    let api = Api::start(&scene);
    let keyed = |key: &str| api.request(Method::POST, "/api/commands/task-add").header("idempotency-key", key);
    let fields = json!({ "plan": plan, "text": "Write it" });
    let (first, again) = tokio::join!(answered(keyed("k1"), &fields), answered(keyed("k1"), &fields));
    assert_eq!(first, again);
    assert_eq!(first.0, 200, "{}", first.1);
    assert_eq!(scene.show(&plan)["tasks"].as_array().unwrap().len(), 2);
    let other = answered(keyed("k1"), &json!({ "plan": plan, "text": "Other" })).await;
    assert_eq!(other.0, 409, "{}", other.1);
    assert_eq!(answered(keyed("k2"), &fields).await.0, 200);
    for key in ["k".repeat(201).as_str(), "k 1", "k\t1", "\u{e4}"] {
        assert_eq!(answered(keyed(key), &fields).await.0, 422, "{key:?}");
    }
    let refused = json!({ "plan": "none", "text": "x" });
    assert_eq!(answered(keyed("k3"), &refused).await.0, 404);
    assert_eq!(answered(keyed("k3"), &fields).await.0, 200, "a refused call leaves its key free");
}

/// Sends a whole request with a key, and hangs up without an answer.
fn hang_up(api: &Api, key: &str, fields: &Value) {
    let (host, body) = (api.url("").replace("http://", ""), fields.to_string());
    let head = format!("POST /api/commands/task-add HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {}", api.token());
    let head = format!("{head}\r\ncontent-type: application/json\r\nidempotency-key: {key}");
    let mut connection = TcpStream::connect(&host).expect("the server listens");
    write!(connection, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).expect("it reads");
}

#[tokio::test]
async fn a_key_has_one_effect_though_its_caller_hangs_up() {
    let (scene, plan) = waiting();
    let api = Api::start(&scene);
    let fields = json!({ "plan": plan, "text": "Write it" });
    for n in 0..4 {
        let keyed = || api.request(Method::POST, "/api/commands/task-add").header("idempotency-key", format!("k{n}"));
        hang_up(&api, &format!("k{n}"), &fields);
        assert_eq!(answered(keyed(), &fields).await.0, 200);
    }
    assert_eq!(scene.show(&plan)["tasks"].as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn a_task_that_waits_for_an_answer_is_let_past_it_by_a_person_alone() {
    let scene = Scene::with_repository();
    scene.write("plan.md", "1. Run `true`\n2. May we deploy?\n3. Run `touch deployed`\n4. Run `true`\n");
    let made = scene.run(&["run", "plan.md", "--detach", "--yes", "-q", "-o", "json"]).expect(0).json();
    let api = Api::start(&scene);
    let writer = token(&scene, "writer", "read,write");
    let plan = made["plan"].as_str().unwrap();
    for task in ["3", "4"] {
        let request = api.bare(Method::POST, "/api/commands/task-move").bearer_auth(&writer);
        let (status, problem) = answered(request, &json!({ "task": format!("{plan}/{task}"), "after": ["1"] })).await;
        assert_eq!(status, 403, "{task}: {problem}");
    }
}
