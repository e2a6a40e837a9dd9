//! `top`: a live view of the crew on the terminal. It shows the views, and a person's actions in it are commands of the
//! command line.

mod draw;
mod screen;
mod shown;
mod state;

use std::io;
use std::io::IsTerminal;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use crewlog_executors::caller::ordered;
use crewlog_executors::crew::{self, Crew};
use crewlog_mq::{Error, Position, Query, Start};
use futures::StreamExt;
use ratatui::crossterm::event as keys;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{interval, sleep, timeout};

use self::screen::Screen;
use self::shown::{Asked, Shown};
use self::state::{Event, Request, State};
use crate::action::Action;
use crate::context::Session;
use crate::run::notices;
use crate::ui::failure::{Code, Failure};
use crate::ui::signals::Signals;
use crate::views::Views;

/// The interval for redrawing ages.
const TICK: Duration = Duration::from_secs(1);
/// The views are reloaded this often even without an event: an acknowledgement becomes overdue by time alone.
const RELOAD: Duration = Duration::from_secs(15);
/// The shortest interval between reloads while the log grows fast.
const REST: Duration = Duration::from_millis(200);
/// The most events taken from the log at once.
const CHUNK: usize = 1_000;
/// The time limit for running commands when the view is left.
const STOP_MAX: Duration = Duration::from_secs(5);

pub async fn top(session: &Session, at: Option<Position>) -> Result<Code, Failure> {
    if !session.terminal.shows_results || !io::stdin().is_terminal() {
        let failure = Failure::user("`crewlog top` needs a terminal as standard input and output");
        return Err(failure
            .hint(format!("a plan as text: {}", session.command("show PLAN")))
            .hint(format!("the crew as text: {}", session.command("agents"))));
    }
    let crew = crate::context::crew::open(session).await?;
    let views = Arc::new(Views::new(crew.clone(), true));
    let asked = Asked { at, plan: None };
    let shown = Shown::load(&views, &asked).await?;
    let folder = session.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let state = State::new(shown, asked, folder, session.terminal.has_colour);
    let signals = Signals::new()?;
    View { session, crew, views, doing: JoinSet::new() }.run(state, Screen::take().map_err(unusable)?, signals).await
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn unusable(error: std::io::Error) -> Failure {
    Failure::user(format!("the terminal cannot be used: {error}"))
}

/// The view, and the futures that it waits for.
struct View<'a> {
    session: &'a Session,
    crew: Arc<Crew>,
    views: Arc<Views>,
    doing: JoinSet<Event>,
}

impl View<'_> {
    async fn run(mut self, mut state: State, mut screen: Screen, mut signals: Signals) -> Result<Code, Failure> {
        let mut keys = read_keys();
        let (stop, is_stopped) = watch::channel(false);
        if state.asked.at.is_none() {
            tokio::spawn(crew::host(self.crew.clone(), self.session.place.workers_folder(), is_stopped.clone()));
            tokio::spawn(notices::host(self.session.clone(), self.crew.clone(), is_stopped));
        }
        let grown = self.crew.store().follow(&Query::all(), Start::After(state.shown.head)).ready_chunks(CHUNK);
        let mut grown = pin!(grown.then(async |events| {
            sleep(REST).await;
            events
        }));
        let (mut ticks, mut reloads) = (interval(TICK), interval(RELOAD));
        loop {
            screen.terminal.draw(|frame| draw::draw(&state, frame)).map_err(unusable)?;
            let event = tokio::select! {
                Some(key) = keys.recv() => match key.map_err(unusable)? {
                    keys::Event::Key(key) if !key.is_release() => Event::Key(key),
                    // The new size is drawn.
                    _other => continue,
                },
                Some(events) = grown.next() => match events.into_iter().filter_map(Result::err).find(Error::is_final) {
                    Some(error) => return Err(error.into()),
                    None => Event::Grew,
                },
                Some(done) = self.doing.join_next() => done.map_err(|error| Failure::user(format!("it failed: {error}")))?,
                _ = ticks.tick() => Event::Tick(self.crew.store().now()),
                _ = reloads.tick() => Event::Grew,
                () = signals.next() => break,
            };
            let requests = state.update(event);
            if std::mem::take(&mut state.rings) && !self.session.terminal.is_quiet {
                screen.ring().map_err(unusable)?;
            }
            if requests.contains(&Request::Quit) {
                break;
            }
            requests.into_iter().for_each(|request| self.begin(request));
        }
        drop((screen, stop));
        // A running command must not be left half done.
        let _ = timeout(STOP_MAX, self.doing.join_all()).await;
        Ok(Code::Done)
    }

    fn begin(&mut self, request: Request) {
        let (views, crew) = (self.views.clone(), self.crew.clone());
        match request {
            Request::Load(asked) => drop(self.doing.spawn(async move {
                match Shown::load(&views, &asked).await {
                    Ok(shown) => Event::Loaded(asked, Box::new(shown)),
                    Err(failure) => Event::NotLoaded(said(&failure)),
                }
            })),
            Request::Find { from, is_forward } => drop(self.doing.spawn(async move {
                let found = find(&views, from, is_forward).await;
                found.map_or_else(|failure| Event::Performed(said(&failure)), Event::Found)
            })),
            Request::Execute(action) => {
                let by = self.session.by("top", None);
                let session = self.session.of_remote(crew, by.clone(), true);
                self.doing.spawn(ordered(by, execute(session, *action)));
            }
            // It ends the loop.
            Request::Quit => {}
        }
    }
}

/// Executes an action, and returns a message about it.
async fn execute(session: Session, action: Action) -> Event {
    let executed = action.execute(&session).await;
    let said = executed.map_or_else(|failure| said(&failure), |_| "done".to_owned());
    Event::Performed(format!("{said}  {}", session.reply().notes.join("; ")))
}

/// The next failure after a position, or the last one before it.
async fn find(views: &Views, from: Position, is_forward: bool) -> Result<Option<Position>, Failure> {
    let marks = views.as_of(None).await?.marks().await?;
    let mut failures = marks.iter().filter(|mark| mark.kind == "failure").map(|mark| mark.position);
    Ok(if is_forward { failures.find(|found| *found > from) } else { failures.rfind(|found| *found < from) })
}

/// A failure in one line.
fn said(failure: &Failure) -> String {
    let (message, hints) = (&failure.message, &failure.hints);
    hints.iter().fold(format!("error: {message}"), |said, hint| format!("{said}; {hint}"))
}

/// Reads the keyboard in a separate thread, which ends with the program.
fn read_keys() -> Receiver<io::Result<keys::Event>> {
    let (to, read) = channel(16);
    std::thread::spawn(move || while to.blocking_send(keys::read()).is_ok() {});
    read
}

#[cfg(test)]
mod tests;
