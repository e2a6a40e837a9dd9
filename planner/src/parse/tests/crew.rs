//! Whose order a sentence with code is: what is asked of the crew is run, and nothing else.

use super::plan;
use crate::parse::{ParseOptions, parse};
use crate::plan::Mark;

/// The commands of a text by itself, as an item and behind another sentence.
#[track_caller]
fn check_run(texts: &[&str], expected: &[&str]) {
    let runs = |text: &str| {
        let tasks = parse(text, ParseOptions::default()).map(|plan| plan.tasks).unwrap_or_default();
        let open = tasks.into_iter().filter(|task| task.mark == Mark::Open);
        open.filter_map(|task| task.command).collect::<Vec<_>>()
    };
    for text in texts {
        for whole in [(*text).to_owned(), format!("1. Fix it\n2. {text}\n3. Ship it"), format!("Fix it. {text}")] {
            assert_eq!(runs(&whole), expected, "of {whole:?}");
        }
    }
}

#[test]
fn what_one_person_did_or_will_do_is_run_by_nobody_else() {
    check_run(
        &[
            "I will run `make all` myself",
            "I'll do `make all`",
            "I'm going to run `make all` later",
            "I can run `make all` if you want",
            "I've run `make all`",
            "We already ran `make all`",
            "We've executed `make all`",
            "Bob runs `make all`",
            "Bob did `make all`",
            "The customer executed `make all` and lost data",
            "My script runs `make all` every hour",
            "Previously we used `make all`",
            "Executed `make all`",
            "Tried `make all`",
            "Nous avons lanc\u{e9} `make all`",
            "Je lancerai `make all`",
            "Ich starte `make all` nachher",
            "Hemos ejecutado `make all`",
            "Ya ejecut\u{e9} `make all`",
            "J\u{e1} executei `make all`",
            "Ho gi\u{e0} eseguito `make all`",
            "\u{42f} \u{443}\u{436}\u{435} \u{437}\u{430}\u{43f}\u{443}\u{441}\u{442}\u{438}\u{43b} `make all`",
            "\u{6211}\u{4f1a}\u{81ea}\u{5df1}\u{8fd0}\u{884c} `make all`",
        ],
        &[],
    );
}

#[test]
fn what_is_said_to_be_done_or_not_wanted_is_not_run() {
    check_run(
        &[
            "Run `make all` - DONE",
            "Run `make all` (done)",
            "Run `make all` -- finished yesterday",
            "Run `make all`: done by Bob",
            "Run `make all` \u{2705}",
            "Run `make all` (already done)",
            "Run `make all` (n/a)",
            "Run `make all` (not needed)",
            "Run `make all` (don't do this yet)",
            "Run `make all` \u{2014} not now",
            "`make all` - done",
            "Finished: run `make all`",
            "Formerly: run `make all`",
            "Postponed: run `make all`",
            "\"Run `make all`\" is what he said",
            "The README says: run `make all`",
        ],
        &[],
    );
    let marks = |text: &str| plan(text).tasks.iter().map(|task| format!("{:?}", task.mark)).collect::<Vec<_>>();
    assert_eq!(marks("- Fix it - DONE\n- Push it (skipped)\n- Ship it: n/a"), ["Done", "Cancelled", "Open"]);
    assert_eq!(marks("- [~] Fix it - DONE\n- Push it when all is done"), ["InProgress", "Open"], "the box counts");
}

#[test]
fn what_is_forbidden_in_other_words_or_languages_is_not_run() {
    check_run(
        &[
            "Under no circumstances run `make all`",
            "On no account run `make all`",
            "Non lanciare mai `make all`",
            "Ne lancez pas `make all`",
            "Nie uruchamiaj `make all`",
            "Voer `make all` niet uit",
            "\u{c8} vietato eseguire `make all`",
            "\u{417}\u{430}\u{43f}\u{440}\u{435}\u{449}\u{435}\u{43d}\u{43e} \u{437}\u{430}\u{43f}\u{443}\u{441}\u{43a}\u{430}\u{442}\u{44c} `make all`",
            "\u{522b}\u{8fd0}\u{884c} `make all`",
            "\u{4e25}\u{7981}\u{8fd0}\u{884c} `make all`",
            "`make all`\u{3092}\u{5b9f}\u{884c}\u{3057}\u{306a}\u{3044}\u{3067}",
        ],
        &[],
    );
}

