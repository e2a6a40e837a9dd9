//! The options of commands that read a plan file.

use std::path::Path;

use clap::Args;
use crewlog_planner::event::PlanFile;
use crewlog_planner::parse::Format;

use crate::cli::typed::one_of;

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
