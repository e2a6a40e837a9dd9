//! Callers and the commands that they may use, from a page of this server; headers of every answer; the pages after a form.

use std::collections::BTreeSet;

use reqwest::header::{COOKIE, HeaderMap, LOCATION, ORIGIN};
use reqwest::{Method, RequestBuilder};
use serde_json::json;

use super::Api;
use super::api::{answered, token};
use crate::cli::scene::Scene;

/// Each command, and the scope that it needs.
const COMMANDS: [(&str, &str); 20] = [
    ("agree", "operator"),
    ("answer", "operator"),
    ("cancel", "write"),
    ("end-leases", "operator"),
    ("fork", "write"),
    ("pause", "write"),
    ("plan-checkpoint", "write"),
    ("plan-set", "write"),
    ("resume", "write"),
    ("retry", "write"),
    ("run", "write"),
    ("send", "write"),
    ("task-add", "write"),
    ("task-ask", "write"),
    ("task-done", "write"),
    ("task-edit", "write"),
    ("task-fail", "write"),
    ("task-move", "write"),
    ("task-skip", "write"),
    ("task-withdraw", "operator"),
];

/// The callers: their credentials, and the scopes that they have; `None` for those that may use no command.
struct Callers {
    all: Vec<(&'static str, HeaderMap, Option<&'static [&'static str]>)>,
}

impl Callers {
    async fn of(scene: &Scene, api: &Api) -> Self {
        let one = |name: reqwest::header::HeaderName, value: String| {
            HeaderMap::from_iter([(name, value.parse().expect("it is a header"))])
        };
        let bearer = |token: String| one(reqwest::header::AUTHORIZATION, format!("Bearer {token}"));
        let mut all = vec![
            ("nobody", HeaderMap::new(), None),
            ("a wrong token", bearer("wrong".into()), None),
            ("an agent", bearer(scene.read(".crewlog/agent-token").trim().to_owned()), None),
            ("the person", one(COOKIE, api.cookie().await), Some(&["write", "operator"][..])),
        ];
        for (scope, scopes) in
            [("read", &[][..]), ("write", &["write"][..]), ("execute", &[][..]), ("operator", &["operator"][..])]
        {
            all.push((scope, bearer(token(scene, scope, scope)), Some(scopes)));
        }
        Self { all }
    }
}

fn from_page(request: RequestBuilder, origin: Option<&str>) -> RequestBuilder {
    origin.into_iter().fold(request, |request, origin| request.header(ORIGIN, origin))
}

/// A request with the fields of a form, as a browser sends it.
fn with_form(request: RequestBuilder, fields: &[(&str, &str)]) -> RequestBuilder {
    let encoded = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let fields = fields.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value)));
    let body = fields.collect::<Vec<_>>().join("&");
    request.header("content-type", "application/x-www-form-urlencoded").body(body)
}

#[tokio::test]
async fn each_command_is_for_those_who_may_and_from_no_page_of_another_server() {
    let scene = Scene::with_repository();
    scene.run(&["init", "--no-hosts"]).expect(0);
    let api = Api::start(&scene);
    let document = api.view("/api/openapi.json").await;
    let paths = document["paths"].as_object().unwrap().keys();
    let commands: BTreeSet<_> = paths.filter_map(|path| path.strip_prefix("/api/commands/")).collect();
    assert_eq!(commands, COMMANDS.iter().map(|(name, _)| *name).collect(), "each command has its line here");
    let callers = Callers::of(&scene, &api).await;
    let n_events = scene.events().len();
    let own = api.url("");
    let origins = [None, Some(own.as_str()), Some("http://evil.example"), Some("null")];
    for (name, needs) in COMMANDS {
        for (caller, credentials, scopes) in &callers.all {
            for origin in origins {
                let request = api.bare(Method::POST, &format!("/api/commands/{name}")).headers(credentials.clone());
                let (status, problem) = answered(from_page(request, origin), &json!({ "none": 1 })).await;
                let expected = match (origin, scopes) {
                    (Some("http://evil.example" | "null"), _) => 403,
                    (_, None) if *caller == "an agent" => 403,
                    (_, None) => 401,
                    (_, Some(scopes)) if scopes.contains(&needs) => 422,
                    (_, Some(_)) => 403,
                };
                assert_eq!(status, expected, "{name} by {caller} from {origin:?}: {problem}");
            }
        }
    }
    assert_eq!(scene.events().len(), n_events);
}

