//! The report of a task: a long one is stored in the log once; all of it is shown everywhere.

use serde_json::Value;

use super::scene::Scene;

#[test]
fn a_long_result_is_stored_once_and_shown_whole() {
    let scene = Scene::new();
    let lines = (0..300).map(|n| format!("step {n} of the build, which says nothing that a prompt needs\n"));
    let output = lines.collect::<String>();
    scene.write("output", &output);
    let (plan, ran) = scene.plan("1. Run `cat output`\n2. Run `echo $CREWLOG_PLAN`\n");
    ran.expect(0);
    let shown = scene.show(&plan);
    assert_eq!(shown["tasks"][0]["result"].as_str(), Some(output.trim_end()));
    let kept = scene.events_of_type("TaskStatusUpdated");
    let kept = kept.iter().find(|data| data["task_id"] == 1).and_then(|data| data["result"].as_str());
    assert!(kept.is_some_and(|kept| kept.len() <= 8_000 && kept.contains("step 299")), "{kept:?}");
    scene.run(&["replay", &plan, "--verify"]).expect(0);
    scene.run(&["export", "--to", "log.jsonl"]).expect(0);
    scene.run(&["--store", "copy.db", "import", "log.jsonl"]).expect(0);
    let copied = scene.run(&["--store", "copy.db", "show", &plan, "-o", "json"]).expect(0).json();
    assert_eq!(copied["tasks"], shown["tasks"]);
}

/// The output of a script of Node that cannot open a file: the error is in the middle.
const OUTPUT: &str = "\
node:fs:441
    return binding.readFileUtf8(path, stringToFlags(options.flag));
                   ^

Error: ENOENT: no such file or directory, open 'README.md'
    at Object.readFileSync (node:fs:441:20)
    at Object.<anonymous> (/srv/check.js:3:12)
    at Module._compile (node:internal/modules/cjs/loader:1554:14)
    at Object..js (node:internal/modules/cjs/loader:1706:10)
    at Module.load (node:internal/modules/cjs/loader:1289:32)
    at Function._load (node:internal/modules/cjs/loader:1108:12) {
  errno: -2,
  code: 'ENOENT',
  syscall: 'open',
  path: 'README.md'
}

Node.js v22.14.0
";

#[test]
fn the_line_that_names_the_error_is_shown_wherever_a_task_failed() {
    let scene = Scene::new();
    scene.write("out", OUTPUT);
    let names = "exit code 1: Error: ENOENT: no such file or directory, open 'README.md'";
    for policy in ["stop", "ask"] {
        scene.write("plan.md", "1. Run `cat out; exit 1`\n");
        let run = ["run", "plan.md", "--yes", "--set", &format!("on-failure={policy}")];
        let ran = scene.run(&run);
        let plan = ran.stdout.trim();
        let inbox = scene.run(&["inbox"]).expect(0).stdout;
        let shown = scene.run(&["show", plan]).expect(0).stdout;
        assert!(shown.contains(names), "{shown}");
        if policy == "ask" {
            assert!(inbox.contains(&format!("Task 1 failed: {names}. Retry")), "{inbox}");
            scene.run(&["answer", plan, "continue"]).expect(0);
            continue;
        }
        ran.says(&[
            &format!("  {names}\n"),
            "\n         Error: ENOENT",
            "\n         Node.js v22.14.0\n",
            "         ...\n",
        ]);
        let why = scene.run(&["why", plan]).expect(0).stdout;
        assert!(why.contains(&format!("It failed at task 1: {names}")), "{why}");
    }
}

