//! `groups`, and the filters of `events`: views of a program's subscription, and commands to it.

use std::time::Duration;

use crewlog_mq::{Append, EventStore, Expected, Group, Metadata, NewEvent, Query, group_handler};
use serde_json::Value;

use super::crew::{form, keys};
use super::scene::Scene;

/// Orders handled by a group; number 2 of `bad` always fails.
fn handled(scene: &Scene) -> tokio::runtime::Runtime {
    scene.run(&["init"]).expect(0);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    runtime.block_on(async {
        let store = open(scene).await;
        for n in 1..=3 {
            for aggregate_id in ["bad", "good"] {
                let data = format!("{{\"n\":{n}}}");
                let event = NewEvent::from_json("Placed", "1.0", data, &Metadata::default()).expect("it is JSON");
                let event = event.with_tags([format!("n:{n}")]);
                store.append(Append::to("orders", aggregate_id, Expected::Any, vec![event])).await.expect("it lands");
            }
        }
        work(&store, true).await;
    });
    runtime
}

async fn open(scene: &Scene) -> EventStore {
    let path = scene.path(".crewlog/log.db");
    EventStore::open(path.to_str().expect("the path is UTF-8")).await.expect("the log opens")
}

fn group(store: &EventStore) -> Group {
    store.group("billing").query(Query::stream("orders")).partitions(2).park_after(1)
}

async fn work(store: &EventStore, fails: bool) {
    let handler = group_handler(move |event, _delivery| {
        Box::pin(async move {
            let is_bad = fails && event.aggregate_id == "bad" && event.sequence == 2;
            if is_bad { Err("no such customer".into()) } else { Ok(()) }
        })
    });
    let head = store.head().await.expect("the head can be read");
    let group = group(store);
    let stop = async {
        group.wait_until(head).await.expect("it is there");
        let mut ticks = tokio::time::interval(Duration::from_millis(5));
        while !fails && !store.groups().show("billing").await.expect("it is there").versions[0].parked.is_empty() {
            ticks.tick().await;
        }
    };
    let worked = tokio::time::timeout(super::scene::DEADLINE, group.run_until(handler, stop));
    worked.await.expect("it comes to an end").expect("the worker goes on");
}

#[test]
fn groups_can_be_listed_shown_paused_and_reset_and_parked_events_replayed() {
    let scene = Scene::new();
    assert_eq!(scene.run(&["groups", "ls"]).expect(1).stdout, "", "there is no log yet");
    let runtime = handled(&scene);
    let ls = scene.run(&["groups", "ls"]).expect(0).stdout;
    assert_eq!(ls, "billing  v1  Active      caught up  1 parked\n");
    let shown = scene.run(&["groups", "show", "billing", "-o", "json"]).expect(0).json();
    assert_eq!(keys(&shown), keys(&form("`groups ls`, `groups show NAME`, `groups parked NAME`")), "{shown:#}");
    let version = &shown["versions"][0];
    assert_eq!((&shown["group"], &version["status"]), (&"billing".into(), &"Active".into()));
    assert_eq!((version["partitions"].as_array().map(Vec::len), &version["lag"]["n_events"]), (Some(2), &0.into()));
    let listed = scene.run(&["groups", "ls", "-o", "json"]).expect(0).json();
    assert_eq!(listed["groups"][0]["versions"][0]["parked"], version["parked"]);
    let parked = scene.run(&["groups", "parked", "billing", "-o", "json"]).expect(0).json();
    let expected: Value = serde_json::json!({ "parked": [{
        "stream_id": "orders", "aggregate_id": "bad", "from": 3, "n_events": 2, "more": false, "n_attempts": 1,
        "error": "no such customer", "is_replayed": false
    }]});
    assert_eq!(parked, expected);
    let shown = scene.run(&["groups", "show", "billing"]).expect(0).stdout;
    assert!(
        shown.contains("parked orders/bad  2 events from position 3, after 1 attempt: no such customer"),
        "{shown}"
    );

    scene.run(&["groups", "parked", "billing", "--replay", "--aggregate", "orders/bad"]).expect(0);
    runtime.block_on(async { work(&open(&scene).await, false).await });
    assert_eq!(scene.run(&["groups", "parked", "billing"]).expect(0).stdout, "");
    scene.run(&["groups", "pause", "billing"]).expect(0);
    let again = scene.run(&["groups", "pause", "billing"]).expect(0).stdout;
    assert_eq!(again, "nothing changes for billing\n");
    assert!(scene.run(&["groups", "ls"]).expect(0).stdout.contains("paused"));
    scene.run(&["groups", "resume", "billing"]).expect(0);
    scene.run(&["groups", "reset", "billing", "--to", "2"]).expect(0);
    let ls = scene.run(&["groups", "ls"]).expect(0).stdout;
    assert!(ls.contains("4 events, "), "{ls}");
    scene.run(&["groups", "retire", "billing", "--group-version", "1"]).expect(0);
    assert!(scene.run(&["groups", "ls"]).expect(0).stdout.contains("Retired"));
}

