//! Connects agent programs to the log, by entries in their configuration, and takes these out again. Whatever else is in
//! those files stays as it is.

mod content;
pub mod doctor;
mod entry;
mod files;
mod hosts;
mod json;
mod places;
mod section;
mod toml;
mod trust;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::json;

use self::content::Content;
use self::entry::Wrong;
use self::files::Originals;
use self::hosts::Target;
use self::places::{Places, followed};
use crate::cli::{Host, Init, Output};
use crate::consent::confirm;
use crate::failure::{Code, Failure};
use crate::session::Session;
use crate::terminal::say;
use crate::text::visible;

/// The command of every hook.
const COMMAND: &str = "crewlog hook";

/// Makes the log, then connects the agent programs; with --remove or --print no log is made.
pub async fn init(session: &Session, args: &Init) -> Result<Code, Failure> {
    let places = Places::of(session);
    if args.print || args.remove {
        let rows = if args.print { print(&places, &wanted(session, args, &places)) } else { remove(session, &places)? };
        session.print(&json!({ "files": rows }), |out| print_rows(out, &rows))?;
        return verdict(&rows);
    }
    let (store, is_new) = session.place.open_or_make().await?;
    let log = store.log().await?;
    let hosts = wanted(session, args, &places);
    let rows = if hosts.is_empty() { Vec::new() } else { connect(session, &places, &hosts)? };
    let shown = session.place.shown();
    let did = if is_new { "made" } else { "is there already:" };
    let json = json!({ "store": shown, "log": log.id, "is_new": is_new, "files": rows });
    let text = |out: &mut dyn Write| {
        writeln!(out, "{}", visible(&format!("{did} {shown} (log {})", log.id)))?;
        print_rows(out, &rows)
    };
    match session.output {
        Output::Text => session.print(&json, text)?,
        Output::Json | Output::Jsonl => session.print_done("", &json)?,
    };
    verdict(&rows)
}

/// The programs to connect.
fn wanted(session: &Session, args: &Init, places: &Places) -> Vec<Host> {
    let is_wanted = |host: &Host| !args.no_hosts && (args.hosts.contains(host) || host.is_found(places));
    let hosts = Host::ALL.into_iter().filter(is_wanted).collect::<Vec<_>>();
    if hosts.is_empty() && !args.no_hosts {
        session.suggest("no agent program was found here; to connect one anyway: crewlog init --host NAME");
    }
    hosts
}

/// What became of one file.
#[derive(Debug, Serialize)]
struct Row {
    path: String,
    outcome: Outcome,
    /// Why it was not written.
    reason: Option<String>,
    /// What to write in it.
    text: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Wrote,
    Unchanged,
    /// Not written: the lines are printed instead.
    Printed,
    /// As it was before `init`.
    Restored,
    /// Deleted, since `init` had made it.
    Deleted,
    Failed,
}

impl Outcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Wrote => "wrote",
            Self::Unchanged => "unchanged",
            Self::Printed => "printed",
            Self::Restored => "restored",
            Self::Deleted => "deleted",
            Self::Failed => "failed",
        }
    }
}

impl Row {
    fn new(path: String, outcome: Outcome) -> Self {
        Self { path, outcome, reason: None, text: None }
    }

    fn printed(path: String, reason: Option<String>, text: String) -> Self {
        Self { path, outcome: Outcome::Printed, reason, text: Some(text) }
    }

    fn failed(path: String, wrong: &Wrong) -> Self {
        let reason = Some(wrong.of(&path));
        Self { path, outcome: Outcome::Failed, reason, text: None }
    }
}

/// One file, as it is and as it is to become.
struct Edit<'a> {
    target: &'a Target,
    /// The file itself, where the target is a link to it.
    path: PathBuf,
    shown: String,
    before: Option<String>,
}

impl<'a> Edit<'a> {
    fn of(places: &Places, target: &'a Target) -> Result<Self, Row> {
        let (path, shown) = (followed(&target.path), places.shown(&target.path));
        match files::read(&path) {
            Ok(before) => Ok(Self { target, path, shown, before }),
            Err(wrong) => Err(Row::failed(shown, &wrong)),
        }
    }

