//! Every view at any position: HTTP and the command line agree, and past views may be cached forever.

use std::collections::BTreeMap;

use regex::Regex;
use reqwest::Method;
use serde_json::{Value, json};

use super::Api;
use crate::cli::demo;
use crate::cli::scene::Scene;
use crate::cli::server::on_server;
use crewlog_stage::cluster::Database;

fn n_positions() -> i64 {
    if crewlog_stage::tries_all() { 200 } else { 40 }
}

/// The end of the recorded day: the server appends more.
const END: i64 = 853;

/// Positions spread over the log, including the first and the last, by a step that meets every remainder.
fn positions(n_positions: i64) -> impl Iterator<Item = i64> {
    (1..=n_positions).map(move |n| if n == n_positions { END } else { (n * 1_009) % END + 1 })
}

#[tokio::test]
async fn a_view_at_positions_of_a_recorded_day_is_what_the_command_line_shows() {
    let n_shown = compare(&demo::scene(), n_positions()).await;
    assert!(n_shown > 25, "{n_shown} plans were compared");
}

#[tokio::test]
async fn views_of_a_log_on_a_server_are_the_same() {
    let database = Database::new();
    let scene = on_server(&database);
    scene.write("crewlog.toml", format!("project = \"{}\"\n", demo::PROJECT));
    scene.write("day.jsonl", demo::export());
    scene.run(&["import", "day.jsonl"]).expect(0);
    assert!(compare(&scene, 20).await > 10);
}

/// Compares a list and a plan over HTTP with the command line at some positions; returns at how many the plan existed.
async fn compare(scene: &Scene, n_positions: i64) -> usize {
    let api = Api::start(scene);
    let printed = |words: &[&str]| scene.run(&[words, &["-o", "json"]].concat());
    // The name of the list in the command line's JSON.
    let lists: [(&str, &[&str], &str); 6] = [
        ("/api/agents?all=true&", &["agents", "--all"], "agents"),
        ("/api/leases?", &["leases"], "leases"),
        ("/api/needs?", &["inbox"], "items"),
        ("/api/conflicts?", &["leases", "--conflicts"], "conflicts"),
        ("/api/statistics?", &["stats"], "projects"),
        ("/api/plans?", &["ls"], "plans"),
    ];
    let mut n_shown = 0;
    for (n, position) in positions(n_positions).enumerate() {
        let at = position.to_string();
        let (path, words, key) = lists[n % lists.len()];
        let list = api.view(&format!("{path}at={at}")).await;
        let expected = printed(&[words, &["--at", &at]].concat()).expect(0).json();
        assert_eq!(list["items"], expected[key], "{path} at {at}");
        let plans = api.view(&format!("/api/plans?at={at}")).await;
        let Some(plan) = plans["items"].as_array().and_then(|plans| plans.iter().cycle().nth(n)) else { continue };
        let plan = plan["plan"].as_str().expect("a plan has an id");
        let shown = api.view(&format!("/api/plans/{plan}?at={at}")).await;
        assert_eq!(shown, printed(&["show", plan, "--at", &at]).expect(0).json(), "{plan} at {at}");
        n_shown += 1;
    }
    n_shown
}

/// The values of two consecutive attributes.
fn pairs(page: &str, one: &str, other: &str) -> BTreeMap<String, String> {
    let pattern = format!("{one}=\"([^\"]*)\" {other}=\"([^\"]*)\"");
    let found = Regex::new(&pattern).expect("it is a pattern");
    found.captures_iter(page).map(|found| (found[1].to_owned(), found[2].to_owned())).collect()
}

/// The same fields of the items of a list.
fn fields(list: &Value, one: &str, other: &str) -> BTreeMap<String, String> {
    let text = |item: &Value, key: &str| item[key].as_str().unwrap_or_default().to_owned();
    list.as_array().into_iter().flatten().map(|item| (text(item, one), text(item, other))).collect()
}

