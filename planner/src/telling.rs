//! What the executor of a task is told: all that belongs to the task, and for an agent what came before it, within the
//! plan's token budget.
//!
//! It never shortens the task, its notes or its answers, and looks at no more of a large plan than it can tell.

use crate::brevity::{fair_limit, fits, in_a_line, n_chars, shorten};
use crate::condense::{Sort, condense};
use crate::context::is_mark;
use crate::event::{Answered, Budget, Parameters, Profile, TaskResult, TaskStatus, Undone};
use crate::past::is_decision;
use crate::plan::{AttachmentKind, NodeKind};
use crate::prompt;
use crate::state::{PlannerState, Task};

/// The most open tasks, and the most open questions, that are told.
pub const OPEN_TOLD_MAX: usize = 100;

/// Of what the task itself leaves of the budget, results take at most this many parts ...
const RESULT_PARTS: usize = 2;
/// ... of so many.
const PARTS: usize = 3;
/// A result is told when there is room for this many characters of it and its heading.
const RESULT_CHARS_MIN: usize = 240;
/// What the heading of a result says of its task.
const HEADING_CHARS_MAX: usize = 120;
/// What a line on an open task or question says of it.
const OPEN_CHARS_MAX: usize = 120;
/// Less room than this for the context and it is left out.
const CONTEXT_CHARS_MIN: usize = 100;

impl PlannerState {
    /// What the executor of a task is told. Of tasks without a command, which agents do, the length of
    /// [`prompt::prompt`] is at most the token budget, or what the task itself needs if that is more.
    #[must_use]
    pub fn parameters(&self, task: &Task) -> Parameters {
        let mut answers = self.told.get(&task.plan.id).cloned().unwrap_or_default();
        answers.sort_unstable();
        let mut parameters = Parameters {
            description: task.plan.description.clone(),
            command: task.plan.command.clone(),
            notes: task.plan.notes.clone(),
            attachments: task.plan.attachments.clone(),
            answers: answers.iter().filter_map(|place| self.answered(*place)).collect(),
            earlier: Vec::new(),
            results: Vec::new(),
            context: String::new(),
            system_prompt: String::new(),
            assignee: task.plan.assignee.clone(),
            files: task.plan.files.clone(),
            rerun_safe: task.plan.rerun_safe,
            timeout_ms: task.plan.timeout_ms,
            needs: self.needs(task),
            is_timed: self.config.budget.duration_ms.is_some(),
            budget: Budget::default(),
            counts_tokens: self.config.budget.tokens.is_some() && task.plan.command.is_none(),
            folder: self.config.folder.clone(),
            sub_plan: task.plan.sub_plan.clone(),
            request: task.plan.request.clone(),
            undoes: self.undone_by(task),
        };
        if task.plan.command.is_none() {
            parameters.system_prompt.clone_from(&self.config.system_prompt);
            let budget = self.gauges.n_chars(task.plan.assignee.as_deref(), self.config.token_budget);
            let mut left = budget.saturating_sub(n_chars(&prompt::prompt(&parameters)));
            if let Some(thread) = &task.thread {
                let room = (left / PARTS).saturating_sub(n_chars(&prompt::earlier_section(&[])));
                parameters.earlier = thread.tell(task.plan.id, room);
                if !parameters.earlier.is_empty() {
                    left -= n_chars(&prompt::earlier_section(&parameters.earlier));
                }
            }
            let shown = self.results_for(task, left / PARTS * RESULT_PARTS, &parameters.answers);
            let taken = shown.iter().map(|(_, result)| n_chars(&prompt::result_section(result))).sum::<usize>();
            let room = (left - taken).saturating_sub(n_chars(&prompt::context_section("")));
            let (tasks, results) = shown.into_iter().unzip::<_, _, Vec<&Task>, Vec<TaskResult>>();
            if room >= CONTEXT_CHARS_MIN {
                parameters.context = self.context_for(task, &self.past_without(&tasks, &answers), room);
            }
            parameters.results = results;
        }
        parameters
    }

