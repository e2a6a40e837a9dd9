//! The log of a sealed plan, on every backend, and the view of readers.

use std::collections::BTreeSet;

use crewlog_executors::history::History;
use crewlog_executors::plans::{planner_of, planner_of_fork};
use crewlog_executors::prompts::prompt_of;
use crewlog_mq::{
    Append, Cause, Error, EventStore, Expected, Followed, Metadata, NewEvent, Position, Query, Range, Recorded, Start,
    group_handler, new_event_id,
};
use crewlog_planner::claim::{TaskEvent, TaskProgress};
use crewlog_planner::event::{Command, Event, PlannerConfig, plan_tag};
use crewlog_planner::lifecycle::of_log;
use crewlog_planner::plan::TaskId;
use crewlog_planner::sealed::{BROKEN, PREFIX, SEALED, SHREDDED, key_of};
use crewlog_planner::view::PlanView;
use futures::StreamExt;
use serde_json::json;

use super::{
    MARK, Ring, everything, happened, holds_mark, last_reason, marked, new_event, of_plan, pause, planned, reported,
    whole_plan,
};
use crate::executors::rig::soon;
use crewlog_stage::backends::logs;

#[tokio::test(flavor = "multi_thread")]
async fn sealed_texts_are_read_back_as_written_and_never_appear_in_the_log() {
    for (store, _on) in logs().await {
        let ring = Ring::new();
        let sealed = ring.veil(&store, Some("a"));
        let append = whole_plan("p");
        let written = append.writes().iter().flat_map(|write| &write.events).cloned().collect::<Vec<_>>();
        sealed.append(append).await.unwrap();

        for reader in [sealed.clone(), ring.veil(&store, Some("a"))] {
            let read = everything(&reader).await;
            let json = |recorded: &Recorded| (recorded.data.clone(), recorded.metadata.clone());
            let expected = written.iter().map(|event| (event.data().to_owned(), event.metadata().to_owned()));
            assert_eq!(read.iter().map(json).collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "byte for byte");
        }
        let events = sealed.load_events::<Event>(&Query::aggregate("planner", "p"), None).await.unwrap();
        assert_eq!(events, [planned()].into_iter().chain(happened()).collect::<Vec<_>>());
        let events = sealed.load_events::<TaskEvent>(&Query::aggregate("task", "p/1"), None).await.unwrap();
        assert_eq!(events, reported());

        for stored in everything(&store).await {
            assert!(!holds_mark(&stored), "{}: {} {}", stored.event_type, stored.data, stored.metadata);
            assert!(key_of(&stored.tags).is_some(), "{} bears its key's name", stored.event_type);
        }
        assert!(store.check().await.unwrap().findings.is_empty(), "it is a sound log");
        assert_eq!(everything(&sealed.as_stored()).await, everything(&store).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_is_rendered_from_a_sealed_plan_and_its_forks() {
    for (store, _on) in logs().await {
        let ring = Ring::new();
        let sealed = ring.veil(&store, Some("a"));
        let mut planner = planner_of(&sealed, "p", vec![plan_tag("p")]).await.unwrap();
        let config = PlannerConfig { system_prompt: marked("system"), ..PlannerConfig::default() };
        let user_input = format!("- {}", marked("Think about it"));
        let begin = Command::of_text(user_input, config, false).unwrap();
        planner.execute(begin, &Cause::request()).await.unwrap();
        let head = sealed.head().await.unwrap();
        let point = History::of(&sealed, "p").await.unwrap().fork_point(&sealed, head).await.unwrap().unwrap();
        let mut fork = planner_of_fork(&sealed, &point, "f", vec![plan_tag("f")]);
        let (parent, at, reason) = (point.parent, point.at, marked("why"));
        let forked = Command::Fork { parent, at, reason, pauses: false, amendments: Vec::new() };
        fork.execute(forked, &Cause::request()).await.unwrap();

        let stored = everything(&store).await;
        let keys = stored.iter().map(|stored| key_of(&stored.tags).unwrap()).collect::<BTreeSet<_>>();
        assert_eq!(keys.len(), 1, "one session has one key");
        assert!(stored.iter().all(|stored| !holds_mark(stored)));
        let begin = format!("{}\n\n# Your task\n\nxyzzy \"Think about it\"", marked("system"));
        for plan in ["p", "f"] {
            let prompt = prompt_of(&sealed, plan, TaskId(1), None, Range::default()).await.unwrap();
            assert!(prompt.text.starts_with(&begin), "{prompt:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn live_and_group_events_are_decrypted_too() {
    for (store, _on) in logs().await {
        let ring = Ring::new();
        let sealed = ring.veil(&store, Some("a"));
        sealed.append(whole_plan("p")).await.unwrap();
        let head = store.head().await.unwrap();
        let mut live = std::pin::pin!(sealed.follow_marked(&Query::stream("planner"), Start::After(head)));
        assert_eq!(soon(live.next()).await.unwrap().unwrap(), Followed::CaughtUp(head));
        sealed.append(pause("p", &marked("live"))).await.unwrap();
        let heard = loop {
            if let Followed::Event(heard) = soon(live.next()).await.unwrap().unwrap() {
                break heard;
            }
        };
        assert_eq!(heard.decode::<Event>().unwrap(), Event::PlanPaused { reason: marked("live"), from_parent: false });

        let group = sealed.group("g").query(Query::stream("planner"));
        let handler = group_handler(|event: &Recorded, _| {
            let read = event.decode::<Event>();
            Box::pin(async move {
                match read? {
                    Event::PlanPaused { reason, .. } if !reason.contains(MARK) => Err("it is closed".into()),
                    _open => Ok(()),
                }
            })
        });
        let last = Position(head.0 + 1);
        let handled = async { group.wait_until(last).await.unwrap() };
        soon(group.run_until(handler, handled)).await.unwrap();
        let parked = store.read(&Query::stream("groups").of_type("Parked"), Range::default(), 1).await.unwrap();
        assert!(parked.events.is_empty(), "each was open: {:?}", parked.events);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_append_is_encrypted_to_the_same_bytes_by_every_writer() {
    for (store, _on) in logs().await {
        let ring = Ring::new();
        let append = whole_plan("p");
        let first = ring.veil(&store, Some("a")).append(append.clone()).await.unwrap();
        let bytes = everything(&store).await;
        for again in [ring.veil(&store, Some("a")), ring.veil(&store, Some("a"))] {
            let repeated = again.append(append.clone()).await.unwrap();
            assert_eq!((repeated.repeated, repeated.places), (true, first.places.clone()));
        }
        assert_eq!(everything(&store).await, bytes);

        let other = new_event(&Event::PlanPaused { reason: "another".into(), from_parent: false }, "p");
        let other = other.with_id(append.writes()[0].events[0].event_id());
        let other = Append::to("planner", "p", Expected::Any, vec![other]);
        let refused = ring.veil(&store, Some("a")).append(other).await;
        assert!(matches!(refused, Err(Error::IdReused { .. })), "{refused:?}");
    }
}

#[tokio::test]
async fn a_sealed_text_cannot_be_moved_to_another_event_or_field() {
    let (store, ring) = (EventStore::in_memory().await.unwrap(), Ring::new());
    let sealed = ring.veil(&store, Some("a"));
    sealed.append(whole_plan("p")).await.unwrap();
    sealed.append(pause("p", &marked("moved"))).await.unwrap();
    let last = of_plan(&store, "p").await.pop().unwrap();
    assert!(last.data.contains(PREFIX));

    // The same bytes in another event of the same plan, or in another field.
    let moved = NewEvent::from_json("PlanPaused", "1.0", last.data.clone(), &Metadata::default()).unwrap();
    let moved = moved.with_tags(last.tags.clone());
    store.append(Append::to("planner", "p", Expected::Any, vec![moved])).await.unwrap();
    assert_eq!(last_reason(&sealed, "p").await, BROKEN);

    let swapped = planned_twice();
    sealed.append(Append::to("planner", "q", Expected::NoStream, vec![swapped.clone()])).await.unwrap();
    let stored = of_plan(&store, "q").await.remove(0);
    let mut data: serde_json::Value = serde_json::from_str(&stored.data).unwrap();
    let (title, source) = (data["title"].take(), data["source"].take());
    (data["title"], data["source"]) = (source, title);
    let event = NewEvent::from_json("TasksPlanned", "1.0", data.to_string(), &Metadata::default()).unwrap();
    let event = event.with_id(swapped.event_id()).with_tags(stored.tags.clone());
    let elsewhere = EventStore::in_memory().await.unwrap();
    elsewhere.append(Append::to("planner", "q", Expected::NoStream, vec![event])).await.unwrap();
    let read = of_plan(&ring.veil(&elsewhere, Some("a")), "q").await.remove(0);
    let Event::TasksPlanned { title, source, context, .. } = read.decode().unwrap() else { panic!("{read:?}") };
    assert_eq!((title.as_deref(), &*source), (Some(BROKEN), BROKEN));
    assert_eq!(context, [marked("context")], "what was not moved still opens");
}

fn planned_twice() -> NewEvent {
    new_event(&planned(), "q")
}

#[tokio::test]
async fn without_a_key_everything_folds_and_texts_show_as_sealed() {
    let (store, ring) = (EventStore::in_memory().await.unwrap(), Ring::new());
    let sealed = ring.veil(&store, Some("a"));
    sealed.append(whole_plan("p")).await.unwrap();
    let fold = |events: Vec<Recorded>| {
        let mut view = PlanView::default();
        events.iter().for_each(|recorded| _ = view.apply(recorded).unwrap());
        view
    };
    let open = fold(everything(&sealed).await);
    let closed = fold(everything(&ring.veil(&store, None)).await);
    assert_eq!(of_log("p", &closed), of_log("p", &open));
    let (task, of_open) = (closed.state().task(TaskId(1)).unwrap(), open.state().task(TaskId(1)).unwrap());
    assert_eq!(
        (task.status, task.plan.kind, &task.plan.files),
        (of_open.status, of_open.plan.kind, &of_open.plan.files)
    );
    assert_eq!(task.plan.description, SEALED);
    assert_eq!((task.result.as_deref(), of_open.result.as_deref()), (Some(SEALED), Some(&*marked("result"))));
    assert_eq!(closed.state().title.as_deref(), Some(SEALED));

    let refused = ring.veil(&store, None).append(pause("p", "why")).await;
    assert!(refused.as_ref().unwrap_err().to_string().contains("--key-file"), "{refused:?}");
    assert!(matches!(refused, Err(Error::Veil(_))));
    let progressed = TaskEvent::TaskProgressed { epoch: 1, progress: TaskProgress::default() };
    let progressed = NewEvent::of(&progressed, &Metadata::default()).unwrap().with_tags([plan_tag("p")]);
    let progressed = Append::to("task", "p/1", Expected::Any, vec![progressed]);
    ring.veil(&store, None).append(progressed).await.expect("what has no text needs no key");
}

#[tokio::test]
async fn a_plan_started_without_keys_stays_unsealed() {
    let (store, ring) = (EventStore::in_memory().await.unwrap(), Ring::new());
    store.append(whole_plan("p")).await.unwrap();
    let before = everything(&store).await;
    let sealed = ring.veil(&store, Some("a"));
    assert_eq!(everything(&sealed).await, before);
    sealed.append(pause("p", &marked("later"))).await.unwrap();
    assert_eq!(last_reason(&store, "p").await, marked("later"), "half a plan is not sealed");
    assert!(!ring.plans().exists(), "no key was made");
}

#[tokio::test]
async fn each_plan_has_its_own_key_and_its_forks_share_it() {
    let (store, ring) = (EventStore::in_memory().await.unwrap(), Ring::new());
    let sealed = ring.veil(&store, Some("a"));
    sealed.append(whole_plan("p")).await.unwrap();
    sealed.append(whole_plan("q")).await.unwrap();
    for (fork, parent) in [("p-fork", "p"), ("p-fork-fork", "p-fork")] {
        let forked =
            Event::PlanForked { parent: parent.into(), at: Position(1), reason: marked("forked"), is_draft: false };
        let events = vec![new_event(&forked, fork)];
        sealed.append(Append::to("planner", fork, Expected::NoStream, events)).await.unwrap();
        sealed.append(pause(fork, &marked("of the fork"))).await.unwrap();
    }
    let keys = async |plan| {
        let events = of_plan(&store, plan).await;
        let keys = events.iter().map(|recorded| key_of(&recorded.tags).unwrap().to_owned());
        let mut keys = keys.collect::<Vec<_>>();
        keys.dedup();
        assert_eq!(keys.len(), 1, "all of {plan} is under one key");
        keys.remove(0)
    };
    let key = keys("p").await;
    assert_ne!(keys("q").await, key);
    assert_eq!((keys("p-fork").await, keys("p-fork-fork").await), (key.clone(), key.clone()));

    // A process that has the key in memory gets no more than others.
    assert_eq!(last_reason(&sealed, "p-fork").await, marked("of the fork"));
    assert!(ring.keys(None).destroy(&key, "p").unwrap());
    assert!(!ring.keys(None).destroy(&key, "p").unwrap(), "only once");
    for reader in [sealed.clone(), ring.veil(&store, Some("a")), ring.veil(&store, None)] {
        assert!(
            everything(&reader)
                .await
                .iter()
                .all(|recorded| recorded.aggregate_id.starts_with('q') || !holds_mark(recorded))
        );
        for fork in ["p-fork", "p-fork-fork"] {
            assert_eq!(last_reason(&reader, fork).await, SHREDDED);
        }
        let Event::TasksPlanned { source, .. } = of_plan(&reader, "p").await.remove(0).decode().unwrap() else {
            panic!()
        };
        assert_eq!(source, SHREDDED);
    }
    assert!(of_plan(&sealed, "q").await.iter().any(holds_mark), "other sessions are untouched");

    // The plan can still end, but its texts are lost.
    sealed.append(pause("p", &marked("too late"))).await.unwrap();
    assert_eq!(last_reason(&store, "p").await, SHREDDED);
}

#[tokio::test]
async fn a_text_that_looks_sealed_is_encrypted_in_any_field() {
    let (store, ring) = (EventStore::in_memory().await.unwrap(), Ring::new());
    let sealed = ring.veil(&store, Some("a"));
    let data = json!({ "reason": format!("{PREFIX}AAAA"), "kind": format!("{PREFIX}AAAA"), "class": "Task" });
    let event = NewEvent::from_json("PlanPaused", "1.0", data.to_string(), &Metadata::default()).unwrap();
    let event = event.with_tags([plan_tag("p")]).with_id(new_event_id());
    sealed.append(Append::to("planner", "p", Expected::Any, vec![event.clone()])).await.unwrap();
    assert_eq!(of_plan(&sealed, "p").await[0].data, event.data());
}
