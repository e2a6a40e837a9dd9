//! Keys: whose is whose, and what is said when one is missing or another.

use std::os::unix::fs::PermissionsExt;

use crewlog_executors::keys::{KeyError, KeyState, Keys, make_operator_key};
use crewlog_mq::{Error, EventStore, Query, Range};
use crewlog_planner::sealed::{SEALED, key_of};

use super::{MARK, Ring, last_reason, marked, marked_files, of_plan, pause, whole_plan};

async fn sealed_log(ring: &Ring) -> EventStore {
    let store = EventStore::in_memory().await.unwrap();
    for plan in ["p", "q"] {
        ring.veil(&store, Some("a")).append(whole_plan(plan)).await.unwrap();
        ring.veil(&store, Some("a")).append(pause(plan, &marked("why"))).await.unwrap();
    }
    store
}

#[tokio::test]
async fn another_operators_key_is_told_by_its_file_and_reads_nothing() {
    let ring = Ring::new();
    let store = sealed_log(&ring).await;
    let read = ring.veil(&store, Some("b")).read(&Query::all(), Range::default(), 10).await;
    let Err(Error::Veil(error)) = read else { panic!("{read:?}") };
    let error = error.downcast_ref::<KeyError>().unwrap();
    let KeyError::WrongOperatorKey { file, .. } = error else { panic!("{error:?}") };
    assert_eq!(*file, ring.operator("b"));
    assert!(error.to_string().contains("name the file with the right one"), "{error}");
    let refused = ring.veil(&store, Some("b")).append(pause("p", "why")).await;
    assert!(matches!(refused, Err(Error::Veil(_))), "{refused:?}");
}

#[tokio::test]
async fn what_is_no_key_file_is_refused_with_its_name() {
    let ring = Ring::new();
    for (name, content) in [("empty", ""), ("other", "a\n"), ("short", "crewlog-operator-key-1 AAAA\n")] {
        std::fs::write(ring.operator(name), content).unwrap();
        let opened = Keys::open(ring.plans(), Some(&ring.operator(name)));
        assert!(matches!(opened.err(), Some(KeyError::NotAnOperatorKey { path }) if path == ring.operator(name)));
    }
    let missing = Keys::open(ring.plans(), Some(&ring.operator("nowhere"))).err().unwrap();
    assert!(missing.to_string().contains("nowhere"), "{missing}");
    let twice = make_operator_key(&ring.operator("a"));
    assert!(matches!(twice, Err(KeyError::File { .. })), "a key is never overwritten: {twice:?}");
    let mode = ring.operator("a").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "it is for its owner alone");
}

#[tokio::test]
async fn keys_are_wrapped_anew_and_open_what_they_opened() {
    let ring = Ring::new();
    let store = sealed_log(&ring).await;
    let long_lived = ring.veil(&store, Some("a"));
    assert_eq!(last_reason(&long_lived, "p").await, marked("why"));
    let states = |operator| {
        let reports = ring.keys(operator).list().unwrap();
        reports.into_iter().map(|report| report.state).collect::<Vec<_>>()
    };
    assert_eq!(states(Some("a")), [KeyState::Ready, KeyState::Ready]);

    let rotated = ring.keys(Some("a")).rotate(&ring.operator("b")).unwrap();
    assert_eq!((rotated.n_wrapped, rotated.n_left, rotated.not_wrapped), (2, 0, Vec::new()));
    assert_eq!(states(Some("b")), [KeyState::Ready, KeyState::Ready]);
    assert!(states(Some("a")).iter().all(|state| matches!(state, KeyState::Wrapped(_))));
    assert_eq!(last_reason(&ring.veil(&store, Some("b")), "p").await, marked("why"));
    assert_eq!(last_reason(&long_lived, "p").await, marked("why"), "who has a key keeps it");
    let again = ring.keys(Some("a")).rotate(&ring.operator("b")).unwrap();
    assert_eq!((again.n_wrapped, again.n_left), (0, 2), "it may be repeated");
    let neither = ring.keys(None).rotate(&ring.operator("a")).unwrap();
    assert_eq!((neither.n_wrapped, neither.not_wrapped.len()), (0, 2));

    let key = key_of(&of_plan(&store, "p").await[0].tags).unwrap().to_owned();
    ring.keys(None).destroy(&key, "p").unwrap();
    ring.keys(Some("b")).rotate(&ring.operator("a")).unwrap();
    assert!(states(Some("a")).contains(&KeyState::Destroyed), "what is destroyed stays so");
}

#[tokio::test]
async fn a_key_that_is_not_there_is_named_and_one_that_was_changed_opens_nothing() {
    let ring = Ring::new();
    let store = sealed_log(&ring).await;
    let key = key_of(&of_plan(&store, "p").await[0].tags).unwrap().to_owned();
    let file = ring.plans().join(format!("{key}.json"));
    let kept = std::fs::read_to_string(&file).unwrap();
    let reader = ring.veil(&store, Some("a"));
    assert_eq!(last_reason(&reader, "p").await, marked("why"));

    std::fs::remove_file(&file).unwrap();
    assert_eq!(last_reason(&reader, "p").await, SEALED);
    let refused = reader.append(pause("p", "why")).await.unwrap_err();
    assert!(refused.to_string().contains(&key) && refused.to_string().contains("CREWLOG_KEYS"), "{refused}");

    // The key of one plan under the name of another's.
    let other = key_of(&of_plan(&store, "q").await[0].tags).unwrap().to_owned();
    std::fs::copy(ring.plans().join(format!("{other}.json")), &file).unwrap();
    let read = ring.veil(&store, Some("a")).read(&Query::stream("planner"), Range::default(), 1).await;
    let Err(Error::Veil(error)) = read else { panic!("{read:?}") };
    assert!(matches!(error.downcast_ref(), Some(KeyError::Damaged { path }) if *path == file), "{error}");

    std::fs::write(&file, kept).unwrap();
    assert_eq!(last_reason(&ring.veil(&store, Some("a")), "p").await, marked("why"), "a copy put back opens again");
}

#[tokio::test]
async fn a_destroyed_key_leaves_nothing_of_itself_in_its_folder() {
    let ring = Ring::new();
    let store = sealed_log(&ring).await;
    let key = key_of(&of_plan(&store, "p").await[0].tags).unwrap().to_owned();
    let wrapped = |text: &str| -> Option<String> {
        let file: serde_json::Value = serde_json::from_str(text).unwrap();
        Some(file.get("wrapped")?["key"].as_str()?.to_owned())
    };
    let file = ring.plans().join(format!("{key}.json"));
    let before = wrapped(&std::fs::read_to_string(&file).unwrap()).unwrap();
    ring.keys(None).destroy(&key, "p").unwrap();
    assert_eq!(wrapped(&std::fs::read_to_string(&file).unwrap()), None);
    for entry in std::fs::read_dir(ring.plans()).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(!text.contains(&before));
    }
    assert!(marked_files(&ring.plans()).is_empty(), "{MARK} is in no key");
    let missing = ring.keys(None).destroy("no-such-key", "p");
    assert!(matches!(missing, Err(KeyError::NoSessionKey { .. })), "{missing:?}");
    let outside = ring.keys(None).destroy("../../../../etc/hostname0000000000", "p");
    assert!(matches!(outside, Err(KeyError::NoSessionKey { .. })), "a name leads nowhere else: {outside:?}");
}
