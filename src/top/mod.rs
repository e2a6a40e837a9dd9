//! `top`: a live view of the crew on the terminal. It shows the views, and what a person does in it are commands of the command
//! line.

mod draw;
mod screen;
mod shown;
mod state;
mod words;

use std::io::{self, IsTerminal};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use crewlog_executors::crew::Crew;
use crewlog_mq::{Error, Position, Query, Start};
use futures::StreamExt;
use ratatui::crossterm::event as keys;
use serde_json::Value;
use tokio::sync::mpsc::{Sender, channel};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use self::screen::Screen;
use self::shown::{Asked, Shown};
use self::state::{Action, Event, State};
use crate::cli::Cli;
use crate::failure::{Code, Failure};
use crate::runtime::Signals;
use crate::session::{Remote, Session};
use crate::views::Views;

/// How often ages are drawn again.
const TICK: Duration = Duration::from_secs(1);
/// After so many ticks the views are read again also without an event: an acknowledgement becomes overdue by time alone.
const TICKS_PER_LOAD: usize = 15;
/// A log that grows fast is read again after this time at the earliest.
const REST: Duration = Duration::from_millis(200);
/// The most events that are taken from the log at once.
const CHUNK: usize = 1_000;
/// How long a command may take to end once the view is left.
const STOP_MAX: Duration = Duration::from_secs(5);

/// What the loop hears.
enum Heard {
    Event(Event),
    Quit,
    Failed(Failure),
}

pub async fn top(session: &Session, at: Option<Position>) -> Result<Code, Failure> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        let failure = Failure::user("`crewlog top` needs a terminal as standard input and output");
        return Err(failure
            .hint(format!("a plan as text: {}", session.command("show PLAN")))
            .hint(format!("the crew as text: {}", session.command("agents"))));
    }
    let crew = crate::crew::session::open(session).await?;
    let views = Arc::new(Views::new(crew.clone(), true));
    let asked = Asked { at, plan: None };
    let shown = Shown::load(&views, &asked).await?;
    let folder = session.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let state = State::new(shown, asked, folder, session.terminal.has_colour);
    let signals = Signals::new()?;
    let screen = Screen::take()?;
    let view = View { session, crew, views, doing: JoinSet::new() };
    view.run(state, screen, signals).await
}

/// The view, and what it waits for.
struct View<'a> {
    session: &'a Session,
    crew: Arc<Crew>,
    views: Arc<Views>,
    doing: JoinSet<Event>,
}

impl View<'_> {
    async fn run(mut self, mut state: State, mut screen: Screen, signals: Signals) -> Result<Code, Failure> {
        let (sender, mut heard) = channel(16);
        read_keys(sender.clone());
        tokio::spawn(follow(self.crew.clone(), state.shown.head, sender.clone()));
        tokio::spawn(tick(self.crew.clone(), sender.clone()));
        tokio::spawn(until_signal(signals, sender));
        loop {
            screen.terminal.draw(|frame| draw::draw(&state, frame))?;
            let event = tokio::select! {
                Some(heard) = heard.recv() => match heard {
                    Heard::Event(event) => event,
                    Heard::Quit => break,
                    Heard::Failed(failure) => return Err(failure),
                },
                Some(done) = self.doing.join_next() => done.map_err(|error| Failure::user(format!("it failed: {error}")))?,
            };
            let actions = state.update(event);
            if actions.contains(&Action::Quit) {
                break;
            }
            actions.into_iter().for_each(|action| self.begin(action));
        }
        drop(screen);
        // A command that is under way is not left half done.
        let _ = timeout(STOP_MAX, async { while self.doing.join_next().await.is_some() {} }).await;
        Ok(Code::Done)
    }

    fn begin(&mut self, action: Action) {
        let (views, crew) = (self.views.clone(), self.crew.clone());
        match action {
            Action::Load(asked) => drop(self.doing.spawn(async move {
                match Shown::load(&views, &asked).await {
                    Ok(shown) => Event::Loaded(asked, Box::new(shown)),
                    Err(failure) => Event::NotLoaded(said(&failure)),
                }
            })),
            Action::Find { from, is_forward } => drop(self.doing.spawn(async move {
                let found = find(&views, from, is_forward).await;
                found.unwrap_or_else(|failure| Event::Performed { said: said(&failure), result: None })
            })),
            Action::Perform { words, yes } => {
                let (name, reply) = (self.session.person(), Default::default());
                let remote = Remote { crew, name, is_person: true, input: None, reply };
                let session = self.session.of_remote(remote, yes);
                self.doing.spawn(perform(session, words));
            }
            // It ends the loop.
            Action::Quit => {}
        }
    }
}

