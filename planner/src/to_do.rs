//! What is still to be done in a plan, as the lines that would be told of it. Which of them are told is for
//! [`crate::telling`].

use std::ops::Range;

use crate::brevity::{in_a_line, n_chars};
use crate::event::TaskStatus;
use crate::parts::Lines;
use crate::plan::TaskPlan;

/// What a line says of a task, or of its name.
pub(crate) const OPEN_CHARS_MAX: usize = 120;

/// A line for each task of a plan, most of them next to each other in one text. There are none in a plan that tells none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ToDo {
    /// Each line as of a task that is planned.
    text: String,
    lines: Vec<Line>,
    /// Bytes of the text that no line takes any more.
    n_unused: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    start: usize,
    end: usize,
    n_chars: usize,
    /// Where the status stands.
    status_at: usize,
    status: TaskStatus,
}

const PLANNED: &str = TaskStatus::Planned.as_str();

impl ToDo {
    pub(crate) fn of<'t>(tasks: impl Iterator<Item = (&'t TaskPlan, TaskStatus)>) -> Self {
        let mut to_do = Self::default();
        for (index, (task, status)) in tasks.enumerate() {
            to_do.define(index, task, status);
        }
        to_do
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// A task has another definition, or is the next.
    pub(crate) fn define(&mut self, index: usize, task: &TaskPlan, status: TaskStatus) {
        let start = self.text.len();
        self.text.push_str("- ");
        self.text.push_str(&in_a_line(&task.name(), OPEN_CHARS_MAX));
        self.text.push(' ');
        let status_at = self.text.len();
        self.text.push_str(PLANNED);
        self.text.push_str(": ");
        self.text.push_str(&in_a_line(&task.description, OPEN_CHARS_MAX));
        self.text.push('\n');
        let end = self.text.len();
        let line = Line { start, end, n_chars: n_chars(&self.text[start..]), status_at, status };
        match self.lines.get_mut(index) {
            Some(known) => {
                self.n_unused += known.end - known.start;
                *known = line;
            }
            None => self.lines.push(line),
        }
        if self.n_unused > self.text.len() / 2 {
            self.tidy();
        }
    }

    fn tidy(&mut self) {
        let mut text = String::with_capacity(self.text.len() - self.n_unused);
        for line in &mut self.lines {
            let start = text.len();
            text.push_str(&self.text[line.start..line.end]);
            line.status_at = start + line.status_at - line.start;
            (line.start, line.end) = (start, text.len());
        }
        (self.text, self.n_unused) = (text, 0);
    }

    pub(crate) fn change(&mut self, index: usize, status: TaskStatus) {
        if let Some(line) = self.lines.get_mut(index) {
            line.status = status;
        }
    }

    /// The characters of a line, its end included.
    fn n_chars(&self, index: usize) -> usize {
        let line = &self.lines[index];
        line.n_chars - PLANNED.len() + line.status.as_str().len()
    }

    /// The lines of tasks, in the order in which they are given, until there is no more room.
    pub(crate) fn with_room(&self, places: impl Iterator<Item = usize>, room: usize) -> Told<'_> {
        let (mut told, mut n_chars) = (Vec::with_capacity(places.size_hint().1.unwrap_or(0)), 0);
        for place in places {
            let more = self.n_chars(place);
            if n_chars + more > room {
                break;
            }
            n_chars += more;
            told.push(place);
        }
        Told { to_do: self, places: told, n_chars }
    }
}

/// Lines of some tasks.
pub(crate) struct Told<'a> {
    to_do: &'a ToDo,
    pub(crate) places: Vec<usize>,
    pub(crate) n_chars: usize,
}

impl Lines for Told<'_> {
    fn n_places(&self) -> usize {
        self.places.len()
    }

    fn n_chars_at(&self, place: usize) -> Option<usize> {
        Some(self.to_do.n_chars(self.places[place]))
    }

    fn write(&self, places: Range<usize>, text: &mut String) {
        let ToDo { text: all, lines, .. } = self.to_do;
        // What stands next to each other is copied at once.
        let mut next = 0..0;
        for line in self.places[places].iter().map(|place| &lines[*place]) {
            if line.status == TaskStatus::Planned {
                if line.start != next.end {
                    text.push_str(&all[next]);
                    next = line.start..line.start;
                }
                next.end = line.end;
                continue;
            }
            text.push_str(&all[next]);
            next = 0..0;
            text.push_str(&all[line.start..line.status_at]);
            text.push_str(line.status.as_str());
            text.push_str(&all[line.status_at + PLANNED.len()..line.end]);
        }
        text.push_str(&all[next]);
    }
}
