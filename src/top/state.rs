//! The state of `top` and its reactions to events: pure, without a terminal and without the log.

use std::collections::BTreeSet;

use crewlog_executors::crew::Kind;
use crewlog_mq::{Position, Timestamp};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::shown::{Asked, Panel, Row, Shown};
use crate::action::{Action, asks_words, of_need};
use crate::ui::failure::Failure;
use crate::views::NeedView;

/// The lines that a page key moves.
const PAGE: isize = 10;

const HELP: &str = "\
Tab, 1-6      the next panel, or one by its number
j k, arrows   move; in the plans this chooses whose tasks are shown
Enter         on what needs you: answer it, or run the command that settles it
              on a plan: its tasks; on anything else: everything about it
/  Esc        show only rows with a text; show all again
[  ]          one append back, one forward
{  }          the previous failure, the next one
L             back to the present
q             quit

A past position is framed, and nothing can be changed there. Times of day are in UTC.";

/// The meaning of the keys.
#[derive(Debug, Default)]
pub enum Mode {
    #[default]
    Browse,
    /// Type the filter of the panel's rows.
    Filter,
    /// Type the answer to a question or the words for another action, or y or n to a request for permission.
    Answer { need: NeedView, text: String },
    /// Agree to the action that settles it.
    Confirm { need: NeedView },
    /// Read a text.
    Read { title: &'static str, text: String, line: u16 },
}

/// An event for the view.
#[derive(Debug)]
pub enum Event {
    Key(KeyEvent),
    Tick(Timestamp),
    /// The log has new events.
    Grew,
    Loaded(Asked, Box<Shown>),
    NotLoaded(String),
    /// The mark that was searched for.
    Found(Option<Position>),
    /// The message of a command.
    Performed(String),
}

/// A request of the view.
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    Load(Asked),
    Execute(Box<Action>),
    /// Find the next failure after a position, or the last one before it.
    Find {
        from: Position,
        is_forward: bool,
    },
    Quit,
}

/// The state of the view.
#[derive(Default)]
pub struct State {
    pub shown: Shown,
    pub asked: Asked,
    pub focus: Panel,
    pub mode: Mode,
    /// The last message.
    pub note: String,
    /// The name of the working directory.
    pub folder: String,
    pub has_colour: bool,
    /// True if the bell has to ring: an item is new.
    pub rings: bool,
    /// The items of the present.
    waiting: BTreeSet<(Kind, String)>,
    now: Timestamp,
    /// By panel: the index and key of the chosen row.
    chosen: [(usize, Option<String>); 6],
    filters: [String; 6],
    is_loading: bool,
    /// True if the log has newer events than those shown.
    is_stale: bool,
}

impl State {
    pub fn new(shown: Shown, asked: Asked, folder: String, has_colour: bool) -> Self {
        let mut state = Self { asked, folder, has_colour, ..Self::default() };
        state.take(shown);
        state.rings = false;
        state
    }

    pub fn update(&mut self, event: Event) -> Vec<Request> {
        match event {
            Event::Key(key) => return self.key(key),
            Event::Tick(now) => {
                self.now = now;
                return if self.is_stale { self.load() } else { Vec::new() };
            }
            Event::Grew => return self.load(),
            Event::Loaded(asked, shown) => {
                self.is_loading = false;
                if asked != self.asked {
                    return self.load();
                }
                self.take(*shown);
            }
            Event::NotLoaded(note) => {
                (self.is_loading, self.is_stale) = (false, true);
                self.note = note;
            }
            Event::Found(Some(position)) => return self.go(Some(position)),
            Event::Found(None) => self.note = "there is no other failure on that side".to_owned(),
            Event::Performed(said) => self.note = said,
        }
        Vec::new()
    }

    pub fn is_past(&self) -> bool {
        self.asked.at.is_some()
    }

    /// The rows of a panel that match its filter.
    pub fn rows(&self, panel: Panel) -> Vec<Row> {
        let now = if self.is_past() { self.shown.time } else { self.now };
        let mut rows = self.shown.rows(panel, now);
        rows.retain(|row| row.has(self.filter(panel)));
        rows
    }

    pub fn filter(&self, panel: Panel) -> &str {
        &self.filters[panel as usize]
    }