#[tokio::test]
async fn a_form_is_for_the_person_at_a_page_of_this_server() {
    let scene = Scene::with_repository();
    scene.run(&["task", "add", "Paint the door"]).expect(0);
    let api = Api::start(&scene);
    let own = api.url("");
    for (caller, credentials, _) in Callers::of(&scene, &api).await.all {
        for origin in ["http://evil.example", "null", own.as_str()] {
            let request = api.bare(Method::POST, "/do/task-done").headers(credentials.clone());
            let request = request.header(ORIGIN, origin);
            let answer = with_form(request, &[("task", "backlog/1"), ("result", "red")]).send();
            let status = answer.await.unwrap().status().as_u16();
            let expected = match (origin == own, caller) {
                (true, "the person") => 303,
                (true, "nobody" | "a wrong token") => 401,
                (_, _) => 403,
            };
            assert_eq!(status, expected, "{caller} from {origin}");
        }
    }
    assert_eq!(scene.events_of_type("TaskCompleted").len(), 1);
}

#[tokio::test]
async fn what_another_tab_has_settled_is_settled_once_and_the_page_says_so() {
    let scene = Scene::with_repository();
    for task in ["Paint the door", "Paint the wall"] {
        scene.run(&["task", "add", task]).expect(0);
    }
    scene.run(&["task", "add", "Choose a colour", "--after", "2"]).expect(0);
    scene.run(&["task", "ask", "backlog/3", "Which colour?"]).expect(0);
    let api = Api::start(&scene);
    let cookie = api.cookie().await;
    for (first, second, why) in [
        (
            ("task-done", [("task", "backlog/1"), ("result", "red")]),
            ("task-done", [("task", "backlog/1"), ("result", "blue")]),
            "Task 1 is done",
        ),
        (
            ("task-fail", [("task", "backlog/2"), ("error", "rain")]),
            ("task-done", [("task", "backlog/2"), ("result", "dry")]),
            "Task 2 is failed",
        ),
        (
            ("answer", [("question", "backlog/q1"), ("text", "red")]),
            ("answer", [("question", "backlog/q1"), ("text", "blue")]),
            "it was answered",
        ),
    ] {
        let sent = async |(name, fields): (&str, [(&str, &str); 2])| {
            let request = api.bare(Method::POST, &format!("/do/{name}")).header(COOKIE, &cookie);
            let answer = with_form(request.header("accept", "text/html"), &fields).send().await.unwrap();
            (answer.status().as_u16(), answer.text().await.unwrap())
        };
        let (status, said) = sent(first).await;
        assert_eq!(status, 303, "{first:?}: {said}");
        let n_events = scene.events().len();
        let (status, said) = sent(second).await;
        assert_eq!(status, 409, "{second:?}: {said}");
        assert_eq!(scene.events().len(), n_events, "{second:?}");
        assert!(said.contains(why), "{second:?}: {said}");
    }
}