    fn after(&self) -> Result<String, Wrong> {
        self.target.content.with(self.before.as_deref().unwrap_or_default())
    }

    fn failed(self, wrong: &Wrong) -> Row {
        Row::failed(self.shown, wrong)
    }

    /// Writes our content, with the user's consent where the file is outside the repository.
    fn write(self, session: &Session, places: &Places, originals: &mut Originals) -> Result<Row, Failure> {
        let content = &self.target.content;
        let after = match self.after() {
            Ok(after) => after,
            Err(wrong) if is_foreign(content, self.before.as_deref()) => {
                return Ok(Row::printed(
                    self.shown,
                    Some(format!("{}; add this line to it", wrong.what)),
                    content.alone(),
                ));
            }
            Err(wrong) => return Ok(self.failed(&wrong)),
        };
        if self.before.as_ref() == Some(&after) {
            return Ok(Row::new(self.shown, Outcome::Unchanged));
        }
        if !agrees(session, places, &self.path, &format!("add to {}:\n{}", self.shown, content.alone())) {
            let reason = "it is outside the repository; add these lines, or use --yes".to_owned();
            return Ok(Row::printed(self.shown, Some(reason), content.alone()));
        }
        originals.keep(&self.path, self.before.as_deref(), &after, content)?;
        Ok(match files::write(&self.path, &after, content) {
            Ok(()) => Row::new(self.shown, Outcome::Wrote),
            Err(wrong) => self.failed(&wrong),
        })
    }

    /// Restores the file where nobody changed it since, else takes out our content. None where there was nothing of ours.
    fn undo(self, session: &Session, places: &Places, originals: &mut Originals) -> Result<Option<Row>, Failure> {
        let Some(before) = self.before.as_deref() else {
            originals.forget(&self.path)?;
            return Ok(None);
        };
        let content = &self.target.content;
        let (text, outcome) = match (originals.original(&self.path, before), content.without(before)) {
            (Some(Some(text)), _) => (Some(text.to_owned()), Outcome::Restored),
            (Some(None), _) => (None, Outcome::Deleted),
            (None, Err(wrong)) => return Ok(Some(self.failed(&wrong))),
            (None, Ok(text)) if text == before => (Some(text), Outcome::Unchanged),
            (None, Ok(text)) if content.is_nothing(&text) && originals.may_delete(&self.path) => {
                (None, Outcome::Deleted)
            }
            (None, Ok(text)) => (Some(text), Outcome::Wrote),
        };
        if outcome != Outcome::Unchanged {
            if !agrees(session, places, &self.path, &format!("take out of {}:\n{}", self.shown, content.alone())) {
                let reason = "it is outside the repository; take out these lines, or use --yes".to_owned();
                return Ok(Some(Row::printed(self.shown, Some(reason), content.alone())));
            }
            let undone = match &text {
                Some(text) => files::write(&self.path, text, content),
                None => files::delete(&self.path, &places.root),
            };
            if let Err(wrong) = undone {
                return Ok(Some(self.failed(&wrong)));
            }
        }
        originals.forget(&self.path)?;
        Ok((outcome != Outcome::Unchanged).then(|| Row::new(self.shown, outcome)))
    }
}

/// True of a file that is somebody else's as a whole, so that only they can add a line.
fn is_foreign(content: &Content, text: Option<&str>) -> bool {
    matches!(content, Content::Script(_)) && text.is_some_and(|text| text.starts_with("#!"))
}

/// Asks before a file outside the repository is changed.
fn agrees(session: &Session, places: &Places, path: &Path, change: &str) -> bool {
    if places.is_inside(path) || session.yes {
        return true;
    }
    if !session.terminal.is_interactive {
        return false;
    }
    say(&visible(change));
    confirm(session, "This file is outside the repository. Change it?", "").is_ok()
}

/// The files of these programs in the repository, then those that all share.
fn shared_and_own(hosts: &[Host], places: &Places) -> Vec<Target> {
    let own = hosts.iter().flat_map(|host| host.targets(places));
    own.chain(hosts::instructions(hosts, places)).chain(hosts::git_hooks(places)).collect()
}