    /// The index of the chosen row: the same item as before, if it is still there.
    pub fn chosen(&self, panel: Panel, rows: &[Row]) -> Option<usize> {
        let (place, key) = &self.chosen[panel as usize];
        let found = key.as_ref().and_then(|key| rows.iter().position(|row| row.key == *key));
        found.or((!rows.is_empty()).then(|| (*place).min(rows.len().saturating_sub(1))))
    }

    fn take(&mut self, shown: Shown) {
        if !self.is_past() {
            let waiting: BTreeSet<_> = shown.needs.iter().map(|need| (need.kind, need.id.clone())).collect();
            self.rings |= !waiting.is_subset(&self.waiting);
            self.waiting = waiting;
        }
        self.shown = shown;
        self.now = self.now.max(self.shown.time);
        // A plan that does not exist yet at a past position stays selected.
        self.asked.plan = self.asked.plan.take().or_else(|| self.shown.plan.clone());
        self.chosen[Panel::Plans as usize].1.clone_from(&self.shown.plan);
        for panel in Panel::ALL {
            let rows = self.rows(*panel);
            let Some(place) = self.chosen(*panel, &rows) else { continue };
            self.choose(*panel, place, &rows);
        }
    }

    fn choose(&mut self, panel: Panel, place: usize, rows: &[Row]) {
        // The newest event stays chosen as the log grows.
        let is_newest = panel == Panel::Log && place == 0;
        self.chosen[panel as usize] = (place, Some(rows[place].key.clone()).filter(|_| !is_newest));
    }

    fn load(&mut self) -> Vec<Request> {
        self.is_stale = self.is_loading;
        if self.is_loading {
            return Vec::new();
        }
        self.is_loading = true;
        vec![Request::Load(self.asked.clone())]
    }

    fn go(&mut self, at: Option<Position>) -> Vec<Request> {
        self.asked.at = at;
        self.load()
    }

