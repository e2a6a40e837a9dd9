//! The exit codes are those that are documented.

use std::collections::BTreeSet;

use strum::VariantArray;

use super::Code;

/// Ended by clap, and by a panic.
const OTHERS: [u8; 2] = [2, 101];

#[test]
fn the_documented_exit_codes_are_those_of_the_program() {
    let page = include_str!("../../../docs/json.md");
    let (_, table) = page.split_once("## Exit codes").expect("the page has the section");
    let (table, _) = table.split_once("\n## ").expect("other sections follow");
    let first = |row: &str| row.strip_prefix("| ")?.split_once(' ')?.0.parse::<u8>().ok();
    let documented = table.lines().filter_map(first).collect::<Vec<_>>();
    let codes = Code::VARIANTS.iter().map(|code| *code as u8).chain(OTHERS).collect::<BTreeSet<_>>();
    assert_eq!(documented, codes.into_iter().collect::<Vec<_>>());
}
