//! Texts whose code must not run, and texts whose code must.

use serde::Deserialize;

use super::super::{ReadOptions, read};

/// The most texts of the second file that may be withheld, each with a warning.
const WITHHELD_MAX: usize = 15;

fn commands(text: &str) -> Vec<String> {
    let plan = read(text, ReadOptions::default());
    plan.map(|plan| plan.tasks.into_iter().filter_map(|task| task.command).collect()).unwrap_or_default()
}

#[test]
fn two_hundred_texts_without_instructions_run_nothing() {
    let texts = include_str!("safe.txt").lines().map(|line| {
        let (name, text) = line.split_once(' ').expect("a name and a text");
        (name, serde_json::from_str::<String>(text).expect("a JSON string"))
    });
    let ran = texts.map(|(name, text)| (name, commands(&text))).filter(|(_, commands)| !commands.is_empty());
    assert_eq!(ran.collect::<Vec<_>>(), []);
}

#[test]
fn of_a_hundred_instructions_most_run_and_the_rest_get_a_warning() {
    #[derive(Deserialize)]
    struct Order {
        text: String,
        runs: Vec<String>,
    }
    let mut withheld = 0;
    for line in include_str!("runs.txt").lines() {
        let (name, order) = line.split_once(' ').expect("a name and an order");
        let Order { text, runs } = serde_json::from_str(order).expect("a text and its commands");
        if commands(&text) != runs {
            withheld += 1;
            let plan = read(&text, ReadOptions::default()).expect("it is a plan");
            assert!(plan.warnings.iter().any(|warning| warning.message.contains("run")), "{name} is silent");
        }
    }
    assert!(withheld <= WITHHELD_MAX, "{withheld} are withheld");
}
