//! Keys: the texts that each opens, and the errors for a missing or foreign one.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crewlog_executors::keys::{KeyError, KeyState, Keys, make_operator_key};
use crewlog_mq::{Error, EventStore};
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
async fn another_operators_key_is_reported_by_its_file_and_reads_nothing() {
    let ring = Ring::new();
    let store = sealed_log(&ring).await;
    let reader = ring.veil(&store, Some("b"));
    assert_eq!(last_reason(&reader, "p").await, SEALED);
    let refused = reader.append(pause("p", "why")).await;
    let Err(Error::Veil(error)) = refused else { panic!("{refused:?}") };
    let error = error.downcast_ref::<KeyError>().unwrap();
    let KeyError::WrongOperatorKey { file, .. } = error else { panic!("{error:?}") };
    assert_eq!(*file, ring.operator("b"));
    assert!(error.to_string().contains("name the file of the right key"), "{error}");
}

#[tokio::test]
async fn operators_share_a_log_and_each_reads_only_their_own_plans() {
    let ring = Ring::new();
    let store = sealed_log(&ring).await;
    ring.veil(&store, Some("b")).append(whole_plan("r")).await.unwrap();
    ring.veil(&store, Some("b")).append(pause("r", &marked("why"))).await.unwrap();
    for (operator, opens, closed) in [("a", ["p", "q"].as_slice(), ["r"].as_slice()), ("b", &["r"], &["p", "q"])] {
        let reader = ring.veil(&store, Some(operator));
        for plan in opens {
            assert_eq!(last_reason(&reader, plan).await, marked("why"), "{operator} reads {plan}");
        }
        for plan in closed {
            assert_eq!(last_reason(&reader, plan).await, SEALED, "{operator} does not read {plan}");
        }
    }
}

/// The file of a plan's key.
async fn key_file(ring: &Ring, store: &EventStore, plan: &str) -> PathBuf {
    ring.plans().join(format!("{}.json", key_of(&of_plan(store, plan).await[0].tags).unwrap()))
}

#[tokio::test]
async fn an_unreadable_key_locks_only_its_own_plan_and_does_not_count_as_destroyed() {
    let ring = Ring::new();
    let store = sealed_log(&ring).await;
    let (of_p, of_q) = (key_file(&ring, &store, "p").await, key_file(&ring, &store, "q").await);
    let kept = std::fs::read(&of_p).unwrap();
    ring.veil(&store, Some("a")).append(whole_plan("gone")).await.unwrap();
    let gone = key_file(&ring, &store, "gone").await;
    ring.keys(None).destroy(gone.file_stem().unwrap().to_str().unwrap(), "gone").unwrap();
    let wrecks = [
        ("empty", Vec::new()),
        ("cut off", kept[..kept.len() / 2].to_vec()),
        ("of another form", b"{\"form\":9}".to_vec()),
        ("of another plan", std::fs::read(&of_q).unwrap()),
        ("of another plan, and destroyed", std::fs::read(&gone).unwrap()),
    ];
    let long_lived = ring.veil(&store, Some("a"));
    assert_eq!(last_reason(&long_lived, "p").await, marked("why"));
    for (how, wreck) in wrecks {
        std::fs::write(&of_p, wreck).unwrap();
        for reader in [&ring.veil(&store, Some("a")), &long_lived] {
            assert_eq!(last_reason(reader, "q").await, marked("why"), "{how}: what has nothing to do with it is read");
            assert_eq!(last_reason(reader, "p").await, SEALED, "{how}");
            let refused = reader.append(pause("p", "why")).await;
            let Err(Error::Veil(error)) = refused else { panic!("{how}: {refused:?}") };
            assert!(
                matches!(error.downcast_ref(), Some(KeyError::Damaged { path }) if *path == of_p),
                "{how}: {error}"
            );
        }
        let states = ring.keys(Some("a")).list().unwrap().into_iter().map(|report| report.state).collect::<Vec<_>>();
        assert_eq!(states.iter().filter(|state| **state == KeyState::Damaged).count(), 1, "{how}: {states:?}");
    }
    std::fs::remove_file(&of_p).unwrap();
    std::fs::create_dir(&of_p).unwrap();
    assert_eq!(last_reason(&long_lived, "q").await, marked("why"), "a folder in its place is no key either");
    assert_eq!(last_reason(&long_lived, "p").await, SEALED);
    let refused = long_lived.append(pause("p", "why")).await.unwrap_err().to_string();
    assert!(refused.contains("cannot be read: Is a directory") && !refused.contains("damaged"), "{refused}");
    std::fs::remove_dir(&of_p).unwrap();
    std::fs::write(&of_p, kept).unwrap();
    assert_eq!(last_reason(&long_lived, "p").await, marked("why"), "a copy put back opens again");
}