    /// Of a task that undoes another which a plan of its own carried out, and has no command for that: the other.
    fn undone_by(&self, task: &Task) -> Option<Undone> {
        let undone = self.task(task.plan.compensates.filter(|_| task.plan.command.is_none())?)?;
        let (task, attempt) = (undone.plan.id, undone.attempts);
        undone.plan.sub_plan.is_some().then_some(Undone { task, attempt })
    }

    /// What a task without a command reads: images, and the files and links of a task that looks at what is there already,
    /// unless an earlier task names them too and may make them. A command says itself what it lacks.
    fn needs(&self, task: &Task) -> Vec<String> {
        if task.plan.command.is_some() {
            return Vec::new();
        }
        let reads = match task.plan.kind {
            NodeKind::Analysis | NodeKind::Retrieval | NodeKind::Refactor => true,
            NodeKind::Clarification
            | NodeKind::ToolCall
            | NodeKind::Processing
            | NodeKind::UnitTest
            | NodeKind::CodeImplementation => false,
        };
        let needs = task.plan.attachments.iter().filter_map(|attachment| match &attachment.kind {
            AttachmentKind::ImageRef(reference) | AttachmentKind::ScreenshotRef(reference) => Some(reference),
            AttachmentKind::FileRef(reference) | AttachmentKind::Link(reference) if reads => Some(reference),
            AttachmentKind::FileRef(_) | AttachmentKind::Link(_) | AttachmentKind::EmbeddingRef(_) => None,
        });
        // A glob may match nothing, and what has neither a slash nor a dot is no path but a name in some store.
        let is_place =
            |reference: &&String| reference.contains(['/', '.']) && !reference.contains(['*', '?', '[', '{']);
        let needs = needs.filter(|reference| is_link(reference) || is_place(reference));
        needs.filter(|reference| !self.is_named_before(task, reference)).cloned().collect()
    }

    fn is_named_before(&self, task: &Task, reference: &str) -> bool {
        let before = self.tasks.iter().take_while(|before| before.plan.id < task.plan.id);
        let mut named = before.flat_map(|before| &before.plan.attachments);
        named.any(|attachment| matches!(&attachment.kind, AttachmentKind::FileRef(known) | AttachmentKind::ImageRef(known) | AttachmentKind::ScreenshotRef(known) if known == reference))
    }

    fn answered(&self, place: usize) -> Option<Answered> {
        let question = &self.questions[place];
        let answer = question.answer.clone()?;
        Some(Answered { task: question.task, question: question.question.clone(), answer })
    }

    /// What came of the tasks that this one depends on; of very many the last. What is told as an answer is not told
    /// again.
    fn results_for(&self, task: &Task, room: usize, answers: &[Answered]) -> Vec<(&Task, TaskResult)> {
        let before = task.plan.depends_on.iter().rev().filter_map(|before| self.task(before.task));
        let done = before.filter(|before| {
            let is_answer = |answered: &Answered| {
                answered.task == before.plan.id && before.result.as_ref() == Some(&answered.answer)
            };
            before.status == TaskStatus::Completed && !answers.iter().any(is_answer)
        });
        let mut shown = done
            .take(room / RESULT_CHARS_MIN)
            .map(|before| {
                let first = before.plan.description.lines().next().unwrap_or_default();
                let description = in_a_line(first, HEADING_CHARS_MAX).into_owned();
                (before, TaskResult { task: before.plan.id, description, result: String::new() })
            })
            .collect::<Vec<_>>();
        shown.reverse();
        let headings = shown.iter().map(|(_, result)| n_chars(&prompt::result_section(result))).sum::<usize>();
        let room = room.saturating_sub(headings);
        let lengths = shown.iter().map(|(before, _)| n_chars_up_to(result_of(before), room));
        let limit = fair_limit(lengths, room);
        for (before, result) in &mut shown {
            result.result = told_of(before, limit.min(room), self.config.profile);
        }
        shown
    }

