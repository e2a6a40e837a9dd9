//! Which code is the command of a task, and which is only said to look like one.

use super::plan;
use crate::parse::{ParseOptions, parse};
use crate::plan::Mark;

/// The commands of a text, and the code that is said not to be one.
fn found(text: &str) -> (Vec<String>, Vec<String>) {
    let plan = plan(text);
    let commands = plan.tasks.into_iter().filter_map(|task| task.command).collect();
    let missed = plan.warnings.into_iter().filter(|one| one.message.ends_with("is not taken as a command"));
    (commands, missed.map(|one| one.help.unwrap_or_default()).collect())
}

#[test]
fn code_that_reads_like_a_command_is_one() {
    let cases = [
        ("Build everything with `scripts/build.sh 6`", "scripts/build.sh 6"),
        ("Fetch with `scripts/flaky.sh`", "scripts/flaky.sh"),
        ("First `echo a`", "echo a"),
        ("Greet `echo a`", "echo a"),
        ("Clean `rm -rf build`", "rm -rf build"),
        ("Count lines `wc -l x`", "wc -l x"),
        ("Wait `sleep 5`", "sleep 5"),
        ("Please `make all`", "make all"),
        ("Run `pwd; env | grep X`", "pwd; env | grep X"),
        ("Do this with `FOO=1 mytool --flag`", "FOO=1 mytool --flag"),
        ("Run `for i in 1 2; do echo $i; done`", "for i in 1 2; do echo $i; done"),
        ("Run `[ -f x ]`", "[ -f x ]"),
        ("Run `(cd a && make)`", "(cd a && make)"),
        ("Deploy with `deploy.sh prod`", "deploy.sh prod"),
        ("Run `mytool`", "mytool"),
        ("Execute `mytool` again", "mytool"),
        ("Call `mytool sync`", "mytool sync"),
        ("Do `make all`", "make all"),
        ("Launch `./app`", "./app"),
        ("Build with `make`", "make"),
        ("Make sure `cargo test` passes", "cargo test"),
        ("Look at `Cargo.toml` and run `cargo update`", "cargo update"),
        ("Instead of waiting, run `make all`", "make all"),
    ];
    for (text, command) in cases {
        let expected = (vec![command.to_owned()], Vec::new());
        assert_eq!(found(text), expected, "of {text:?}");
        assert_eq!(found(&format!("- {text}\n- Add tests")), expected, "of {text:?} in a list");
    }
}

#[test]
fn code_that_is_written_about_is_no_command() {
    let cases = [
        "Fix the `timeout` handling",
        "Add a `sleep` command",
        "Run `SessionStore` tests",
        "Run `SessionStore`",
        "Run `store::load`",
        "Run the `integration` tests",
        "Run `integration` tests",
        "Call `GET /users`",
        "Call `getUser()`",
        "Call `parse`",
        "Start `server`",
        "Make `parse` return an error",
        "Check `--flag`",
        "Check `x > 5`",
        "Read `src/main.rs`",
        "Run `src/main.rs`",
        "Review `scripts/build.sh`",
        "Rename `scripts/a.sh` to `scripts/b.sh`",
        "Test `Option<T>`",
        "Test `find` and `sort`",
        "Sort by `date`",
        "Count `test cases`",
        "Set `max_width = 120`",
        "Add a. Don't run `rm -rf x`",
        "Add a. Never run `make all`",
        "Build it without `make all`",
        "Build it. Should we run `make all`?",
    ];
    for text in cases {
        assert_eq!(found(text), (Vec::new(), Vec::new()), "of {text:?}");
    }
}

#[test]
fn code_that_looks_like_a_command_and_is_none_is_said() {
    let cases = [
        ("Document `make all` in the README", "make all"),
        ("Make `cargo test` green again", "cargo test"),
        ("Explain `git rebase -i`", "git rebase -i"),
        ("Find out why `make all` fails", "make all"),
        ("Replace `npm ci` with a script", "npm ci"),
    ];
    for (text, code) in cases {
        assert_eq!(found(text), (Vec::new(), vec![format!("write: Run `{code}`")]), "of {text:?}");
    }
}