#[tokio::test]
async fn a_form_leads_back_to_a_page_of_this_server() {
    let scene = Scene::with_repository();
    scene.run(&["task", "add", "Paint the door"]).expect(0);
    let api = Api::start(&scene);
    let cookie = api.cookie().await;
    for (back, to) in [
        ("/plans/backlog", "/plans/backlog?said="),
        ("/plans/backlog?at=3", "/plans/backlog?at=3&said="),
        ("//evil.example", "/?said="),
        ("/\\evil.example", "/?said="),
        ("\\\\evil.example", "/?said="),
        ("http://evil.example/", "/?said="),
        ("evil.example", "/?said="),
        ("/\r\nSet-Cookie: a=b", "/?said="),
        ("/\u{0}", "/?said="),
        ("", "/?said="),
    ] {
        let fields = [("plan", "backlog"), ("settings", "retry.transient.count=1"), ("back", back)];
        let request = with_form(api.bare(Method::POST, "/do/plan-set").header(COOKIE, &cookie), &fields);
        let answer = request.send().await.unwrap();
        let location = answer.headers().get(LOCATION).and_then(|location| location.to_str().ok()).unwrap_or_default();
        assert_eq!(answer.status(), 303, "{back:?}");
        assert!(location.starts_with(to), "{back:?} leads to {location}");
        assert!(answer.headers().get("set-cookie").is_none());
    }
}

#[tokio::test]
async fn every_answer_tells_a_browser_what_it_may_do_with_it() {
    let scene = Scene::with_repository();
    scene.run(&["task", "add", "Paint the door"]).expect(0);
    let api = Api::start(&scene);
    let cookie = api.cookie().await;
    for (path, is_signed_in, status) in [
        ("/", true, 200),
        ("/", false, 401),
        ("/?token=wrong", false, 401),
        ("/plans/backlog", true, 200),
        ("/plans/none", true, 404),
        ("/assets/page.css", true, 200),
        ("/api/plans", true, 200),
        ("/api/plans", false, 401),
        ("/api/none", true, 404),
        ("/do/none", true, 405),
        ("/mcp", true, 403),
    ] {
        for accept in ["text/html", "*/*"] {
            let request = api.bare(Method::GET, path).header("accept", accept);
            let request = if is_signed_in { request.header(COOKIE, &cookie) } else { request };
            let answer = request.send().await.unwrap();
            let case = format!("{path} as {accept}, signed in: {is_signed_in}");
            assert_eq!(answer.status(), status, "{case}");
            let header =
                |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
            let policy = header("content-security-policy");
            for part in ["default-src 'none'", "script-src 'self'", "form-action 'self'", "frame-ancestors 'none'"] {
                assert!(policy.contains(part), "{case}: {policy:?}");
            }
            assert!(!policy.contains("unsafe"), "{case}: {policy}");
            assert_eq!(header("x-content-type-options"), "nosniff", "{case}");
            assert_eq!(header("referrer-policy"), "same-origin", "{case}");
            assert_eq!(header("cross-origin-opener-policy"), "same-origin", "{case}");
            assert!(!header("cache-control").is_empty(), "{case}");
        }
    }
}

#[tokio::test]
async fn two_servers_need_two_ports_and_any_loopback_address_will_do() {
    let scene = Scene::with_repository();
    scene.run(&["init", "--no-hosts"]).expect(0);
    let api = Api::start(&scene);
    let listen = api.printed["listen"].as_str().unwrap();
    scene.run(&["serve", "--listen", listen]).expect(1).says(&[listen, "in use"]);
    let other = Api::start_with(&scene, &["--listen", "[::1]:0"]);
    assert!(other.url("").starts_with("http://[::1]:"), "{}", other.printed);
    let cookies = [api.cookie().await, other.cookie().await];
    for (api, own, foreign) in [(&api, &cookies[0], &cookies[1]), (&other, &cookies[1], &cookies[0])] {
        // A browser sends the cookies of all ports.
        for (cookie, status) in [(format!("{foreign}; {own}"), 200), (foreign.clone(), 401)] {
            let page = api.bare(Method::GET, "/").header(COOKIE, cookie).send().await.unwrap();
            assert_eq!(page.status(), status, "{}", api.url(""));
        }
    }
    let added = other.command("task-add", &json!({ "text": "By the other" })).await;
    assert_eq!(added.0, 200, "{}", added.1);
    assert_eq!(api.view("/api/plans").await["items"].as_array().unwrap().len(), 1, "both have one log");
}