#[tokio::test]
async fn placeholders_read_without_a_key_are_never_written_back_as_texts() {
    let ring = Ring::new();
    let store = sealed_log(&ring).await;
    let (file, open) = (key_file(&ring, &store, "p").await, ring.veil(&store, Some("a")));
    let kept = std::fs::read(&file).unwrap();
    std::fs::write(&file, "").unwrap();
    let folded = last_reason(&open, "p").await;
    std::fs::write(&file, kept).unwrap();
    for decided in [folded.clone(), format!("it is not so: {folded}"), "what else comes of it".to_owned()] {
        let refused = open.append(pause("p", &decided)).await;
        let Err(Error::Veil(error)) = refused else { panic!("{decided}: {refused:?}") };
        assert!(error.to_string().contains("restart the command"), "{error}");
    }
    open.append(pause("q", "as ever")).await.unwrap();
    assert_eq!(last_reason(&open, "p").await, marked("why"), "the plan is as it was");
    open.append(pause("p", "it was read anew")).await.unwrap();
    assert_eq!(last_reason(&open, "p").await, "it was read anew");
}

#[tokio::test]
async fn text_that_looks_like_a_placeholder_is_written_and_read_unchanged() {
    let ring = Ring::new();
    let store = sealed_log(&ring).await;
    let open = ring.veil(&store, Some("a"));
    for words in [SEALED, "it is not so: [sealed]"] {
        open.append(pause("p", words)).await.unwrap();
        assert_eq!(last_reason(&open, "p").await, words);
    }
    store.append(pause("open", SEALED)).await.unwrap();
    assert_eq!(last_reason(&open, "open").await, SEALED, "also where nothing is sealed");
}

#[tokio::test]
async fn replacing_keys_removes_temporary_key_files_left_by_a_crash() {
    let ring = Ring::new();
    let store = sealed_log(&ring).await;
    let of_p = key_file(&ring, &store, "p").await;
    let name = of_p.file_stem().unwrap().to_str().unwrap().to_owned();
    let kept = std::fs::read(&of_p).unwrap();
    let left = ring.plans().join(format!("new-{}", crewlog_mq::new_event_id()));
    for (replace, n_bytes) in [("rotate", kept.len()), ("rotate", kept.len() - 3), ("destroy", kept.len())] {
        // A crash leaves it before the file is moved into place, or while it is being written.
        std::fs::write(&left, &kept[..n_bytes]).unwrap();
        match replace {
            "rotate" => assert_eq!(ring.keys(Some("a")).rotate(&ring.operator("b")).unwrap().not_wrapped.len(), 0),
            _destroy => assert!(ring.keys(None).destroy(&name, "p").unwrap()),
        }
        assert!(!left.exists(), "{replace}: a key that is destroyed lies nowhere else");
    }
}

#[tokio::test]
async fn key_operations_keep_an_operators_key_stored_in_the_key_folder() {
    let ring = Ring::new();
    let store = sealed_log(&ring).await;
    let key = key_of(&of_plan(&store, "p").await[0].tags).unwrap().to_owned();
    let id = crewlog_mq::new_event_id();
    let names = ["new-op.key".to_owned(), "new-".to_owned(), format!("new-{id}"), format!("new-{id}.json")];
    let mut given = ring.operator("a");
    for name in names {
        let new = ring.plans().join(&name);
        make_operator_key(&new).unwrap();
        let kept = std::fs::read(&new).unwrap();
        let rotated = Keys::open(ring.plans(), Some(&given)).unwrap().rotate(&new).unwrap();
        assert_eq!((rotated.n_wrapped, rotated.not_wrapped), (2, Vec::new()), "{name}");
        assert_eq!(std::fs::read(&new).unwrap(), kept, "{name} is there as it was");
        let reader = store.clone().veiled(std::sync::Arc::new(Keys::open(ring.plans(), Some(&new)).unwrap()));
        assert_eq!(last_reason(&reader, "p").await, marked("why"), "{name} opens what it wraps");
        given = new;
    }
    let kept = std::fs::read(&given).unwrap();
    ring.keys(None).destroy(&key, "p").unwrap();
    assert_eq!(std::fs::read(&given).unwrap(), kept, "nor does a key that is destroyed take it along");
    assert_eq!(std::fs::read_dir(ring.plans()).unwrap().count(), 2 + 4 + 1, "two keys, four of operators, a lock");
}

#[tokio::test]
async fn an_invalid_key_file_is_refused_by_name() {
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
async fn rewrapped_keys_still_decrypt_their_plans() {
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
async fn a_missing_key_is_named_and_a_modified_one_decrypts_nothing() {
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

    // The key of one plan under the name of another plan's key.
    let other = key_of(&of_plan(&store, "q").await[0].tags).unwrap().to_owned();
    std::fs::copy(ring.plans().join(format!("{other}.json")), &file).unwrap();
    assert_eq!(last_reason(&ring.veil(&store, Some("a")), "p").await, SEALED);

    std::fs::write(&file, kept).unwrap();
    assert_eq!(last_reason(&ring.veil(&store, Some("a")), "p").await, marked("why"), "a copy put back opens again");
}

#[tokio::test]
async fn a_destroyed_key_leaves_no_trace_in_its_folder() {
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
