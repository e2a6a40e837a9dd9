//! Notices: runs the program of `[inbox] notify` when the inbox grows. Of all processes on a log one does it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crewlog_executors::crew::{Crew, Kind};
use crewlog_executors::liveness::LeaderLock;
use crewlog_executors::private::write_whole;
use crewlog_executors::supervisor::{Spec, Supervisor, SupervisorProgram};
use crewlog_mq::Position;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::context::Session;
use crate::context::config::Notify;
use crate::ui::failure::Failure;
use crate::ui::text::{one_line, shell_word};
use crate::views::{NeedView, Views};

/// The interval between looks at the head of the log.
const TICK: Duration = Duration::from_secs(1);
/// The inbox is read this often even without an event: an acknowledgement becomes overdue by time alone.
const RELOAD: Duration = Duration::from_secs(15);
/// The shortest time between two notices.
const REST: Duration = Duration::from_secs(5);
/// The time limit of the program.
const LIMIT: Duration = Duration::from_secs(10);
const TEXT_CHARS_MAX: usize = 200;
const ERROR_CHARS_MAX: usize = 100;

/// Runs the program for each new item until `stop` is set, and then once more: a run may end because of a new item.
///
/// # Errors
/// If the folder of leader locks is not writable.
pub async fn host(session: Session, crew: Arc<Crew>, mut stop: watch::Receiver<bool>) -> io::Result<()> {
    // Commands report a configuration that cannot be read.
    let Some(notify) = session.config().ok().and_then(|config| config.inbox.notify.clone()) else { return Ok(()) };
    let name = crew.leader("notices");
    if !notify.may_start() {
        let agree = session.command("agree");
        tracing::warn!("{}: it is not started until a person agrees: {agree}", unknown_program(&notify));
    }
    let (mut lock, mut noticed) = (None, None);
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let is_last = tokio::select! {
            _ = ticks.tick() => false,
            is_set = stop.wait_for(|is_set| *is_set) => match is_set {
                Ok(_) => true,
                Err(_) => return Ok(()),
            },
        };
        // A process that may not start its program leaves the notices to another one.
        if lock.is_none() && notify.may_start() {
            lock = LeaderLock::take(&session.place.workers_folder(), &name)?;
        }
        if lock.is_some() {
            let noticed = noticed.get_or_insert_with(|| Noticed::read(&session, &crew, &name));
            if let Err(failure) = noticed.tell(&session, &notify).await {
                tracing::warn!("no notice of new items of the inbox: {}", failure.message);
            }
        }
        if is_last {
            return Ok(());
        }
    }
}

/// A program of crewlog.toml that nobody on this machine has agreed to.
pub fn unknown_program(notify: &Notify) -> String {
    format!("crewlog.toml starts a program when the inbox grows: {}", shown(notify))
}

fn shown(notify: &Notify) -> String {
    one_line(&notify.argv.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" "), usize::MAX)
}

/// The items that the program was started for. They are in a file, so that the next host does not repeat them.
struct Noticed {
    views: Views,
    file: PathBuf,
    items: BTreeSet<String>,
    /// The plans at the last look that nobody runs.
    ready: BTreeSet<String>,
    /// The head of the log at the last look, and its time.
    looked: (Position, Option<Instant>),
    last: Option<Instant>,
}

impl Noticed {
    fn read(session: &Session, crew: &Arc<Crew>, name: &str) -> Self {
        let file = session.place.beside(name);
        let items = fs::read_to_string(&file).ok().and_then(|text| serde_json::from_str(&text).ok());
        let looked = (Position(0), None);
        Self {
            views: Views::new(crew.clone(), true),
            file,
            items: items.unwrap_or_default(),
            ready: BTreeSet::new(),
            looked,
            last: None,
        }
    }

    /// Starts the program if there are new items and the last notice is long enough ago.
    async fn tell(&mut self, session: &Session, notify: &Notify) -> Result<(), Failure> {
        let as_of = self.views.as_of(None).await?;
        let is_recent = |since: Option<Instant>, limit| since.is_some_and(|since| since.elapsed() < limit);
        if is_recent(self.last, REST) || (as_of.at == self.looked.0 && is_recent(self.looked.1, RELOAD)) {
            return Ok(());
        }
        let mut needs = as_of.needs(str::to_owned).await?;
        // Between two tasks of a run its plan is ready for a moment.
        let ready = needs.iter().filter(|need| need.kind == Kind::Ready).map(key).collect();
        let ready_before = std::mem::replace(&mut self.ready, ready);
        needs.retain(|need| need.kind != Kind::Ready || ready_before.contains(&key(need)));
        self.looked = (as_of.at, Some(Instant::now()));
        let items: BTreeSet<_> = needs.iter().map(key).collect();
        let new: Vec<_> = needs.iter().filter(|need| !self.items.contains(&key(need))).collect();
        if items != self.items {
            self.items = items;
            // Before the start: a program that fails is not started again for the same items.
            write_whole(&self.file, &json!(self.items).to_string(), 0o600, true)
                .map_err(|error| Failure::user(format!("{}: {error}", self.file.display())))?;
        }
        let Some(first) = new.first() else { return Ok(()) };
        self.last = Some(Instant::now());
        start(session, notify, (first, new.len(), needs.len())).await
    }
}

/// The name of an item. One that was settled and waits again is new.
fn key(need: &NeedView) -> String {
    format!("{} {} {}", json!(need.kind), need.id, need.since.as_deref().unwrap_or_default())
}

/// Runs the program, which gets the first new item in its environment.
async fn start(
    session: &Session,
    notify: &Notify,
    (first, n_new, n_waiting): (&NeedView, usize, usize),
) -> Result<(), Failure> {
    let more = if n_new > 1 { format!(" (and {} more)", n_new - 1) } else { String::new() };
    let env = [
        ("CREWLOG_ITEM", first.id.clone()),
        ("CREWLOG_KIND", json!(first.kind).as_str().unwrap_or_default().to_owned()),
        ("CREWLOG_TEXT", one_line(&first.text, TEXT_CHARS_MAX) + &more),
        ("CREWLOG_NEW", n_new.to_string()),
        ("CREWLOG_WAITING", n_waiting.to_string()),
    ];
    let env = env.map(|(name, value)| (name.to_owned(), value)).into();
    let cwd = Some(session.folder.clone());
    let spec = Spec { argv: notify.argv.clone(), cwd, env, ends_all: true, ..Spec::default() };
    let failed = |why: &str| Failure::user(format!("{}: {}", shown(notify), one_line(why, ERROR_CHARS_MAX)));
    let supervise = SupervisorProgram::this_binary(["supervise"]).map_err(|error| failed(&error.to_string()))?;
    Supervisor::new(supervise, None).output(spec, LIMIT).await.map(drop).map_err(|why| failed(&why))
}
