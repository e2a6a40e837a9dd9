//! Which code is the command of a task, and which is only said to look like one.

use super::plan;

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