#[test]
fn a_command_that_a_text_only_speaks_of_is_not_run_and_said() {
    let cases = [
        "It is dangerous to run `make all`",
        "Bob already ran `make all`",
        "Document how to run `make all`",
        "Fix the bug where users run `make all` twice",
        "Ask Bob whether to run `make all`",
        "Wait for approval before running `make all`",
        "Explain why nobody should run `make all`",
        "Check who can run `make all`",
        "Stop the cron job running `make all`",
        "Refuse to run `make all`",
        "Refuse to build it and run `make all`",
        "Prevent CI from running `make all`",
        "Teach users to run `make all`",
        "Add a hook to run `make all`",
        "Configure CI to run `make all`",
        "Fix what was caused by running `make all`",
        "Explain what Bob gains by running `make all`",
        "Explain how to read `a.md` and run `make all`",
        "It crashes with `make all`",
        "Ask Bob before `make all`",
        "\u{89e3}\u{91ca}\u{5982}\u{4f55}\u{8fd0}\u{884c} `make all`",
    ];
    for text in cases {
        assert_eq!(found(text), (Vec::new(), vec!["write: Run `make all`".to_owned()]), "of {text:?}");
    }
    assert_eq!(plan("Ask Bob whether to run `make all`").tasks[0].kind.as_str(), "Clarification");
    assert_eq!(found("Document how to run `./deploy.sh`").1, ["write: Run `./deploy.sh`"]);
}

#[test]
fn words_around_an_instruction_leave_it_one() {
    let cases = [
        "Ask Bob and run `make all`",
        "Stop the server and run `make all`",
        "Explain why it fails, then run `make all`",
        "Update the lock file by running `make all`",
        "Start by running `make all`",
        "Make sure to run `make all`",
        "In the folder of the server run `make all`",
        "From the root, run `make all`",
        "To check it run `make all`",
        "You should run `make all`",
        "Always run `make all`",
        "Use the shell to run `make all`",
        "\u{8fd0}\u{884c} `make all`",
    ];
    for text in cases {
        assert_eq!(found(text), (vec!["make all".to_owned()], Vec::new()), "of {text:?}");
    }
}

#[test]
fn a_command_beside_the_one_that_is_taken_is_said() {
    for (text, command, missed) in
        [("Execute `ls -l` | `grep x`", "ls -l", "grep x"), ("Run `make` or `ninja`", "make", "ninja")]
    {
        assert_eq!(found(text), (vec![command.to_owned()], vec![format!("write: Run `{missed}`")]), "of {text:?}");
    }
}

#[test]
fn a_program_behind_a_verb_is_said_and_a_column_of_commands_is_run() {
    assert_eq!(found("Build `make`"), (vec!["make".to_owned()], Vec::new()));
    for (text, code) in [("Build `docker`", "docker"), ("Foo `true`", "true")] {
        assert_eq!(found(text), (Vec::new(), vec![format!("write: Run `{code}`")]), "of {text:?}");
    }
    let table = "| Task | Command |\n|---|---|\n| Build it | `make all` |\n| Ship it | by hand |";
    assert_eq!(found(table), (vec!["make all".to_owned()], Vec::new()));
    assert_eq!(found("Fix `make`"), (Vec::new(), Vec::new()));
}

#[test]
fn code_that_is_refused_or_done_is_not_run_whichever_side_the_words_are_on() {
    let commands = |text: &str| plan(text).tasks.into_iter().filter_map(|task| task.command).collect::<Vec<_>>();
    for item in [
        "`git push` must not be used",
        "`rm -rf x` should never be run",
        "`make deploy` must wait until Monday",
        "No `git rebase`, please",
        "Kein `git rebase`",
        "Hold off on `helm upgrade`",
        "Do everything except `make clean`",
        "Skip this one: run `make b`",
        "DEPRECATED: run `make d`",
        "N/A: run `make l`",
        "Ne pas lancer `rm -rf x`",
        "Il ne faut jamais ex\u{e9}cuter `git push`",
        "No ejecutar `rm -rf x`",
        "Nunca uses `git push`",
        "N'ex\u{e9}cute jamais `git push`",
    ] {
        assert_eq!(commands(&format!("1. Fix the bug\n2. {item}\n3. Run `make`")), ["make"], "{item}");
    }
    for item in
        ["Run `make a` again", "`make a` should pass", "Run `make a`, not later", "Run `make a` until it is done"]
    {
        assert_eq!(commands(&format!("1. {item}")), ["make a"], "{item}");
    }
}