/// The consent of the user to the hooks of these programs, as their files are now.
fn trusts(hosts: &[Host], places: &Places) -> Vec<Target> {
    let text = |host: &Host| files::read(&host.hooks_file(places)).ok().flatten().unwrap_or_default();
    hosts.iter().filter_map(|host| trust::target(*host, places, &text(host))).collect()
}

fn connect(session: &Session, places: &Places, hosts: &[Host]) -> Result<Vec<Row>, Failure> {
    let folder = places.log_folder();
    session
        .place
        .prepare(&folder)
        .map_err(|error| Failure::user(format!("{} cannot be made: {error}", folder.display())))?;
    let mut originals = Originals::read(&folder)?;
    let mut write = |target: &Target| match Edit::of(places, target) {
        Ok(edit) => edit.write(session, places, &mut originals),
        Err(row) => Ok(row),
    };
    let mut rows = shared_and_own(hosts, places).iter().map(&mut write).collect::<Result<Vec<_>, _>>()?;
    // The trust is in the hooks as they are written by now.
    for target in trusts(hosts, places) {
        rows.push(write(&target)?);
    }
    Ok(rows)
}

fn remove(session: &Session, places: &Places) -> Result<Vec<Row>, Failure> {
    let mut originals = Originals::read(&places.log_folder())?;
    let mut rows = Vec::new();
    // The trust is in hooks that are there still.
    let targets = trusts(&Host::ALL, places).into_iter().chain(shared_and_own(&Host::ALL, places));
    for target in targets {
        match Edit::of(places, &target) {
            Ok(edit) => rows.extend(edit.undo(session, places, &mut originals)?),
            Err(row) => rows.push(row),
        }
    }
    if rows.is_empty() {
        session.suggest("there is nothing to take out");
    }
    Ok(rows)
}

/// What would be written: only the content itself where the file has other things too.
fn print(places: &Places, hosts: &[Host]) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut print = |target: &Target| {
        let edit = match Edit::of(places, target) {
            Ok(edit) => edit,
            Err(row) => return rows.push(row),
        };
        rows.push(match edit.after() {
            Ok(after) if edit.before.as_ref() == Some(&after) => Row::new(edit.shown, Outcome::Unchanged),
            Err(wrong) if !is_foreign(&target.content, edit.before.as_deref()) => edit.failed(&wrong),
            Ok(_) | Err(_) => Row::printed(edit.shown, None, target.content.alone()),
        });
    };
    let own = if hosts.is_empty() { Vec::new() } else { shared_and_own(hosts, places) };
    own.iter().for_each(&mut print);
    for host in hosts {
        let file = host.hooks_file(places);
        let content = own.iter().find(|target| target.path == file).map(|target| &target.content);
        let text = files::read(&file).ok().flatten().unwrap_or_default();
        let hooks = content.and_then(|content| content.with(&text).ok()).unwrap_or_default();
        trust::target(*host, places, &hooks).iter().for_each(&mut print);
    }
    rows
}

fn print_rows(out: &mut dyn Write, rows: &[Row]) -> io::Result<()> {
    for Row { path, outcome, reason, text } in rows {
        let reason = reason.as_ref().filter(|_| *outcome == Outcome::Printed);
        let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
        writeln!(out, "{:<9}  {}", outcome.as_str(), visible(&format!("{path}{reason}")))?;
        for line in text.iter().flat_map(|text| text.lines()) {
            writeln!(out, "    {}", visible(line))?;
        }
    }
    Ok(())
}

/// Fails when a file could not be changed; the others are done.
fn verdict(rows: &[Row]) -> Result<Code, Failure> {
    let failed = rows.iter().filter(|row| row.outcome == Outcome::Failed);
    let reasons = failed.filter_map(|row| row.reason.clone()).collect::<Vec<_>>();
    if reasons.is_empty() {
        return Ok(Code::Done);
    }
    Err(Failure::user(reasons.join("\n")).hint("these files are unchanged: mend them, then run the command again"))
}