    /// What the plan is about, what has been done, and what is open, in at most `room` characters.
    fn context_for(&self, task: &Task, past: &[&str], room: usize) -> String {
        let parts = [self.about(room), done(past), self.to_do(task, room), self.asked(room)];
        let parts = parts.into_iter().filter(|part| !part.lines.is_empty()).collect::<Vec<_>>();
        let room = room.saturating_sub(parts.iter().map(|part| n_chars(part.title) + 2).sum());
        let limit = fair_limit(parts.iter().map(Part::n_chars), room);
        let told = parts.into_iter().filter_map(|part| part.tell(limit));
        told.collect::<Vec<_>>().join("\n")
    }

    /// What of the text is no task.
    fn about(&self, room: usize) -> Part {
        let texts = self.title.iter().chain(&self.context).map(|text| text.trim()).filter(|text| !text.is_empty());
        let mut lines = Vec::new();
        let mut left = room;
        for text in texts {
            let line = shorten(text, left);
            left = left.saturating_sub(n_chars(&line) + 1);
            lines.push(Line { text: line, is_first: false });
            if left == 0 {
                break;
            }
        }
        Part { title: "", lines, n_more: 0, keeps: Keeps::Beginning }
    }

    /// The tasks that have not ended, those after this one before the others.
    fn to_do(&self, task: &Task, room: usize) -> Part {
        let index = self.index(task.plan.id).unwrap_or_default();
        let open = &self.graph.open;
        let places = open.range(index..).chain(open.range(..index)).copied().filter(|place| *place != index);
        let lines = places.take(OPEN_TOLD_MAX).map(|place| {
            let open = &self.tasks[place];
            let name = open.plan.name();
            let name = in_a_line(&name, OPEN_CHARS_MAX);
            let description = in_a_line(&open.plan.description, OPEN_CHARS_MAX);
            (place, format!("- {name} {}: {description}", open.status.as_str()))
        });
        let mut lines = with_room(lines, room);
        lines.sort_unstable_by_key(|(place, _)| *place);
        let n_more = open.len() - lines.len() - usize::from(open.contains(&index));
        let lines = lines.into_iter().map(|(_, text)| Line { text, is_first: false });
        Part { title: "Still to be done, and not by you:\n", lines: lines.collect(), n_more, keeps: Keeps::First }
    }

    fn asked(&self, room: usize) -> Part {
        let lines = self.open_questions().take(OPEN_TOLD_MAX).map(|question| {
            let asker = self.task(question.task).map_or_else(String::new, |asker| asker.plan.name());
            let asker = in_a_line(&asker, OPEN_CHARS_MAX);
            let text = in_a_line(&question.question, OPEN_CHARS_MAX);
            (question.id, format!("- {} of {asker}: {text}", question.id))
        });
        let lines = with_room(lines, room).into_iter().map(|(_, text)| Line { text, is_first: false });
        let lines = lines.collect::<Vec<_>>();
        let n_more = self.open.len() - lines.len();
        Part { title: "Not answered yet:\n", lines, n_more, keeps: Keeps::First }
    }
}

fn is_link(reference: &str) -> bool {
    ["http://", "https://", "file:"].iter().any(|scheme| reference.starts_with(scheme))
}

/// The first lines, until there is no more room.
fn with_room<P>(lines: impl Iterator<Item = (P, String)>, room: usize) -> Vec<(P, String)> {
    let mut left = room;
    let fitting = lines.map_while(|(place, line)| {
        left = left.checked_sub(n_chars(&line) + 1)?;
        Some((place, line))
    });
    fitting.collect()
}

/// What has happened, without what is told itself.
fn done(past: &[&str]) -> Part {
    let lines = past.iter().filter(|line| !is_mark(line));
    let lines = lines.map(|line| Line { text: format!("- {line}"), is_first: is_decision(line) });
    let keeps = Keeps::Last { is_more: past.iter().any(|line| is_mark(line)) };
    Part { title: "Done and decided so far:\n", lines: lines.collect(), n_more: 0, keeps }
}

