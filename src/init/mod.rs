//! Connects agent programs to the log, by entries in their configuration, and removes these again. Everything else in
//! those files stays unchanged.

mod change;
mod content;
pub mod doctor;
mod hosts;
mod json;
mod ours;
mod places;
mod plugin;
mod programs;
mod status_line;
mod target;
mod toml;
mod trust;
mod wanted;

use self::change::{Change, Files, Outcome, Row};
use self::places::Places;
use self::target::Target;
use crate::cli::programs::Host;
use crate::commands::Init;
use crate::context::Session;
use crate::ui::failure::{Code, Failure};
use crate::ui::text::visible;
use serde_json::json;
use std::path::Path;

/// Creates the log, then connects the agent programs; with --remove removes its entries, and creates no log.
pub async fn init(session: &Session, args: &Init) -> Result<Code, Failure> {
    let places = Places::of(session);
    if args.remove {
        return remove(session, &places).await;
    }
    let hosts = if args.no_hosts { Vec::new() } else { Host::chosen(&args.hosts, &places) };
    let mut rows = Vec::new();
    if let Some(folder) = &args.plugin {
        session.person_only("install the plugin").await?;
        let folder = folder.clone().or_else(plugin::usual_folder);
        let folder = folder.ok_or_else(|| Failure::user("there is no home: name a folder with --plugin=FOLDER"))?;
        let folder = session.folder.join(folder);
        plugin::write(&folder)?;
        session.remark(&format!("the plugin is in {}", visible(&folder.to_string_lossy())));
        let mut files = Files::open(session, &places)?;
        rows = plugin::change(session, &places, &mut files, (&hosts, &folder), Change::Add).await?;
    }
    let (store, is_new) = session.place.open_or_make().await?;
    let log = store.log().await?;
    if hosts.is_empty() && !args.no_hosts {
        session.suggest("no agent program was found here; to connect one anyway: crewlog init --host NAME");
    }
    if !hosts.is_empty() {
        rows.extend(change_all(session, &places, &hosts, Change::Add)?);
    }
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
    if is_new && hosts.iter().any(|host| !host.has_plugin(&places)) {
        session.suggest("to connect them for all repositories instead: crewlog init --plugin");
    }
    if args.plugin.is_some() || rows.iter().any(|row| row.outcome == Outcome::Wrote) {
        restart(session, &places, &hosts);
    }
    verdict(session, &rows)
}

/// Takes everything out of the files, and the plugin out of the programs.
async fn remove(session: &Session, places: &Places) -> Result<Code, Failure> {
    session.person_only("remove the hooks").await?;
    let mut rows = change_all(session, places, &Host::ALL, Change::TakeOut)?;
    let installed: Vec<_> = Host::ALL.into_iter().filter(|host| host.has_plugin(places)).collect();
    let mut files = Files::open(session, places)?;
    let plugin = plugin::change(session, places, &mut files, (&installed, Path::new("")), Change::TakeOut).await;
    let (more, refused) = plugin.map_or_else(|failure| (Vec::new(), Err(failure)), |rows| (rows, Ok(())));
    rows.extend(more);
    rows.retain(|row| row.outcome != Outcome::Unchanged);
    if rows.is_empty() && installed.is_empty() {
        session.suggest("nothing to remove");
    }
    session.print(&json!({ "files": rows }), |out| rows.iter().try_for_each(|row| row.print(out)))?;
    refused?;
    if !(rows.is_empty() && installed.is_empty()) {
        restart(session, places, &Host::ALL);
    }
    verdict(session, &rows)
}

/// Changes all files of these programs: their own, shared ones, and the user's consent. They are read one after
/// another, since one may be a link to another. A program with the plugin has no hooks in files: it would run them twice.
fn change_all(session: &Session, places: &Places, hosts: &[Host], change: Change) -> Result<Vec<Row>, Failure> {
    let mut files = Files::open(session, places)?;
    let (with_plugin, with_files): (Vec<Host>, Vec<Host>) = hosts.iter().partition(|host| host.has_plugin(places));
    let both = with_plugin.iter().flat_map(|host| host.targets(places).into_iter().chain(trust::target(*host, places)));
    let both = both.filter(Target::has_ours).collect::<Vec<_>>();
    let mut rows = both.iter().map(|target| files.change(target, Change::TakeOut)).collect::<Vec<_>>();
    let beside = hosts.iter().filter(|host| change == Change::TakeOut || with_plugin.contains(host));
    let beside = beside.flat_map(|host| host.plugin_targets(places)).collect::<Vec<_>>();
    rows.extend(beside.iter().map(|target| files.change(target, change)));
    let own = with_files.iter().flat_map(|host| host.targets(places));
    let trust = with_files.iter().filter_map(|host| trust::target(*host, places));
    let targets = own.chain(hosts::shared(hosts, places)).chain(trust).collect::<Vec<_>>();
    rows.extend(targets.iter().map(|target| files.change(target, change)));
    Ok(rows)
}

/// Names the sessions that are open: they have read their configuration before.
fn restart(session: &Session, places: &Places, hosts: &[Host]) {
    let open = programs::open_sessions(hosts, &places.root);
    if !open.is_empty() {
        session.suggest(&format!("these sessions began before: restart {}", open.join(", ")));
    }
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
