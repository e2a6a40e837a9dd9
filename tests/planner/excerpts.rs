//! Excerpts of long texts: which lines of errors and results are kept.

use crewlog_planner::event::Profile;
use crewlog_planner::prompt::{Content, excerpt};
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
        Content::Result(Profile::Coding),
        "
I changed src/cart.rs and added a test in tests/cart.rs.
pub fn total(&self) -> u64 {
Sales fell by 12 % in May because the form was broken.
... 9 more lines",
    );
    check(
        WORK,
        170,
        Content::Result(Profile::Analysis),
        "
Sales fell by 12 % in May because the form was broken.
According to https://example.org/report the same happened elsewhere.
... 10 more lines",
    );
}

proptest! {
    #[test]
    fn no_excerpt_exceeds_its_limit_or_panics(
        lines in prop::collection::vec("(at |File \"a.py\", line 3|[0-9]{1,3}: a::b|[A-Z][a-z]+Error: )?[ -~éß中]{0,60}", 0..40),
        chars_max in 0_usize..400,
    ) {
        let text = lines.join("\n");
        for content in [Content::Error, Content::Result(Profile::Coding), Content::Result(Profile::Analysis)] {
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
