//! Connects agent programs to the log, by entries in their configuration, and removes these again. Everything else in
//! those files stays unchanged.

mod change;
mod content;
pub mod doctor;
mod hosts;
mod json;
mod ours;
mod places;
mod status_line;
mod target;
mod toml;
mod trust;
mod wanted;

use self::change::{Change, Files, Outcome, Row};
use self::places::Places;
use crate::cli::programs::Host;
use crate::commands::Init;
use crate::context::Session;
use crate::ui::failure::{Code, Failure};
use crate::ui::text::visible;
use serde_json::json;

/// Creates the log, then connects the agent programs; with --remove removes its entries, and creates no log.
pub async fn init(session: &Session, args: &Init) -> Result<Code, Failure> {
    let places = Places::of(session);
    if args.remove {
        session.person_only("remove the hooks").await?;
        let mut rows = change_all(session, &places, &Host::ALL, Change::TakeOut)?;
        rows.retain(|row| row.outcome != Outcome::Unchanged);
        if rows.is_empty() {
            session.suggest("nothing to remove");
        }
        session.print(&json!({ "files": rows }), |out| rows.iter().try_for_each(|row| row.print(out)))?;
        return verdict(session, &rows);
    }
    let (store, is_new) = session.place.open_or_make().await?;
    let log = store.log().await?;
    let hosts = if args.no_hosts { Vec::new() } else { Host::chosen(&args.hosts, &places) };
    if hosts.is_empty() && !args.no_hosts {
        session.suggest("no agent program was found here; to connect one anyway: crewlog init --host NAME");
    }
    let rows = if hosts.is_empty() { Vec::new() } else { change_all(session, &places, &hosts, Change::Add)? };
    let shown = session.place.shown();
    let did = if is_new { "made" } else { "is there already:" };
    let json = json!({ "store": shown, "log": log.id, "is_new": is_new, "files": rows });
    session.print(&json, |out| {
        writeln!(out, "{}", visible(&format!("{did} {shown} (log {})", log.id)))?;
        rows.iter().try_for_each(|row| row.print(out))
    })?;
    if rows.iter().any(|row| row.outcome == Outcome::Wrote) && session.place.repository.is_some() {
        session.suggest("commit these files: a worktree has hooks only if its branch has them");
    }
    verdict(session, &rows)
}

/// Changes all files of these programs: their own, shared ones, and the user's consent. They are read one after
/// another, since one may be a link to another.
fn change_all(session: &Session, places: &Places, hosts: &[Host], change: Change) -> Result<Vec<Row>, Failure> {
    let own = hosts.iter().flat_map(|host| host.targets(places));
    let shared = hosts::shared(hosts, places);
    let trust = hosts.iter().filter_map(|host| trust::target(*host, places));
    let targets = own.chain(shared).chain(trust).collect::<Vec<_>>();
    let mut files = Files::open(session, places)?;
    Ok(targets.iter().map(|target| files.change(target, change)).collect())
}

/// Fails if a file could not be changed; the others are done.
fn verdict(session: &Session, rows: &[Row]) -> Result<Code, Failure> {
    let paths = |outcome| rows.iter().filter(move |row| row.outcome == outcome).map(|row| row.path.as_str());
    if paths(Outcome::Printed).next().is_some() {
        session.suggest("files outside the repository are unchanged: edit them yourself, or use --yes");
    }
    let failed = paths(Outcome::Failed).collect::<Vec<_>>().join(", ");
    if failed.is_empty() {
        return Ok(Code::Done);
    }
    let failure = Failure::user(format!("not changed: {failed}"));
    Err(failure.hint("mend these files for the reasons above, then run the command again"))
}