#[test]
fn lists_and_views_show_states_durations_and_ages_in_words() {
    let scene = Scene::new();
    let (plan, _) = scene.plan("# Ship\n1. Run `sleep 0.2; echo one`\n2. Look at it\n   - depends on: 1\n");
    let (failed, _) = scene.plan("# Sink\n1. Run `echo`\n2. Run `exit 3`\n3. Run `echo`\n");
    let lines = |words: &[&str]| {
        let ran = scene.run(words).expect(0);
        let is_raw = |pair: &[u8]| pair[1] == b'_' || (pair[0].is_ascii_digit() && pair[1] == b'Z');
        assert!(!ran.stdout.as_bytes().windows(2).any(is_raw), "{words:?}: {}", ran.stdout);
        ran.stdout.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>()
    };
    let is_age = |text: &str| text == "just now" || text.ends_with(" s ago");
    let listed = lines(&["ls"]);
    for (line, start, title) in [
        (&listed[0], format!("{plan}  waiting for you    1/2  "), "  Ship"),
        (&listed[1], format!("{failed}  failed             1/3  "), "  Sink"),
    ] {
        let age = line.strip_prefix(&start).and_then(|rest| rest.strip_suffix(title));
        assert!(age.is_some_and(|age| is_age(age.trim())), "{listed:?}");
    }
    let shown = lines(&["show", &plan]);
    let made =
        shown[0].strip_prefix(&format!("{plan}  waiting for you  made ")).and_then(|rest| rest.split_once(", as of "));
    assert!(made.is_some_and(|(age, _)| is_age(age)), "{shown:?}");
    let took = shown[2].strip_prefix("1  done").and_then(|rest| rest.strip_suffix("  sleep 0.2; echo one"));
    assert!(took.is_some_and(|took| took.ends_with(" ms") || took.ends_with(" s")), "{shown:?}");
    let task = lines(&["show", &format!("{plan}/1")]);
    for part in ["1  done", "  attempts: 1", "  result: one", "  started: ", "  ended: ", "  took: "] {
        assert!(task.iter().any(|line| line.starts_with(part)), "{part:?} is not in {task:#?}");
    }
    assert!(lines(&["show", &format!("{plan}/2")]).contains(&"  depends on:".to_owned()));
    let statistics = lines(&["stats"]);
    assert!(statistics[1].starts_with("  tasks: 2 completed, 1 failed (67% succeed), "), "{statistics:?}");
    assert!(statistics[2].starts_with("  a completed task takes "), "{statistics:?}");
}

#[test]
fn views_have_the_times_of_the_reader_and_records_those_of_the_log() {
    let scene = Scene::new();
    let (plan, _) = scene.plan("1. Run `true`\n");
    scene.run(&["plan", "checkpoint", &plan, "here"]).expect(0);
    let last = scene.events().pop().expect("an event");
    let named_at = last["created_at"].as_str().expect("text").parse::<jiff::Timestamp>().expect("a time");
    for (zone, hours) in [("UTC0", 0), ("JST-9", 9), ("EST5", -5)] {
        let run = |words: &[&str]| {
            super::scene::Running::start(scene.crewlog(words).env("TZ", zone)).finish().expect(0).stdout
        };
        let clock = |hours| (named_at + jiff::SignedDuration::from_hours(hours)).to_string()[..19].to_owned();
        let listed = run(&["plan", "checkpoint", &plan]);
        assert!(listed.ends_with(&format!("  {}  here\n", clock(hours).replace('T', " "))), "{zone}: {listed}");
        for words in [&["events"] as &[&str], &["replay", &plan]] {
            let shown = run(words);
            assert!(shown.contains(&format!("  {}Z  ", clock(0))), "{zone}: {shown}");
        }
    }
}

#[test]
fn a_position_inside_an_append_is_shown_as_the_one_before_it() {
    let scene = Scene::new();
    let (plan, _) = scene.plan("1. Run `true`\n2. Run `true`\n");
    let events = scene.run(&["export"]).expect(0).stdout;
    let events = events.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let ends = events.map(|event| (event["position"].as_i64(), event["append_start"].as_i64())).collect::<Vec<_>>();
    let mut n_inside = 0;
    // The first append has the consent, and the second makes the plan.
    for pair in ends[1..].windows(2) {
        let ((Some(at), Some(start)), (_, Some(next))) = (pair[0], pair[1]) else { panic!("{ends:?}") };
        let shown = scene.run(&["show", &plan, "--at", &at.to_string()]);
        if start == next && start > 2 {
            let says = format!("position {}, the last whole append at or before {at}\n", start - 1);
            assert!(shown.stdout.contains(&says), "{}", shown.stdout);
            let diff = scene.run(&["diff", &format!("{plan}@{at}"), &plan]).expect(0).stdout;
            assert!(diff.lines().nth(1).is_some_and(|line| format!("{line}\n") == format!("as of {says}")), "{diff}");
            n_inside += 1;
        } else if start != next {
            assert!(shown.stdout.contains(&format!("as of position {at}\n")), "{}", shown.stdout);
        }
    }
    assert!(n_inside > 0, "{ends:?}");
}