#[tokio::test]
async fn the_page_at_positions_of_a_recorded_day_shows_what_the_views_say() {
    let scene = demo::scene();
    let api = Api::start(&scene);
    let cookie = api.cookie().await;
    let plans = ["iso-week-dates-7k2m", "built-in-time-zones-3fqa", "backlog", "built-in-time-zones-fork-9w4d"];
    let mut n_shown = 0;
    for (n, at) in positions(n_positions()).enumerate() {
        let plan = plans[n % plans.len()];
        let page = async |path: &str| {
            let request = api.bare(Method::GET, &format!("{path}?at={at}")).header("cookie", &cookie);
            request.send().await.unwrap().text().await.unwrap()
        };
        let (home, page) = (page("/").await, page(&format!("/plans/{plan}/tasks")).await);
        let needs = api.view(&format!("/api/needs?at={at}")).await;
        assert_eq!(pairs(&home, "data-need", "data-kind"), fields(&needs["items"], "id", "kind"), "at {at}");
        let agents = api.view(&format!("/api/agents?at={at}")).await;
        assert_eq!(
            pairs(&home, "data-liveness", "data-activity").len().min(1),
            agents["items"].as_array().unwrap().len().min(1)
        );
        for (agent, liveness) in pairs(&home, "data-agent", "data-liveness") {
            assert_eq!(fields(&agents["items"], "agent", "liveness").get(&agent), Some(&liveness), "at {at}");
        }
        let shown = api.get(&format!("/api/plans/{plan}?at={at}")).await;
        if shown.status() != 200 {
            assert_eq!(pairs(&page, "data-task", "data-state"), BTreeMap::new(), "{plan} was not there at {at}");
            continue;
        }
        let shown: Value = serde_json::from_str(&shown.text().await.unwrap()).unwrap();
        assert_eq!(pairs(&page, "data-task", "data-state"), fields(&shown["tasks"], "id", "state"), "{plan} at {at}");
        assert!(
            page.contains(&format!("data-plan-status=\"{}\"", shown["status"].as_str().unwrap())),
            "{plan} at {at}"
        );
        assert!(page.contains(&format!("data-at=\"{}\" data-live=\"false\"", shown["at"])), "{plan} at {at}");
        n_shown += 1;
    }
    assert!(i64::from(n_shown) > n_positions() / 2, "{n_shown} plans were compared");
}

#[tokio::test]
async fn past_views_may_be_cached_forever_and_current_ones_may_not() {
    let scene = demo::scene();
    let api = Api::start(&scene);
    let control = async |path: &str| {
        let response = api.get(path).await;
        assert_eq!(response.status(), 200, "{path}");
        response.headers()["cache-control"].to_str().unwrap().to_owned()
    };
    let plan = "/api/plans/backlog";
    for path in
        ["/api/plans", "/api/agents", "/api/files", plan, "/api/plans/backlog/graph", "/api/events", "/api/events/9"]
    {
        assert_eq!(control(path).await, "no-store", "{path}");
        assert!(control(&format!("{path}?at=800")).await.contains("immutable"), "{path}");
    }
    let head = api.view("/api/plans").await["at"].as_i64().unwrap();
    let beyond = api.get(&format!("/api/plans?at={}", head + 1_000)).await;
    assert_eq!(beyond.status(), 404);
    assert_eq!(beyond.headers()["cache-control"], "no-store");
    assert_eq!(beyond.headers()["content-type"], "application/problem+json");
    let problem: Value = serde_json::from_str(&beyond.text().await.unwrap()).unwrap();
    assert!(problem["detail"].as_str().unwrap().contains(&head.to_string()), "{problem}");
}

