//! Tables, sheets and plans in a fence: which of their commands are run, and which are told.

use crate::parse::{ParseOptions, parse};

/// The commands of a text, by their order.
fn commands(text: &str) -> Vec<String> {
    let Ok(plan) = parse(text, ParseOptions::default()) else { return Vec::new() };
    plan.tasks.into_iter().filter_map(|task| task.command).collect()
}

#[test]
fn a_fence_that_shows_or_reports_is_no_plan() {
    for text in [
        "```md\nExample output:\n- Run `rm -rf x`\n```",
        "```md\nWhat Bob did:\n- Run `rm -rf x`\n```",
        "```md\n# What Bob did\n- Run `rm -rf x`\n```",
        "```\n- Run `rm -rf build`\n+ Run `make`\n```",
        "```\n- Run `rm -rf build`\n",
        "```text\nBob ran these:\nrun `rm -rf x`\nrun `make`\n```",
        "```text\nBob again:\nrun `rm -rf x`\nrun `make`\n```",
        "~~~md\n- Run `rm -rf x`\n```\n",
        "```\nThe agent said:\n\n1. Run `rm -rf x`\n```",
    ] {
        assert_eq!(commands(text), [""; 0], "of {text:?}");
    }
    for text in [
        "```md\n# Release\n\n- Run `make x`\n```",
        "```\n1. Run `make x`\n2. Ship it\n```\n",
        "~~~text\nRun `make x`. Fix the parser.\n~~~",
        "```text\nThe steps:\n- Run `make x`\n\nNever push to main.\n```",
    ] {
        assert_eq!(commands(text), ["make x"], "of {text:?}");
    }
}
