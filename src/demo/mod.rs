//! `demo`: serves a recorded day of a crew from a log in a temporary folder, as `serve` does.
//!
//! `examples/record-day` makes the recording. Its times are moved so that it ends now: ages and leases are those of the end
//! of that day, also for other commands on its log. Its agents never call again, so the timers for silent agents do not
//! run; the planner does, so that plans react to a person.

use std::collections::BTreeSet;
use std::io::BufReader;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use crewlog_executors::caller::account;
use crewlog_executors::crew::reacting;
use crewlog_executors::exports::Exported;
use crewlog_executors::planning;
use crewlog_executors::projecting::list_plans;
use crewlog_executors::roster::Roster;
use crewlog_mq::{Clock, Error, EventStore, LogIdentity, Position, Recorded, SystemClock, Timestamp};
use crewlog_planner::crew::conflicts::Conflicts;
use crewlog_planner::crew::consent::{ConsentEvent, Means};
use crewlog_planner::crew::statistics::Statistics;
use flate2::read::GzDecoder;
use futures::FutureExt;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::cli::Global;
use crate::cli::sealing::KeyPlace;
use crate::commands::agree::unagreed;
use crate::consent::decide;
use crate::context::crew::open_to_serve;
use crate::context::{Session, roster};
use crate::serve::http::{check, serve_with};
use crate::ui::failure::{Code, Failure};
use crate::ui::signals::Signals;

/// An export, compressed.
const DAY: &[u8] = include_bytes!("day.jsonl.gz");
const MONTH_US: i64 = 30 * 86_400_000_000;
/// Names the project of the recording.
const CONFIG: &str = "project = \"almanac\"\n";

/// Serves the recorded day until a signal, and removes it.
pub async fn demo(global: &Global, listen: SocketAddr, opens: bool) -> Result<Code, Failure> {
    // From here on a signal ends the command in an orderly way, and the folder is removed.
    let signals = Signals::new()?;
    let folder = tempfile::Builder::new().prefix("crewlog-demo-").tempdir().map_err(|error| cannot(&error))?;
    let session = session_in(folder.path(), global)?;
    check(&session, listen)?;
    let served = play(&session, listen, signals, opens).await;
    session.place.close().await;
    folder.close().map_err(|error| cannot(&error))?;
    served.map(|()| Code::Done)
}

fn session_in(folder: &Path, global: &Global) -> Result<Session, Failure> {
    // It is named, so that the command lines on the page find the project from anywhere.
    let config = folder.join("crewlog.toml");
    fs::write(&config, CONFIG).map_err(|error| cannot(&error))?;
    let store = Some(folder.join("log.db").to_string_lossy().into_owned());
    let global = Global { store, config: Some(config), keys: KeyPlace::default(), ..global.clone() };
    Session::in_folder(&global, folder.to_owned())
}

fn cannot(error: &io::Error) -> Failure {
    Failure::user(format!("a temporary folder cannot be used: {error}")).hint("name another place in TMPDIR")
}

async fn play(session: &Session, listen: SocketAddr, signals: Signals, opens: bool) -> Result<(), Failure> {
    let (identity, day) = Exported::begin(Box::new(BufReader::new(GzDecoder::new(DAY))), &Arc::default())?;
    let mut day = day.collect::<Result<Vec<Recorded>, Error>>()?;
    let shift = Shift::to_end_at(SystemClock::default().wall(), identity.created_at, &day);
    day.iter_mut().for_each(|recorded| shift.apply(recorded));
    let identity = LogIdentity { created_at: shift.moved(identity.created_at), ..identity };
    let store = session.place.open_once(true).await?;
    store.import(identity, day.into_iter().map(Ok)).await?;
    agree_to_all(session, store).await?;
    let crew = open_to_serve(session).await?;
    let (_stop, is_stopped) = watch::channel(false);
    let (store, folder, mut hosts) = (crew.store().clone(), session.place.workers_folder(), JoinSet::new());
    let (conflicts, statistics) = (reacting::host::<Conflicts>, reacting::host::<Statistics>);
    hosts.spawn(planning::host_all(store.pinned(), watch::channel(Position(0)).0).map(drop));
    hosts.spawn(conflicts(store.clone(), folder.clone(), is_stopped.clone()).map(drop));
    hosts.spawn(statistics(store, folder, is_stopped).map(drop));
    let served = serve_with(session, &crew, listen, signals, std::future::pending(), |address| {
        session.suggest("This is a recorded day of five agents. Nothing that you do here leaves it; Ctrl-C ends it.");
        if opens && session.terminal.shows_results {
            open(address);
        }
    });
    let served = served.await;
    hosts.shutdown().await;
    served
}

/// Agrees to all that open plans run, as the people of that day did.
async fn agree_to_all(session: &Session, store: &EventStore) -> Result<(), Failure> {
    let roster = Roster { trust: session.trust(&[]).await?, ..roster::roster(session, Duration::MAX, &[])? };
    let mut tasks = Vec::new();
    for plan in list_plans(store, None).await?.open() {
        tasks.extend(unagreed(store, &roster, &plan.id).await?.into_iter().flat_map(|found| found.lacking));
    }
    let (by, how, remembered, at) = (account(), Means::Order, BTreeSet::new(), store.now());
    decide(session, store, ConsentEvent::Agreed { by, how, grant: None, tasks, remembered, at }).await
}

/// Moves all times of a day by the same distance.
struct Shift {
    begin: i64,
    us: i64,
}

impl Shift {
    fn to_end_at(now: Timestamp, begin: Timestamp, day: &[Recorded]) -> Self {
        let end = day.last().map_or(begin, |last| last.created_at);
        Self { begin: begin.0, us: now.0 - end.0 }
    }

    fn moved(&self, moment: Timestamp) -> Timestamp {
        Timestamp(moment.0 + self.us)
    }

    fn apply(&self, recorded: &mut Recorded) {
        recorded.created_at = self.moved(recorded.created_at);
        recorded.data = self.in_text(&recorded.data);
        recorded.metadata = self.in_text(&recorded.metadata);
    }

    /// Moves the times in JSON: microseconds since 1970 between the beginning of the day and a month later. No other number
    /// of the recording is as large.
    fn in_text(&self, json: &str) -> String {
        let mut moved = String::with_capacity(json.len());
        for part in json.split_inclusive(|c: char| !c.is_ascii_digit()) {
            let digits = part.trim_end_matches(|c: char| !c.is_ascii_digit());
            let moment = digits.parse::<i64>().ok().filter(|us| (self.begin..self.begin + MONTH_US).contains(us));
            match moment {
                Some(us) => moved.push_str(&format!("{}{}", us + self.us, &part[digits.len()..])),
                None => moved.push_str(part),
            }
        }
        moved
    }
}

/// Opens an address in the browser. If there is none, the printed address suffices.
fn open(address: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    let _ = command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
}
