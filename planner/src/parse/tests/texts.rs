//! Whole texts as people write them, and the plans they mean: long ones in `texts.txt`, short ones in `cases.txt`.

use super::show;
use crate::parse::{ParseOptions, parse};

/// A case begins with `=== name`; its text ends at `>>>`, and one line per task follows.
#[test]
fn texts_mean_what_people_mean() {
    let mut n_cases = 0;
    let mut differences = String::new();
    let texts = [include_str!("texts.txt"), include_str!("cases.txt")];
    for case in texts.iter().flat_map(|texts| texts.split("=== ").skip(1)) {
        let (name, rest) = case.split_once('\n').expect("a case begins with its name");
        let (text, expected) = rest.split_once(">>>\n").expect("the plan follows the text");
        let expected: Vec<&str> = expected.lines().collect();
        let got: Vec<String> = match parse(text, ParseOptions::default()) {
            Ok(plan) => plan.tasks.iter().map(show).collect(),
            Err(error) => vec![error.to_string()],
        };
        if got != expected {
            let wanted: String = expected.iter().map(|line| format!("  - {line}\n")).collect();
            let found: String = got.iter().map(|line| format!("  + {line}\n")).collect();
            differences += &format!("{name}\n{wanted}{found}");
        }
        n_cases += 1;
    }
    assert!(n_cases > 160, "only {n_cases} cases were read");
    assert!(differences.is_empty(), "\n{differences}");
}
