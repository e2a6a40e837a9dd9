//! The brief for a successor of an agent: its tasks with where to continue, the files that it holds, the refusals that it met,
//! and its questions. It follows from the log, so it is there after a crash and for a program of another vendor.

use std::fmt::Write as _;

use crewlog_mq::Timestamp;
use crewlog_planner::crew::leases::Leases;
use crewlog_planner::lifecycle::State;
use crewlog_planner::prompt::headline;
use crewlog_planner::state::Task;
use crewlog_planner::view::PlanView;
use serde::Serialize;

use super::Refusal;
use super::board::{TaskDetails, summary};
use super::state::Crew;
use super::tasks::observing;
use crate::text::{quoted_line, quoted_list};

/// At this use of its context, in percent, an agent should write down where to continue.
pub const CONTEXT_FULL: u8 = 80;
/// The advice for an agent whose context is nearly full.
pub const WHEN_FULL: &str = "your context is nearly full: say with update_task where to continue (next_step), or hand over your work \
                             with handoff; a successor gets all of it by get_brief";
/// The most tasks, results of tasks before them, refusals and questions.
const TASKS_MAX: usize = 5;
const RESULTS_MAX: usize = 10;
const REFUSALS_MAX: usize = 10;
const QUESTIONS_MAX: usize = 10;
/// The most files of a task, and tasks that it waits for.
const LISTED_MAX: usize = 10;
/// The most characters of another agent's words.
const WORDS_CHARS_MAX: usize = 300;
const NOTES_CHARS_MAX: usize = 2_000;

/// Everything that a successor must know.
#[derive(Debug, Clone, Serialize)]
pub struct Brief {
    /// The agent; `None` for a task that nobody has worked on.
    pub agent: Option<String>,
    /// Its tasks, or the wanted one.
    pub tasks: Vec<TaskBrief>,
    /// Its live leases: numbers, files, reasons.
    pub leases: Vec<(u64, String, String)>,
    /// The files that it was refused, and their holders.
    pub refused: Vec<(String, String)>,
    /// Its open questions, and answers to earlier ones.
    pub questions: Vec<(u64, String, Option<String>)>,
    /// The number of its unread messages.
    pub n_unread: usize,
}

/// A task of a brief.
#[derive(Debug, Clone, Serialize)]
pub struct TaskBrief {
    /// The task.
    #[serde(flatten)]
    pub details: TaskDetails,
    /// The last remark of the agent that worked on it.
    pub note: Option<String>,
    /// The results of the tasks that it waited for.
    pub before: Vec<(String, String)>,
}

impl Crew {
    /// The brief of an agent, by its name, or of a task: `PLAN/NAME`.
    ///
    /// # Errors
    /// [`Refusal::NoTask`] if there is neither.
    pub async fn brief(&self, of: &str) -> Result<Brief, Refusal> {
        let is_agent = self.agents().await?.get(of).is_some();
        let (tasks, agent) = match is_agent {
            true => (self.briefs_of(of).await?, Some(of.to_owned())),
            false => self.brief_of_task(of).await.map_err(|refusal| match refusal {
                Refusal::NoTask(_) => Refusal::NoTask(format!("there is no agent and no open task {of:?}")),
                other => other,
            })?,
        };
        let Some(name) = agent else {
            return Ok(Brief { agent: None, tasks, leases: vec![], refused: vec![], questions: vec![], n_unread: 0 });
        };
        let now = self.store.now();
        let (leases, refused) = {
            let leases = self.leases().await?;
            (held(&leases, &name, now), leases.refused_to(&name).take(REFUSALS_MAX).collect())
        };
        let questions = {
            let asks = self.asks().await?;
            let answered = asks
                .answers_to(&name)
                .map(|(number, ask, answer)| (number, ask.text.clone(), Some(answer.text.clone())));
            let open = asks.open().filter(|(_, open)| open.ask.agent == name);
            answered.chain(open.map(|(number, open)| (number, open.ask.text.clone(), None))).collect::<Vec<_>>()
        };
        let questions = questions.into_iter().rev().take(QUESTIONS_MAX).rev().collect();
        let n_unread = self.messages().await?.unread(&name).count();
        Ok(Brief { agent: Some(name), tasks, leases, refused, questions, n_unread })
    }