#[test]
fn an_unknown_group_or_impossible_group_command_is_refused_with_a_hint() {
    let scene = Scene::new();
    let _runtime = handled(&scene);
    let check = |words: &[&str], code: i32, says: &str| {
        let ran = scene.run(&[&["groups"], words].concat()).expect(code);
        assert!(ran.stderr.contains(says), "{says} is not in {}", ran.stderr);
    };
    check(&["show", "bills"], 4, "there is no group \"bills\"");
    check(&["pause", "bills"], 4, "crewlog groups ls");
    check(&["parked", "a b"], 4, "there is no group");
    check(&["reset", "billing", "--to", "999"], 1, "the log ends at");
    check(&["reset", "billing", "--to", "1", "--group-version", "9"], 4, "no version 9");
    check(&["parked", "billing", "--skip", "--aggregate", "orders/good"], 4, "nothing of orders/good is parked");
    check(&["parked", "billing", "--skip"], 2, "--aggregate");
    check(&["parked", "billing", "--replay", "--aggregate", "bad"], 2, "STREAM/ID");
}

#[test]
fn events_supports_every_filter_from_either_end_and_live() {
    let scene = Scene::new();
    let runtime = handled(&scene);
    let positions = |words: &[&str]| -> Vec<i64> {
        let ran = scene.run(&[&["events", "-o", "jsonl"], words].concat());
        let events = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).expect("each line is JSON"));
        events.map(|event| event["position"].as_i64().expect("a position")).collect()
    };
    assert_eq!(positions(&["--stream", "orders", "--aggregate", "bad"]), [1, 3, 5]);
    assert_eq!(positions(&["--stream", "orders", "--reverse", "--up-to", "4"]), [4, 3, 2, 1]);
    assert_eq!(positions(&["--tag", "n:2"]), [3, 4]);
    assert_eq!(positions(&["--tag", "n:2", "--tag", "n:3"]), [] as [i64; 0], "all of several tags");
    assert_eq!(positions(&["--type", "Declared", "--type", "Parked"]), [7, 8], "any of several types");
    let either = r#"{"aggregate_id": "good", "or": [{"event_type": "Parked"}]}"#;
    assert_eq!(positions(&["--filter", either]), [2, 4, 6, 8]);
    assert_eq!(positions(&["--stream", "orders", "--until", "2001-01-01T00:00:00Z"]), [] as [i64; 0]);
    assert_eq!(positions(&["--stream", "orders", "--since", "2001-01-01T00:00:00Z", "--after", "4"]), [5, 6]);
    scene.run(&["events", "--filter", "{\"stream\": 1}"]).expect(2).says(&["invalid query"]);
    scene.run(&["events", "--filter", "{}", "--type", "A"]).expect(2);
    scene.run(&["events", "--follow", "-o", "json"]).expect(1).says(&["-o jsonl"]);

    let mut following = scene.start(&["events", "--follow", "--stream", "orders", "--after", "5"]);
    following.stdout.until("orders good");
    runtime.block_on(async {
        let store = open(&scene).await;
        let event = NewEvent::from_json("Placed", "1.0", "{\"live\":true}".into(), &Metadata::default()).expect("JSON");
        store.append(Append::to("orders", "new", Expected::Any, vec![event])).await.expect("it lands");
    });
    following.stdout.until("{\"live\":true}");
    drop(following);

    let id = |position: usize| scene.events()[position - 1]["event_id"].as_str().expect("an id").to_owned();
    runtime.block_on(async {
        let store = open(&scene).await;
        for (cause, aggregate_id) in [(1, "first"), (10, "second")] {
            let cause = store.read(&Query::event(id(cause).parse().expect("a uuid")), Default::default(), 1).await;
            let metadata = crewlog_mq::Cause::event(&cause.expect("the log can be read").events[0]).metadata().clone();
            let event = NewEvent::from_json("Sent", "1.0", "{}".into(), &metadata).expect("it is JSON");
            store.append(Append::to("bills", aggregate_id, Expected::Any, vec![event])).await.expect("it lands");
        }
    });
    for from in [1, 10, 11] {
        assert_eq!(positions(&["--causes", &id(from)]), [1, 10, 11], "up and down from {from}");
    }
    assert_eq!(positions(&["--caused-by", &id(1)]), [10]);
    scene.run(&["events", "--causes", "00000000-0000-0000-0000-000000000000"]).expect(4).says(&["no event has the id"]);
    let unknown = ["events", "-o", "json", "--causes", "00000000-0000-0000-0000-000000000000"];
    assert_eq!(scene.run(&unknown).expect(4).stdout, "", "no half of a document");
}
