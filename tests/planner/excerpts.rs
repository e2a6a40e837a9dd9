//! Excerpts of long texts: which lines of errors and results are kept.

use crewlog_planner::event::ExcerptProfile;
use crewlog_planner::prompt::{Content, error_lines, excerpt, headline};
use proptest::prelude::*;

const RUST: &str = "\
   Compiling shop v0.1.0
warning: unused variable: `n`
error[E0308]: mismatched types
  --> src/cart.rs:41:9
   |
40 |     fn total(&self) -> u64 {
   |                        --- expected `u64` because of return type
41 |         self.sum
   |         ^^^^^^^^ expected `u64`, found `f64`
error: could not compile `shop` (lib) due to 1 previous error
";

const PYTHON: &str = "\
Traceback (most recent call last):
  File \"/srv/app/main.py\", line 12, in <module>
    run()
  File \"/srv/app/main.py\", line 8, in run
    load(path)
  File \"/usr/lib/python3.11/json/__init__.py\", line 346, in loads
    return _default_decoder.decode(s)
  File \"/usr/lib/python3.11/json/decoder.py\", line 337, in decode
    obj, end = self.raw_decode(s, idx=_w(s, 0).end())
json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)
";

const JAVASCRIPT: &str = "\
TypeError: Cannot read properties of undefined (reading 'id')
    at userOf (/srv/app/src/user.ts:31:18)
    at Layer.handle [as handle_request] (/srv/app/node_modules/express/lib/router/layer.js:95:5)
    at next (/srv/app/node_modules/express/lib/router/route.js:149:13)
    at Route.dispatch (/srv/app/node_modules/express/lib/router/route.js:119:3)
";

#[track_caller]
fn check(text: &str, chars_max: usize, content: Content, expected: &str) {
    let shown = excerpt(text, chars_max, content);
    assert_eq!(shown, expected.trim_start(), "{shown}");
    assert!(shown.chars().count() <= chars_max);
}

#[test]
fn an_excerpt_of_an_error_keeps_type_path_and_line() {
    check(
        RUST,
        200,
        Content::Error,
        "
error[E0308]: mismatched types
--> src/cart.rs:41:9
|                        --- expected `u64` because of return type
error: could not compile `shop` (lib) due to 1 previous error
... 6 more lines",
    );
    check(
        PYTHON,
        190,
        Content::Error,
        "
Traceback (most recent call last):
File \"/srv/app/main.py\", line 12, in <module>
run()
load(path)
json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)
... 5 more lines",
    );
    check(
        JAVASCRIPT,
        150,
        Content::Error,
        "
TypeError: Cannot read properties of undefined (reading 'id')
at userOf (/srv/app/src/user.ts:31:18)
... 3 more lines",
    );
}

#[test]
fn a_short_error_is_kept_unchanged() {
    check(RUST, RUST.len(), Content::Error, RUST);
}

#[test]
fn repeated_lines_appear_once_with_a_count() {
    let text = (1..=400).map(|n| format!("retry {n}: connection refused\n")).collect::<String>() + "Error: gave up\n";
    check(&text, 80, Content::Error, "retry 1: connection refused (400 times)\nError: gave up");
    let two_places = "Error at a.rs:1: no\nError at a.rs:2: no\n".repeat(3);
    check(&two_places, 80, Content::Error, "Error at a.rs:1: no (3 times)\nError at a.rs:2: no (3 times)");
}

const WORK: &str = "\
I looked around first and thought about what would be best for everybody.
The conversation took a while and I went back and forth between ideas.
I changed src/cart.rs and added a test in tests/cart.rs.
```rust
pub fn total(&self) -> u64 {
    let sum = self.items.iter().map(Item::price).sum();
    sum
}
```
Sales fell by 12 % in May because the form was broken.
According to https://example.org/report the same happened elsewhere.
That is all that I wanted to say about it, and I hope that it helps.
";