#[test]
fn code_that_belongs_elsewhere_is_not_run() {
    let commands = |text: &str| plan(text).tasks.into_iter().filter_map(|task| task.command).collect::<Vec<_>>();
    let code = "```sh\nmake wipe\n```";
    let leads = [
        "Never run this:",
        "1. Do not do",
        "Bad:",
        "Create `scripts/clean.sh`:",
        "4. Create `deploy.sh` with this content:",
        "Append to `~/.bashrc`:",
        "In package.json, set the script to:",
        "The README should say:",
        "To reproduce:",
        "Replace",
    ];
    for lead in leads {
        let indent = if lead.starts_with(|c: char| c.is_ascii_digit()) { "   " } else { "" };
        let code = code.replace('\n', &format!("\n{indent}"));
        let text = format!("Fix the bug.\n\n{lead}\n{indent}{code}\n\nAdd a test.");
        assert_eq!(commands(&text), [""; 0], "{text}");
    }
    for text in [
        format!("> @eve wrote:\n> {}\n\nExplain why this is dangerous.", code.replace('\n', "\n> ")),
        "> 1. Run `rm a`\n> 2. Run `rm b`\n\nDo the opposite of this.".into(),
        "## Steps to reproduce\n1. Run `rm config.toml`\n2. Run `app`\n\n## Expected behavior\nNo crash".into(),
        format!("### System Info\n\n{code}\n\n## Tasks\n- Fix it"),
        "1. Build it\n2. Run:\n\n```sh\nrm -rf build\n3. Deploy".into(),
        "- Test: `tests/test_parser.py`\n- Verify `scripts/deploy.sh`\n- Check `./install.sh`".into(),
        "# Migrate\n\n## Deploy\n1. Build it\n\n## Rollback\n1. Run `make rollback`".into(),
    ] {
        assert_eq!(commands(&text), [""; 0], "{text}");
    }
    assert_eq!(commands("> 1. Run `make a`\n> 2. Run `make b`\n"), ["make a", "make b"], "nothing but a quotation");
}

#[test]
fn code_right_behind_the_last_item_is_the_item_s() {
    let edges = |text: &str| {
        let tasks = plan(text).tasks.into_iter();
        tasks.map(|task| (task.command.unwrap_or_default(), task.depends_on.len())).collect::<Vec<_>>()
    };
    let expected = [("make test".to_owned(), 0), ("git push".to_owned(), 1)];
    for second in ["2. Push:", "2. Push it with"] {
        assert_eq!(edges(&format!("1. Run `make test`\n{second}\n\n```bash\ngit push\n```")), expected, "{second}");
    }
    let boxed = "- [ ] **Step 1: Test**\n\n```bash\nmake test\n```\n\n- [ ] **Step 2: Push**\n\n```bash\ngit push\n```";
    assert_eq!(edges(boxed), expected);
}

#[test]
fn a_file_that_is_built_or_formatted_is_not_run() {
    for text in [
        "- Format `src/main.py`",
        "- Lint `tools/wipe.sh`",
        "- Compile `src/main.py`",
        "- Build `deploy/prod.sh`",
        "Format `scripts/drop_db.py`.",
    ] {
        assert_eq!(plan(text).tasks[0].command, None, "of {text:?}");
    }
    assert_eq!(plan("- Build `make`").tasks[0].command.as_deref(), Some("make"));
}

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

#[test]
fn what_is_no_order_to_the_crew_is_run_by_nobody() {
    check_run(
        &[
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
        ],
        &[],
    );
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

#[test]
fn a_step_is_done_by_its_last_word_only_where_a_sign_parts_it() {
    let marks = |text: &str| plan(text).tasks.iter().map(|task| format!("{:?}", task.mark)).collect::<Vec<_>>();
    for text in [
        "- Change the label of the button: Done",
        "- Add the option --done",
        "- Handle the third case: cancelled",
        "- Print the message: done",
        "- Rename the well-done",
        "- [ ] Fix it - DONE",
    ] {
        assert_eq!(marks(text), ["Open"], "{text}");
    }
    let text = "- Set the flag to: done. Then run `make`.";
    assert_eq!(marks(text).first().map(String::as_str), Some("Open"), "{text}");
    for text in
        ["- Fix it - done", "- Fix it -- done", "- `make all`: done", "- Fix it (state: done)", "- Fix it [done]"]
    {
        assert_eq!(marks(text), ["Done"], "{text}");
    }
}
