//! The help texts: the commands under their headings, and the options of all commands last.

use std::fmt::Write;

use clap::Command;
use clap::builder::{StyledStr, Styles};

/// The commands that `crewlog -h` lists; the others are hidden.
const HEADINGS: [(&str, [&str; 10]); 3] = [
    ("Plans", ["run", "work", "ls", "show", "resume", "pause", "cancel", "retry", "plan", "task"]),
    ("Crew", ["init", "doctor", "inbox", "answer", "send", "agents", "leases", "why", "top", "serve"]),
    ("Log", ["events", "replay", "diff", "fork", "stats", "export", "import", "db", "keys", "demo"]),
];
const GLOBAL: &str = "Global options";
const WIDTH: usize = 8;
/// One line for the commands that people type once and those that programs start, so that the help stays short.
const ALSO: &str = "mcp serves one agent by MCP, completions prints the script of a shell";
const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 error, 2 usage, 3 the plan does not parse, 4 nothing matched, 5 waiting for a person, \
6 paused, 7 paused because of its budget, 8 time-out, 9 conflict, 10 replay produced different events, \
11 only a person may do it, 100 a task failed or was cancelled, 101 a bug, 130 interrupted";

/// The command line with its help.
pub fn with_help(command: Command) -> Command {
    let styles = Styles::styled();
    let (header, literal) = (*styles.get_header(), *styles.get_literal());
    let mut listed = StyledStr::new();
    for (heading, names) in HEADINGS {
        let _ = writeln!(listed, "{header}{heading}:{header:#}");
        for command in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let (name, about) = (command.get_name(), command.get_about().cloned().unwrap_or_default());
            let _ = writeln!(listed, "  {literal}{name:<WIDTH$}{literal:#}{about}");
        }
    }
    let _ = writeln!(listed, "{header}Also:{header:#} {ALSO}\n{header}{GLOBAL}:{header:#}");
    let command = command.mut_args(|arg| if arg.is_global_set() { arg.help_heading(GLOBAL) } else { arg });
    let template = format!("{{usage-heading}} {{usage}}\n{}{{options}}{{after-help}}", listed.ansi());
    command.after_long_help(EXIT_CODES).help_template(template)
}