    /// The tasks that an agent holds or was lost with.
    async fn briefs_of(&self, agent: &str) -> Result<Vec<TaskBrief>, Refusal> {
        let ids: Vec<_> = {
            let board = self.board().await?;
            let views = board.views(&self.project);
            let is_own =
                |view: &PlanView, task: &Task| !task.status.is_end() && worker(view, task).as_deref() == Some(agent);
            let of = views.flat_map(|(plan, view)| {
                let own = view.state().tasks.iter().filter(|task| is_own(view, task));
                own.map(|task| view.state().target(plan, task.plan.id)).collect::<Vec<_>>()
            });
            of.take(TASKS_MAX).collect()
        };
        let mut briefs = Vec::new();
        for id in ids {
            briefs.push(self.brief_of_task(&id).await?.0.remove(0));
        }
        Ok(briefs)
    }

    async fn brief_of_task(&self, id: &str) -> Result<(Vec<TaskBrief>, Option<String>), Refusal> {
        let details = self.task(id).await?;
        let (holders, board) = (self.holders().await?, self.board().await?);
        let (plan, task) = self.find(&board, id)?;
        let view = board.view(&plan).ok_or(Refusal::Busy)?;
        let (found, state) = (view.state().task(task).ok_or(Refusal::Busy)?, view.state());
        let before = found.plan.depends_on.iter().filter_map(|on| state.task(on.task));
        let before = before.filter_map(|on| {
            let summary = observing(&holders, |observed| summary(&plan, view, on, observed));
            let result = view.result(on).filter(|_| summary.state == State::Done)?;
            Some((summary.id, headline(result)))
        });
        let before = before.take(RESULTS_MAX).collect();
        let note = view.times(task).claim.progress.and_then(|progress| progress.note);
        Ok((vec![TaskBrief { details, note, before }], worker(view, found)))
    }
}

/// The agent that works on a task, or the last one that did.
fn worker(view: &PlanView, task: &Task) -> Option<String> {
    let id = task.plan.id;
    let times = view.times(id);
    let holder = times.claim.holder.as_ref().or(times.claim.interrupted.as_ref()).or(times.past.as_ref());
    holder.map(|holder| holder.executor.name.clone())
}

fn held(leases: &Leases, agent: &str, now: Timestamp) -> Vec<(u64, String, String)> {
    let live = leases.of_agent(agent).filter(|(_, lease)| now <= lease.until);
    live.map(|(number, lease)| (number, lease.target.path.clone(), lease.reason.clone())).collect()
}

impl Brief {
    /// The brief as text. Words of agents are quoted and cut.
    #[must_use]
    pub fn text(&self) -> String {
        let words = |text: &str| quoted_line(text, WORDS_CHARS_MAX);
        let mut text = match &self.agent {
            Some(agent) => format!("Brief of the work of {agent}\n"),
            None => "Brief of a task that nobody has worked on\n".to_owned(),
        };
        let listed = |items: &[String]| {
            let list = quoted_list(items.iter().map(String::as_str), LISTED_MAX, WORDS_CHARS_MAX);
            (!items.is_empty()).then_some(list)
        };
        for TaskBrief { details: TaskDetails { summary, notes, error, output, .. }, note, before } in &self.tasks {
            let _ =
                write!(text, "\nTask {}: {} ({})\n", words(&summary.id), words(&summary.title), summary.state.as_str());
            let lines = [
                (
                    "notes",
                    Some(notes.join("\n"))
                        .filter(|notes| !notes.is_empty())
                        .map(|notes| quoted_line(&notes, NOTES_CHARS_MAX)),
                ),
                ("files", listed(&summary.files)),
                ("step", summary.step.as_deref().map(words)),
                ("next step", summary.next_step.as_deref().map(words)),
                ("remark", note.as_deref().map(words)),
                ("error", error.as_deref().map(words)),
                ("waits for", listed(&summary.depends_on)),
                ("last output", output.as_ref().map(|last| words(&last.lines))),
            ];
            for (name, line) in lines.into_iter().filter_map(|(name, line)| Some((name, line?))) {
                let _ = writeln!(text, "  {name}: {line}");
            }
            for (id, result) in before {
                let _ = writeln!(text, "  before it, {}: {}", words(id), words(result));
            }
        }
        for (lease, path, reason) in &self.leases {
            let reason = if reason.is_empty() { String::new() } else { format!(" ({})", words(reason)) };
            let _ = write!(text, "\nHolds lease {lease} on {}{reason}", words(path));
        }
        for (path, holder) in &self.refused {
            let _ = write!(text, "\nWas refused {}, which {holder} holds", words(path));
        }
        for (number, asked, answer) in &self.questions {
            let answer =
                answer.as_deref().map_or_else(|| "open".to_owned(), |answer| format!("answered {}", words(answer)));
            let _ = write!(text, "\nQuestion a{number}, {}: {answer}", words(asked));
        }
        let _ = write!(text, "\nUnread messages: {}", self.n_unread);
        text
    }
}
