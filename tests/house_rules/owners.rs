//! Work that one place of the program does for all others. Test code is left out.

use super::Finding;
use super::source::{File, lines_with};

/// The files that write to the terminal.
const WRITERS: [&str; 2] = ["src/ui/", "src/top/screen.rs"];
const WRITES: [&str; 6] = ["eprint!", "eprintln!", "print!", "println!", "stderr()", "stdout()"];

pub(crate) fn writers(sources: &[File]) -> Vec<Finding> {
    let may_write =
        |file: &File| !file.path.starts_with("src/") || WRITERS.iter().any(|path| file.path.starts_with(path));
    let mut found = Vec::new();
    for file in sources.iter().filter(|file| !may_write(file)) {
        for pattern in WRITES {
            for line in lines_with(&file.text, pattern) {
                let says = format!("`{pattern}` in {}:{line}: write through src/ui", file.path);
                found.push(Finding { rule: "writer", place: "src/".to_owned(), line: 1, measure: 1, says });
            }
        }
    }
    found
}

/// The texts for agents: the words of others in them pass one function of [`quoted`](crewlog_planner::prompt::quoted) and
/// [`quoted_line`](crewlog_executors::text::quoted_line).
const PROMPTS: [(&str, &[&str]); 2] = [("src/hook/", &["one_line("]), ("planner/src/prompt/mod.rs", &["excerpt("])];

pub(crate) fn quoters(sources: &[File]) -> Vec<Finding> {
    let mut found = Vec::new();
    for (place, patterns) in PROMPTS {
        for file in sources.iter().filter(|file| file.path.starts_with(place)) {
            for pattern in patterns {
                for line in lines_with(&file.text, pattern) {
                    let says = format!("`{pattern}` in {}:{line}: quote the words of others", file.path);
                    found.push(Finding { rule: "quoter", place: place.to_owned(), line: 1, measure: 1, says });
                }
            }
        }
    }
    found
}

/// A second file that reads the status of a task derives its state again.
pub(crate) fn readers_of_task_status(sources: &[File]) -> Vec<Finding> {
    let mut found = Vec::new();
    for root in ["executors/src/", "src/"] {
        for file in sources.iter().filter(|file| file.path.starts_with(root)) {
            if !lines_with(&file.text, "TaskStatus::").is_empty() {
                let says = format!("{} matches on `TaskStatus`: use the state of the task", file.path);
                found.push(Finding { rule: "status", place: root.to_owned(), line: 1, measure: 1, says });
            }
        }
    }
    if found.len() > 1 { found } else { vec![] }
}