/// What stands behind an "and" in a sentence that forbids, explains, reports or speaks of somebody is no order either, and
/// neither are lines below one that does.
#[test]
fn what_is_joined_to_what_nobody_is_asked_for_is_not_run() {
    check_run(
        &[
            "Don't build it and when it is done run `make all`.",
            "Never build it and, if it fails, run `make all`.",
            "1. Never build it and, if it fails, run `make all`.",
            "No need to merge and once that's in run `make all`.",
            "Explain how to build it and when that passes run `make all`.",
            "Write a script that starts the server and once it is up run `make all`.",
            "Ask Bob to build it and once that's in run `make all`.",
            "Bob builds it and once that is done run `make all`.",
            "Check that users cannot log in and, if they fail, run `make all`",
            "Never do this:\nrun `make all`\nrun `make all`",
            "i already did this:\nrun `make all`\nrun `make all`",
            "please don't:\nrun `make all`\nrun `make all`",
        ],
        &[],
    );
}

#[test]
fn what_changes_the_shell_stays_with_what_runs_in_it() {
    let plan = parse("Run `cd sub` and then `make`.", ParseOptions::default()).expect("it is a plan");
    assert_eq!(plan.tasks[0].command.as_deref(), Some("cd sub && make"));
}

#[test]
fn an_order_to_the_crew_is_one_whatever_stands_beside_it() {
    check_run(
        &[
            "We need to run `make all`",
            "Please run `make all`",
            "Let's run `make all`",
            "You have to run `make all`",
            "You'll need to run `make all`",
            "I need you to run `make all`",
            "Don't forget to run `make all`",
            "Do not hesitate to run `make all`",
            "Never mind the warnings, run `make all`",
            "Run `make all` (complete rebuild)",
            "Run `make all` (not as root)",
            "Run `make all` (should be done in a minute)",
            "Run `make all`, it has not been run",
            "Run `make all` when you are done",
            "Run `make all` so that I can do the rest",
            "Feed the index with `make all`",
            "Check that `make all` works",
            "F\u{fc}hre `make all` aus",
            "Wir m\u{fc}ssen `make all` ausf\u{fc}hren",
            "`make all` \u{3092}\u{5b9f}\u{884c}",
        ],
        &["make all"],
    );
}

