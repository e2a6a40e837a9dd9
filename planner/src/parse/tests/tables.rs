//! Tables, sheets and plans in a fence: which of their commands are run, and which are told.

use super::{check, plan};
use crate::parse::{ParseOptions, parse};
use crate::plan::Mark;

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

/// A row with a command and a cell beside it.
fn row(column: &str, cell: &str) -> String {
    format!("| Task | {column} |\n|---|---|\n| Run `make x` | {cell} |\n")
}

#[test]
fn what_a_cell_says_of_how_far_its_row_is_counts_in_every_language() {
    for (column, cell, mark) in [
        ("Status", "done", Mark::Done),
        ("Status", "Done (Bob)", Mark::Done),
        ("Status", "already done", Mark::Done),
        ("Status", "erledigt", Mark::Done),
        ("Status", "已完成", Mark::Done),
        ("Status", "hecho", Mark::Done),
        ("Status", "terminée", Mark::Done),
        ("Status", "100 %", Mark::Done),
        ("Status", "in Arbeit", Mark::InProgress),
        ("Status", "50%", Mark::InProgress),
        ("Status", "n/a", Mark::Cancelled),
        ("Status", "not needed", Mark::Cancelled),
        ("Status", "offen", Mark::Open),
        ("Status", "-", Mark::Open),
        ("Done", "true", Mark::Done),
        ("Done?", "TRUE", Mark::Done),
        ("Done", "no", Mark::Open),
        ("Done", "ja", Mark::Done),
        ("Completed At", "2026-01-02", Mark::Done),
        ("Completed At", "", Mark::Open),
        ("Run?", "NO", Mark::Cancelled),
        ("Run?", "yes", Mark::Open),
        ("Skip", "yes", Mark::Cancelled),
        ("Enabled", "false", Mark::Cancelled),
        ("Statut", "terminé", Mark::Done),
        ("状态", "进行中", Mark::InProgress),
    ] {
        let read = plan(&row(column, cell));
        assert_eq!(read.tasks[0].mark, mark, "{column}: {cell}");
        assert_eq!(read.tasks[0].command.as_deref(), Some("make x"), "{column}: {cell}");
        assert_eq!(read.warnings, [], "{column}: {cell}");
    }
}

#[test]
fn a_cell_that_is_not_understood_or_withholds_leaves_its_row_no_command() {
    for (column, cell) in [
        ("Status", "done by Bob"),
        ("Status", "Done (not yet)"),
        ("Status", "forbidden"),
        ("Status", "verboten"),
        ("Status", "no"),
        ("Status", "true"),
        ("Status", "❌"),
        ("Status", "❌ done"),
        ("Status", "blocked"),
        ("Status", "TBD"),
        ("Done", "❌"),
        ("Done", "Bob"),
        ("Run?", "later"),
        ("Enabled", "on Mondays"),
        ("Notes", "Bob does this himself"),
        ("Notes", "forbidden"),
        ("Remarks", "is not allowed"),
        ("Notes", "already done"),
        ("Due", "Bob has already run it"),
    ] {
        let read = plan(&row(column, cell));
        let note = format!("{column}: {cell}");
        assert_eq!((&read.tasks[0].command, read.tasks[0].mark), (&None, Mark::Open), "{note}");
        assert!(read.tasks[0].notes.contains(&note), "{note}: {:?}", read.tasks[0].notes);
        assert_eq!(read.warnings.len(), 1, "{note}: {:?}", read.warnings);
    }
    let beside = plan(&row("Notes", "takes long, on the small machine"));
    assert_eq!(beside.tasks[0].command.as_deref(), Some("make x"));
    check(
        "| Task | Command | Status |\n|---|---|---|\n| Clean up | `rm -rf x` | Bob did |\n",
        &["1 Refactor Clean up | note Status: Bob did | note Command: rm -rf x"],
    );
}

#[test]
fn lines_of_prose_with_commas_are_no_rows() {
    check(
        "Name, status\nBuild the app, then deploy it",
        &["1 Processing Name, status", "2 CodeImplementation Build the app", "3 ToolCall deploy it | <- 1 2"],
    );
    for last in ["Finally, run `make x`.", "Then, when that passes, run `make x`."] {
        let text = format!("Task,Status\nFix the app,open\n{last}");
        assert_eq!((commands(&text), plan(&text).tasks.len()), (vec!["make x".to_owned()], 2), "{text}");
        let text = format!("Task,Status\n{last}");
        assert_eq!(commands(&text), ["make x"], "{text}");
    }
    let other = plan("Task,Owner,Status\nFix it,Ann,open\nRun `make x`, `make y`,Ann,open\nShip it,Bob,open");
    assert_eq!(other.tasks.len(), 3, "{:?}", other.tasks);
    assert!(other.tasks.iter().all(|task| task.command.is_none()));
    assert_eq!(other.warnings[0].line, 3);
}

#[test]
fn a_quote_is_one_only_at_the_beginning_of_a_cell() {
    check(
        "Task,Status\nPut up the 19\" rack,done\n\"Run `echo \"\"a, b\"\"`\",open\n\"Fix it,open\n\"Ship it, now\" ,done\n",
        &[
            "1 Processing Put up the 19\" rack | mark Done",
            "2 ToolCall Run echo \"a, b\" | $ echo \"a, b\"",
            "3 CodeImplementation \"Fix it",
            "4 ToolCall Ship it, now | mark Done",
        ],
    );
}

#[test]
fn sheets_have_commands_and_heads_in_other_languages() {
    check(
        "Task,Command\nBuild it,`make build`\nTest it,`make test`\nShip it,make ship\n",
        &[
            "1 ToolCall Build it | $ make build",
            "2 ToolCall Test it | $ make test",
            "3 ToolCall Ship it | note Command: make ship",
        ],
    );
    for head in [
        "Nr,Aufgabe,Status,Zuständig,Abhängig von",
        "N°,Tâche,Statut,Responsable,Dépend de",
        "Número,Tarea,Estado,Responsable,Depende de",
        "编号,任务,状态,负责人,依赖",
    ] {
        check(
            &format!("{head}\n1,Fix it,done,Ann,\n2,Test it,,Bob,1\n"),
            &["1 CodeImplementation Fix it | @ Ann | mark Done", "2 UnitTest Test it | <- 1 | @ Bob"],
        );
    }
}