fn result_of(task: &Task) -> &str {
    task.result.as_deref().unwrap_or_default().trim_end()
}

/// The result of a task in at most `room` characters. Where it is longer, it says where all of it is.
fn told_of(task: &Task, room: usize, profile: Profile) -> String {
    let result = result_of(task);
    if fits(result, room) {
        return result.to_owned();
    }
    let reference =
        format!("\n(from {} characters; the log has the whole result of task {})", n_chars(result), task.plan.id);
    match room.checked_sub(n_chars(&reference)) {
        Some(room) if room >= RESULT_CHARS_MIN / 2 => {
            condense(result, room, Sort::Result(profile)).into_owned() + &reference
        }
        Some(_) | None => shorten(result, room),
    }
}

/// The characters of a text, or more than `chars_max` when it has more.
fn n_chars_up_to(text: &str, chars_max: usize) -> usize {
    const BYTES_PER_CHAR_MAX: usize = 4;
    if text.len() / BYTES_PER_CHAR_MAX > chars_max { chars_max + 1 } else { n_chars(text) }
}

/// A part of the context.
struct Part {
    title: &'static str,
    lines: Vec<Line>,
    /// Beside the lines.
    n_more: usize,
    keeps: Keeps,
}

struct Line {
    text: String,
    /// Told before the other lines of its part.
    is_first: bool,
}

/// Which lines of a part are told when not all can be.
enum Keeps {
    /// The first, and of the next what has room.
    Beginning,
    /// The first.
    First,
    /// The last.
    Last {
        /// More has been left out before.
        is_more: bool,
    },
}

impl Part {
    fn n_chars(&self) -> usize {
        self.lines.iter().map(|line| n_chars(&line.text) + 1).sum::<usize>() + n_chars(&self.mark(self.n_more))
    }

    /// The line for what is left out, and its end.
    fn mark(&self, n_left_out: usize) -> String {
        match self.keeps {
            Keeps::Last { is_more } if is_more || n_left_out > 0 => {
                "(more has happened than is told here)\n".to_owned()
            }
            Keeps::First if n_left_out > 0 => format!("({n_left_out} more are not told here)\n"),
            Keeps::Beginning | Keeps::First | Keeps::Last { .. } => String::new(),
        }
    }

    /// The part with its title, where its lines take at most `limit` characters.
    fn tell(self, limit: usize) -> Option<String> {
        let n_lines = self.lines.len();
        let is_whole = self.n_chars() <= limit;
        let mut left = if is_whole { limit } else { limit.checked_sub(n_chars(&self.mark(self.n_more + n_lines)))? };
        let mut order = (0..n_lines).collect::<Vec<_>>();
        if let Keeps::Last { .. } = self.keeps {
            order.reverse();
        }
        order.sort_by_key(|place| !self.lines[*place].is_first);
        let mut told = vec![None; n_lines];
        for place in order {
            let line = &self.lines[place].text;
            let Some(less) = left.checked_sub(n_chars(line) + 1) else {
                if let Keeps::Beginning = self.keeps {
                    told[place] = Some(shorten(line, left.saturating_sub(1))).filter(|line| !line.is_empty());
                }
                break;
            };
            left = less;
            told[place] = Some(line.clone());
        }
        let told = told.into_iter().flatten().collect::<Vec<_>>();
        if told.is_empty() {
            return None;
        }
        let mark = self.mark(self.n_more + n_lines - told.len());
        let lines = told.into_iter().fold(String::new(), |text, line| text + &line + "\n");
        Some(match self.keeps {
            Keeps::Last { .. } => format!("{}{mark}{lines}", self.title),
            Keeps::Beginning | Keeps::First => format!("{}{lines}{mark}", self.title),
        })
    }
}
