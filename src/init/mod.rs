//! Connects agent programs to the log, by entries in their configuration, and takes these out again. Whatever else is in
//! those files stays as it is.

mod content;
pub mod doctor;
mod edit;
mod entry;
mod files;
mod hosts;
mod json;
mod places;
mod section;
mod toml;
mod trust;

use std::io::Write;

use serde_json::json;

use self::edit::{Edit, Outcome, Row, print_rows};
use self::files::Originals;
use self::hosts::Target;
use self::places::Places;
use crate::cli::{Host, Init, Output};
use crate::failure::{Code, Failure};
use crate::session::Session;
use crate::text::visible;

/// The command of every hook.
const COMMAND: &str = "crewlog hook";

/// Makes the log, then connects the agent programs; with --remove or --print no log is made.
pub async fn init(session: &Session, args: &Init) -> Result<Code, Failure> {
    let places = Places::of(session);
    if args.print || args.remove {
        let rows = match args.print {
            true => each(&wanted(session, args, &places), &places, |edit| Ok(Some(edit.print())))?,
            false => remove(session, &places)?,
        };
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

/// All files of these programs: their own, those that they share, and the user's consent.
fn targets(hosts: &[Host], places: &Places) -> Vec<Target> {
    if hosts.is_empty() {
        return Vec::new();
    }
    let own = hosts.iter().flat_map(|host| host.targets(places));
    let shared = hosts::instructions(hosts, places).into_iter().chain(hosts::git_hooks(places));
    own.chain(shared).chain(hosts.iter().filter_map(|host| trust::target(*host, places))).collect()
}

/// Treats each file of these programs in turn, since one may be a link to another.
fn each(
    hosts: &[Host],
    places: &Places,
    mut treat: impl FnMut(Edit) -> Result<Option<Row>, Failure>,
) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for target in targets(hosts, places) {
        rows.extend(match Edit::of(places, &target) {
            Ok(edit) => treat(edit)?,
            Err(row) => Some(row),
        });
    }
    Ok(rows)
}

fn connect(session: &Session, places: &Places, hosts: &[Host]) -> Result<Vec<Row>, Failure> {
    let folder = places.log_folder();
    let cannot = |error| Failure::user(format!("{} cannot be made: {error}", folder.display()));
    session.place.prepare(&folder).map_err(cannot)?;
    let mut originals = Originals::read(&folder)?;
    each(hosts, places, |edit| edit.write(session, places, &mut originals).map(Some))
}

fn remove(session: &Session, places: &Places) -> Result<Vec<Row>, Failure> {
    let mut originals = Originals::read(&places.log_folder())?;
    let rows = each(&Host::ALL, places, |edit| edit.undo(session, places, &mut originals))?;
    if rows.is_empty() {
        session.suggest("there is nothing to take out");
    }
    Ok(rows)
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
