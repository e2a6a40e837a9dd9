//! Plan files: the options of commands that read one, its warnings, and keeping one in step with its plan.

pub mod sync;

use std::path::Path;

use clap::Args;
use crewlog_planner::event::PlanFile;
use crewlog_planner::parse::{Diagnostic, Format};

use crate::cli::typed::one_of;
use crate::context::Session;
use crate::ui::text::shell_word;

/// The most warnings printed for one text; `plan check` prints all.
const WARNINGS_MAX: usize = 20;

/// How to read a plan file.
#[derive(Debug, Clone, Args)]
pub struct ReadArgs {
    /// The format [default: by the path]
    #[arg(long, value_parser = one_of::<Format>(Format::ALL.iter().map(<&str>::from)))]
    pub format: Option<Format>,
    /// The tag of a Task Master file [default: master, else the first]
    #[arg(long)]
    pub tag: Option<String>,
    /// Ignore the order of the file: run steps in parallel unless a dependency is written out
    #[arg(long)]
    pub parallel: bool,
}

impl ReadArgs {
    /// A file, with the format of its path where none is given.
    pub fn plan_file(&self, file: &Path) -> PlanFile {
        let named = Some(file).filter(|file| file.as_os_str() != "-");
        let path = named.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
        let path = path.map(|path| path.to_string_lossy().into_owned());
        let by_path = || path.as_deref().map_or(Format::Markdown, Format::of_path);
        PlanFile { format: self.format.unwrap_or_else(by_path), tag: self.tag.clone(), path }
    }
}

/// Prints the first warnings about a text on standard error.
pub fn print_warnings(session: &Session, warnings: &[Diagnostic], file: &Path) {
    for Diagnostic { message, line, column, help } in warnings.iter().take(WARNINGS_MAX) {
        session.remark(&format!("{}:{line}:{column}: warning: {message}", file.display()));
        help.iter().for_each(|help| session.remark(&format!("  help: {help}")));
    }
    let n_more = warnings.len().saturating_sub(WARNINGS_MAX);
    if n_more > 0 {
        session.remark(&format!("and {n_more} more: `crewlog plan check {}`", shell_word(&file.to_string_lossy())));
    }
}