#[test]
fn the_profile_decides_which_lines_of_a_result_are_kept() {
    check(
        WORK,
        170,
        Content::Result(ExcerptProfile::Coding),
        "
I changed src/cart.rs and added a test in tests/cart.rs.
pub fn total(&self) -> u64 {
Sales fell by 12 % in May because the form was broken.
... 9 more lines",
    );
    check(
        WORK,
        170,
        Content::Result(ExcerptProfile::Analysis),
        "
Sales fell by 12 % in May because the form was broken.
According to https://example.org/report the same happened elsewhere.
... 10 more lines",
    );
}

#[test]
fn the_headline_of_an_error_names_its_cause() {
    let after_code = |output: &str| headline(&format!("exit code 1\n{output}"));
    for (output, expected) in [
        (RUST, "exit code 1: error[E0308]: mismatched types"),
        (PYTHON, "exit code 1: json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)"),
        (JAVASCRIPT, "exit code 1: TypeError: Cannot read properties of undefined (reading 'id')"),
        ("", "exit code 1"),
        (
            "building\nls: cannot access 'a': No such file or directory\n",
            "exit code 1: ls: cannot access 'a': No such file or directory",
        ),
        ("(node:1) Warning: an exception was ignored\nCoverage is too low\n\n", "exit code 1: Coverage is too low"),
    ] {
        assert_eq!(after_code(output), expected);
    }
    for (error, expected) in [("", ""), ("the agent gave no reason\nError: x", "the agent gave no reason")] {
        assert_eq!(headline(error), expected);
    }
    assert!(headline(&"ß".repeat(10_000)).chars().count() <= 240);
}

#[test]
fn the_lines_of_an_error_are_its_first_its_cause_and_its_last() {
    let lines = |n: usize| (1..=n).map(|n| format!("line {n}")).collect::<Vec<_>>();
    let with = |n: usize, at: usize| {
        let mut lines = lines(n);
        lines[at - 1] = "Error: it broke".to_owned();
        lines.join("\n")
    };
    for (error, expected) in [
        (String::new(), ""),
        (lines(1).join("\n"), "line 1"),
        (with(8, 4), "line 1|line 2|line 3|Error: it broke|line 5|line 6|line 7|line 8"),
        (with(30, 4), "line 1|...|Error: it broke|line 5|line 6|...|line 29|line 30"),
        (with(30, 2), "line 1|Error: it broke|line 3|line 4|...|line 29|line 30"),
        (with(30, 28), "line 1|...|Error: it broke|line 29|line 30"),
        (lines(30).join("\n"), "line 1|...|line 26|line 27|line 28|line 29|line 30"),
        (format!("{}\n\n", with(9, 9)), "line 1|...|line 6|line 7|line 8|Error: it broke"),
    ] {
        assert_eq!(error_lines(&error, 8).join("|"), expected);
    }
    assert!(error_lines(&"x".repeat(1 << 20), 8)[0].len() <= 400);
}

proptest! {
    #[test]
    fn the_lines_of_an_error_keep_their_limit(
        lines in prop::collection::vec("(Error: )?[ -~éß中]{0,30}", 0..40),
        lines_max in 6_usize..20,
    ) {
        let text = lines.join("\n");
        let shown = error_lines(&text, lines_max);
        prop_assert!(shown.len() <= lines_max, "{:?}", shown);
        prop_assert!(shown.iter().all(|line| line == "..." || text.contains(line.as_str())));
    }

    #[test]
    fn no_excerpt_exceeds_its_limit_or_panics(
        lines in prop::collection::vec("(at |File \"a.py\", line 3|[0-9]{1,3}: a::b|[A-Z][a-z]+Error: )?[ -~éß中]{0,60}", 0..40),
        chars_max in 0_usize..400,
    ) {
        let text = lines.join("\n");
        for content in [Content::Error, Content::Result(ExcerptProfile::Coding), Content::Result(ExcerptProfile::Analysis)] {
            let shown = excerpt(&text, chars_max, content);
            prop_assert!(shown.chars().count() <= chars_max, "{}", shown);
            prop_assert_eq!(&shown, &excerpt(&text, chars_max, content));
        }
    }

    #[test]
    fn type_path_and_line_of_an_error_are_kept_wherever_they_occur(
        before in 0_usize..200,
        after in 0_usize..200,
        line in 1_u32..10_000,
    ) {
        let noise = |n: usize| "some words that nobody needs to read again\n".repeat(n.min(1)) + &"more of it, and more\n".repeat(n);
        let text = format!("{}ValueError: bad price\n  at sum (src/cart.ts:{line}:7)\n{}", noise(before), noise(after));
        let shown = excerpt(&text, 200, Content::Error);
        let place = format!("src/cart.ts:{line}");
        prop_assert!(shown.contains("ValueError: bad price") && shown.contains(&place), "{}", shown);
    }
}