/// Carries out a command of the command line.
async fn perform(session: Session, words: Vec<String>) -> Event {
    let (line, is_read) = (words.join(" "), words.first().is_some_and(|word| word == "why"));
    let performed = match Cli::try_parse_from(["crewlog".to_owned()].into_iter().chain(words)) {
        Ok(cli) => crate::carry_out(&session, cli.command).await,
        Err(error) => Err(Failure::user(error.to_string())),
    };
    let reply = session.reply();
    let notes = reply.notes.join("; ");
    match performed {
        Ok(_) => {
            let result: Value = serde_json::from_slice(&reply.result).unwrap_or_default();
            Event::Performed { said: format!("done: {line}  {notes}"), result: is_read.then(|| format!("{result:#}")) }
        }
        Err(failure) => Event::Performed { said: format!("{}  {notes}", said(&failure)), result: None },
    }
}

async fn find(views: &Views, from: Position, is_forward: bool) -> Result<Event, Failure> {
    let marks = views.as_of(None).await?.marks().await?;
    let mut failures = marks.iter().filter(|mark| mark.kind == "failure").map(|mark| mark.position);
    let found = if is_forward { failures.find(|found| *found > from) } else { failures.rfind(|found| *found < from) };
    Ok(Event::Found(found))
}

/// A failure in one line.
fn said(failure: &Failure) -> String {
    let (message, hints) = (&failure.message, &failure.hints);
    hints.iter().fold(format!("error: {message}"), |said, hint| format!("{said}; {hint}"))
}

/// Reads the keyboard in a thread of its own, which ends with the program.
fn read_keys(to: Sender<Heard>) {
    std::thread::spawn(move || {
        loop {
            let heard = match keys::read() {
                Ok(keys::Event::Key(key)) if !key.is_release() => Heard::Event(Event::Key(key)),
                Ok(keys::Event::Paste(text)) => Heard::Event(Event::Paste(text)),
                Ok(keys::Event::Resize(..)) => Heard::Event(Event::Resized),
                Ok(_other) => continue,
                Err(error) => Heard::Failed(Failure::user(format!("the terminal cannot be read: {error}"))),
            };
            let is_last = matches!(heard, Heard::Failed(_));
            if to.blocking_send(heard).is_err() || is_last {
                return;
            }
        }
    });
}

/// Tells of new events after a position, until the log goes back or is closed.
async fn follow(crew: Arc<Crew>, after: Position, to: Sender<Heard>) {
    let mut log = pin!(crew.store().follow(&Query::all(), Start::After(after)).ready_chunks(CHUNK));
    while let Some(items) = log.next().await {
        let last = items.into_iter().filter_map(Result::err).find(Error::is_final);
        let heard = last.map_or(Heard::Event(Event::Grew), |error| Heard::Failed(error.into()));
        if to.send(heard).await.is_err() {
            return;
        }
        sleep(REST).await;
    }
}

async fn tick(crew: Arc<Crew>, to: Sender<Heard>) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for n_ticks in 1_usize.. {
        ticks.tick().await;
        let mut events = vec![Event::Tick(crew.store().now())];
        events.extend(n_ticks.is_multiple_of(TICKS_PER_LOAD).then_some(Event::Grew));
        for event in events {
            if to.send(Heard::Event(event)).await.is_err() {
                return;
            }
        }
    }
}

async fn until_signal(mut signals: Signals, to: Sender<Heard>) {
    signals.next().await;
    // The view is left already if nobody hears it.
    let _ = to.send(Heard::Quit).await;
}

#[cfg(test)]
mod tests;