/// Words around code by which the crew is asked for nothing.
const NO_ORDERS: &[&str] = &[
    "Bob will run `make all`",
    "Karl führt `make all` aus",
    "Karl startet `make all`",
    "My colleague runs `make all`",
    "My colleague is going to run `make all`",
    "The customer should run `make all`",
    "The README says to run `make all`",
    "The README says: `make all`",
    "Sarah is on `make all`",
    "Pedro se encarga de `make all`",
    "运维同事运行 `make all`",
    "运维同事会运行 `make all`",
    "田中さんが `make all` を実行",
    "田中さんが`make all`を実行します",
    "Run `make all` - Paul already did that",
    "Run `make all` (I did this one already)",
    "Run `make all` (Tom will do this)",
    "Run `make all` (hat Eva schon)",
    "Run `make all` — Bob has done this",
    "Run `make all`, but not yet",
    "Run `make all` - on hold",
    "Run `make all` (superseded)",
    "Run `make all` - rejected",
    "Run `make all` ← skip this",
    "Run `make all` (was done last week)",
    "`make all` got done yesterday",
    "Run `make all` got done yesterday",
    "テストが通ったら `make all` を実行",
    "Should the deploy break, `make all`",
    "run `make all`, but only after I say so",
    "Nur bei Bedarf `make all`",
    "In the event of failure, run `make all`",
    "In the event of failure: run `make all`",
    "Assuming QA signs off, run `make all`",
    "Only with Bob's approval: run `make all`",
    "Run `make all` only on request",
    "Run `make all` if needed",
    "Sollte der Test scheitern, führe `make all` aus",
    "En cas d'échec, lance `make all`",
    "En cas d'échec : `make all`",
    "En caso de error, ejecuta `make all`",
    "При ошибке запусти `make all`",
    "При ошибке: `make all`",
    "失敗した場合は `make all` を実行",
    "失败时运行 `make all`",
    "失败时：`make all`",
    "必要に応じて `make all` を実行",
    "Stop using `make all`",
    "Forget `make all`",
    "Kill `make all`",
    "Cancel `make all`",
    "Postpone `make all`",
    "Quit using `make all`",
    "Cease using `make all`",
    "~Run `make all`~",
    "Finger weg von `make all`",
    "`make all` auszuführen ist nicht nötig",
    "Évitez `make all`",
    "Évitez de lancer `make all`",
    "Evita `make all`",
    "Evita ejecutar `make all`",
    "无需运行 `make all`",
    "See `make all` for details",
    "Skipped: run `make all`",
    "Won't: run `make all`",
    "I will build it, then run `make all`.",
    "I'll build it and, if it's green, run `make all`",
    "Warning: `make all` deletes data",
    "Old way: `make all`",
    "Example: `make all`",
    "Bob: `make all` is mine",
    "Anna deploys with `make all`",
    "The tests are run by Bob with `make all`",
    "Bob and Ann run `make all`",
    "Run `make all` (Eva)  was here",
    "If needed, run `make all`",
    "Run `make all` (if needed)",
    "Maria is running `make all`",
    "Ops will do `make all` tonight",
    "Stop using `make all`; we have no need for it",
    "Run `make all` (Bob's doing this)",
    "Run `make all` (on hold)",
    "Run `make all` [skipped]",
    "`make all` is run by the CI",
    "`make all` was run by Bob",
    "`make all` runs every night",
    "Run `make all` - Bob is on it",
    "Run `make all` — waiting for Ann",
    "Run `make all` (Bob)  - done",
    "Run `make all` <- done by Ann",
    "Run `make all` // done",
    "Run `make all` (Ann: done)",
    "Run `make all` => done",
    "Run `make all`? No.",
    "Per Bob: `make all` broke prod",
    "Bob says `make all`",
];

#[test]
fn what_is_no_order_to_the_crew_is_run_by_nobody() {
    check_run(NO_ORDERS, &[]);
}

#[test]
fn an_order_or_the_name_of_what_code_does_is_run() {
    check_run(
        &[
            "Run `make all`",
            "`make all`",
            "Build it with `make all`",
            "Lint: `make all`",
            "Datenbank sichern mit `make all`",
            "Check y with `make all`",
            "Führe `make all` aus",
            "Ejecuta `make all`",
            "运行 `make all`",
            "然后运行 `make all`",
            "`make all` を実行する",
            "then we run `make all`",
            "someone should run `make all`",
            "Nightly backup via `make all`",
            "Sichere die Datenbank mit `make all`",
            "Bitte `make all` ausführen",
            "Run `make all` to build it",
            "Run `make all` (takes 5 minutes)",
            "Run `make all` — builds everything",
            "Run `make all` and fix what fails",
            "Tests: `make all`",
            "Run `make all` as root",
            "Lance `make all`",
            "Запусти `make all`",
            "サーバーで `make all` を実行してください",
            "Deploy to staging using `make all`",
            "Run `make all` (retry 3)",
            "We will run `make all`",
            "Run `make all` -- it builds all",
            "Stop the server with `make all`",
            "Kill it by running `make all`",
            "备份数据库：`make all`",
            "Server neustarten: `make all`",
            "Run `make all`, then check it",
            "Run `make all` three times",
            "Run `make all` against staging",
            "Run the tests: `make all`",
            "Run the migration `make all`",
            "Run tests (`make all`)",
            "Install dependencies (`make all`)",
            "**Build**: `make all`",
            "Step 2: `make all`",
            "Release v1.2: `make all`",
            "To build, run `make all`",
            "Use `make all` to build",
            "Before merging, run `make all`",
            "Run `make all`.",
            "Run `make all` in the background",
            "Run `make all` for each service",
            "Run `make all` until it passes",
            "Run `make all` (timeout 10m)",
        ],
        &["make all"],
    );
}