    fn key(&mut self, key: KeyEvent) -> Vec<Request> {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return vec![Request::Quit];
        }
        match std::mem::take(&mut self.mode) {
            Mode::Browse => return self.browse(key.code),
            Mode::Filter => self.type_filter(key.code),
            Mode::Answer { need, .. } | Mode::Confirm { need } if key.code == KeyCode::Tab => self.ask(need, 1),
            Mode::Answer { need, text } => return self.answer(key, need, text),
            Mode::Confirm { need } => match key.code {
                KeyCode::Enter | KeyCode::Char('y') => return self.settle(&need, 0, ""),
                KeyCode::Esc | KeyCode::Char('n' | 'q') => {}
                _other => self.mode = Mode::Confirm { need },
            },
            Mode::Read { title, text, line } => {
                let line = match key.code {
                    KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q' | '?') => return Vec::new(),
                    KeyCode::Up | KeyCode::Char('k') => line.saturating_sub(1),
                    KeyCode::Down | KeyCode::Char('j') => line.saturating_add(1),
                    _other => line,
                };
                let last = u16::try_from(text.lines().count()).unwrap_or(u16::MAX);
                self.mode = Mode::Read { title, text, line: line.min(last) };
            }
        }
        Vec::new()
    }

    fn browse(&mut self, code: KeyCode) -> Vec<Request> {
        self.note.clear();
        match code {
            KeyCode::Char('q') => return vec![Request::Quit],
            KeyCode::Tab | KeyCode::Right => self.focus = self.focus.moved(1),
            KeyCode::BackTab | KeyCode::Left => self.focus = self.focus.moved(Panel::ALL.len() - 1),
            KeyCode::Char(digit @ '1'..='6') => self.focus = Panel::ALL[digit as usize - '1' as usize],
            KeyCode::Down | KeyCode::Char('j') => return self.step(1),
            KeyCode::Up | KeyCode::Char('k') => return self.step(-1),
            KeyCode::PageDown => return self.step(PAGE),
            KeyCode::PageUp => return self.step(-PAGE),
            KeyCode::Enter => return self.open(),
            KeyCode::Esc => self.filters[self.focus as usize].clear(),
            KeyCode::Char('/') => self.mode = Mode::Filter,
            KeyCode::Char('?') => self.mode = Mode::Read { title: "Help", text: HELP.to_owned(), line: 0 },
            KeyCode::Char('[') if self.shown.before.is_some() => return self.go(self.shown.before),
            KeyCode::Char(']') if self.is_past() && self.shown.at < self.shown.head => {
                return self.go(Some(Position(self.shown.at.0 + 1)));
            }
            KeyCode::Char('L') if self.is_past() => return self.go(None),
            KeyCode::Char('}') => return vec![Request::Find { from: self.shown.at, is_forward: true }],
            KeyCode::Char('{') => {
                // An append may have several failures; without a position, a failure at the head counts as before it.
                let from = self.asked.at.unwrap_or(Position(self.shown.at.0 + 1));
                return vec![Request::Find { from, is_forward: false }];
            }
            _other => {}
        }
        Vec::new()
    }

    /// Asks for the words or the consent of the first action. `by` moves actions to the end first.
    fn ask(&mut self, mut need: NeedView, by: usize) {
        let is_answered = need.kind == Kind::Permission || !need.choices.is_empty();
        let by = if is_answered { 0 } else { by };
        need.actions.rotate_left(by);
        need.commands.rotate_left(by);
        let is_typed = is_answered || need.actions.first().is_some_and(asks_words);
        self.mode = if is_typed { Mode::Answer { need, text: String::new() } } else { Mode::Confirm { need } };
    }

    /// Moves the choice in the panel. Choosing a plan shows its tasks.
    fn step(&mut self, by: isize) -> Vec<Request> {
        let rows = self.rows(self.focus);
        let Some(place) = self.chosen(self.focus, &rows) else { return Vec::new() };
        self.choose(self.focus, place.saturating_add_signed(by).min(rows.len() - 1), &rows);
        let (_, key) = &self.chosen[self.focus as usize];
        if self.focus != Panel::Plans || *key == self.asked.plan {
            return Vec::new();
        }
        self.asked.plan.clone_from(key);
        self.load()
    }

    fn open(&mut self) -> Vec<Request> {
        let rows = self.rows(self.focus);
        let Some(place) = self.chosen(self.focus, &rows).map(|chosen| rows[chosen].place) else { return Vec::new() };
        let need = self.shown.needs.get(place).filter(|_| self.focus == Panel::Needs && !self.is_past()).cloned();
        match need.filter(|need| !need.actions.is_empty()) {
            Some(need) => self.ask(need, 0),
            None if self.focus == Panel::Plans => self.focus = Panel::Tasks,
            None => {
                let text = self.shown.details(self.focus, place).unwrap_or_default();
                self.mode = Mode::Read { title: "Details", text, line: 0 };
            }
        }
        Vec::new()
    }

    fn type_filter(&mut self, code: KeyCode) {
        let filter = &mut self.filters[self.focus as usize];
        match code {
            KeyCode::Enter => return,
            KeyCode::Esc => return filter.clear(),
            KeyCode::Backspace => drop(filter.pop()),
            KeyCode::Char(typed) => filter.push(typed),
            _other => {}
        }
        self.mode = Mode::Filter;
    }

    fn answer(&mut self, key: KeyEvent, need: NeedView, mut text: String) -> Vec<Request> {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return Vec::new(),
            // A permission is granted by its first action, and refused by its second.
            KeyCode::Char('y') if need.kind == Kind::Permission => return self.settle(&need, 0, ""),
            KeyCode::Char('n') if need.kind == Kind::Permission => return self.settle(&need, 1, ""),
            _other if need.kind == Kind::Permission => {}
            KeyCode::Enter if text.trim().is_empty() => self.note = "the answer is empty".to_owned(),
            KeyCode::Enter => {
                let chosen = need.choices.iter().position(|choice| choice.eq_ignore_ascii_case(text.trim()));
                match chosen.or_else(|| need.actions.iter().position(asks_words)) {
                    Some(place) => return self.settle(&need, place, &text),
                    None => self.note = format!("one of: {}", need.choices.join(", ")),
                }
            }
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Char('u') if is_control => text.clear(),
            KeyCode::Char(typed) if !is_control => text.push(typed),
            _other => {}
        }
        self.mode = Mode::Answer { need, text };
        Vec::new()
    }

    /// Executes an action of an item, with the person's own words.
    fn settle(&mut self, need: &NeedView, place: usize, words: &str) -> Vec<Request> {
        let Some(order) = need.actions.get(place).filter(|_| !self.is_past()) else { return Vec::new() };
        match of_need(order, words) {
            Ok(action) => {
                self.note = "sent".to_owned();
                vec![Request::Execute(Box::new(action))]
            }
            Err(Failure { message, .. }) => {
                self.note = message;
                Vec::new()
            }
        }
    }
}
