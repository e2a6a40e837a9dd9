//! Prints the warnings of a plan file.

use std::path::Path;

use crewlog_planner::parse::Diagnostic;

use crate::context::Session;
use crate::ui::text::{shell_word, visible};

/// The most warnings printed for one text; `plan check` prints all.
const WARNINGS_MAX: usize = 20;

/// Prints the first warnings about a text on standard error.
pub fn print_warnings(session: &Session, warnings: &[Diagnostic], file: &Path) {
    for warning in warnings.iter().take(WARNINGS_MAX) {
        let Diagnostic { message, line, column, help } = warning;
        session.say(&visible(&format!("{}:{line}:{column}: warning: {message}", file.display())));
        if let Some(help) = help {
            session.say(&visible(&format!("  help: {help}")));
        }
    }
    let n_more = warnings.len().saturating_sub(WARNINGS_MAX);
    if n_more > 0 {
        session
            .say(&visible(&format!("and {n_more} more: `crewlog plan check {}`", shell_word(&file.to_string_lossy()))));
    }
}