#[tokio::test]
async fn an_event_names_its_causes_and_effects_up_to_the_position() {
    let scene = demo::scene();
    let api = Api::start(&scene);
    let claims = api.view("/api/events?type=TaskClaimed&limit=1").await;
    let claimed = claims["items"][0]["position"].as_i64().unwrap();
    let event = api.view(&format!("/api/events/{claimed}")).await;
    assert_eq!(event["event_type"], "TaskClaimed");
    let id = event["event_id"].as_str().unwrap();
    let trace = scene.run(&["events", "--causes", id, "-o", "json"]).expect(0).json();
    let traced: Vec<_> = trace["events"].as_array().unwrap().iter().map(|event| &event["position"]).collect();
    for linked in ["causes", "effects"] {
        for event in event[linked].as_array().unwrap() {
            assert!(traced.contains(&&event["position"]), "{event}");
        }
    }
    let cause = event["causes"][0]["position"].as_i64().unwrap();
    // The claim is one append with leases.
    let dispatched = api.view(&format!("/api/events/{cause}?at={}", claimed + 20)).await;
    assert_eq!(dispatched["effects"][0]["position"], claimed);
    let before = api.view(&format!("/api/events/{cause}?at={}", claimed - 1)).await;
    assert_eq!(before["effects"], json!([]));
    assert_eq!(api.get(&format!("/api/events/{claimed}?at={}", claimed - 1)).await.status(), 404);
}

#[tokio::test]
async fn events_come_in_pages_by_position_from_either_end() {
    let scene = demo::scene();
    let api = Api::start(&scene);
    let (mut forwards, mut after) = (Vec::new(), String::new());
    loop {
        let page = api.view(&format!("/api/events?plan=backlog&at={END}&limit=97{after}")).await;
        forwards.extend(page["items"].as_array().unwrap().iter().map(|event| event["position"].as_i64().unwrap()));
        match page["next"].as_i64() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    let page = api.view(&format!("/api/events?plan=backlog&limit=500&reverse=true&at={END}")).await;
    let backwards: Vec<_> =
        page["items"].as_array().unwrap().iter().map(|event| event["position"].as_i64().unwrap()).collect();
    forwards.reverse();
    assert_eq!(forwards[..backwards.len()], backwards);
    let printed = scene.run(&["events", "backlog", "--up-to", &END.to_string(), "-o", "jsonl"]).expect(0);
    assert_eq!(forwards.len(), printed.stdout.lines().count());
}

#[tokio::test]
async fn counts_and_bars_add_up_to_the_tasks() {
    let scene = demo::scene();
    let api = Api::start(&scene);
    let plan = "iso-week-dates-7k2m";
    let shown = api.view(&format!("/api/plans/{plan}?at={END}")).await;
    let n_tasks = shown["tasks"].as_array().unwrap().len();
    let counts = api.view(&format!("/api/plans/{plan}/counts?points=50&at={END}")).await;
    let last = &counts["counts"].as_array().unwrap()[49];
    let sum: u64 = last["counts"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!((sum as usize, &last["position"]), (n_tasks, &shown["at"]));
    let stages = counts["stages"].as_array().unwrap();
    let n_done = &last["counts"][stages.iter().position(|stage| stage == "done").unwrap()];
    let completed = shown["tasks"].as_array().unwrap().iter().filter(|task| task["state"] == "done").count();
    assert_eq!(n_done.as_u64(), Some(completed as u64));
    let graph = api.view(&format!("/api/plans/{plan}/graph?at={END}")).await;
    assert_eq!(graph["nodes"].as_array().unwrap().len(), n_tasks);
    // The edges are the dependencies of the tasks.
    let name_of = |place: &serde_json::Value| &graph["nodes"][place.as_u64().unwrap() as usize]["name"];
    let edges = graph["edges"].as_array().unwrap().iter().map(|edge| (name_of(&edge[1]), name_of(&edge[0])));
    let waits = shown["tasks"].as_array().unwrap().iter();
    let waits = waits.flat_map(|task| task["depends_on"].as_array().unwrap().iter().map(|on| (&task["id"], on)));
    let (mut edges, mut waits) = (edges.collect::<Vec<_>>(), waits.collect::<Vec<_>>());
    edges.sort_by_key(|pair| pair.0.to_string() + &pair.1.to_string());
    waits.sort_by_key(|pair| pair.0.to_string() + &pair.1.to_string());
    assert_eq!(edges, waits);
    let timeline = api.view(&format!("/api/plans/{plan}/timeline?by_task=true")).await;
    for bar in timeline["lanes"].as_array().unwrap().iter().flat_map(|lane| lane["bars"].as_array().unwrap()) {
        assert!(bar["to_us"].is_null() || bar["from_us"].as_i64() <= bar["to_us"].as_i64(), "{bar}");
    }
}
