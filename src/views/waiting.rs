//! Lines about everything that a plan waits for, with the commands that settle it.

use crewlog_executors::crew::Kind;
use crewlog_mq::Error;

use super::{AsOf, NeedView};
use crate::context::Session;
use crate::ui::text::{one_line, readable, visible};

const TEXT_CHARS_MAX: usize = 400;

impl AsOf {
    /// The items of the inbox about a plan and its sub-plans, and the budgets that hold tasks back.
    pub async fn waits(&self, session: &Session, plan: &str) -> Result<Vec<String>, Error> {
        let mut lines: Vec<_> =
            self.needs_of(plan, |words| session.command(words)).await?.iter().map(NeedView::lines).collect();
        for plan in self.family(plan).await? {
            let (states, seen) = (self.states(&plan).await?, self.viewed(&plan).await?);
            let state = seen.view.state();
            let of_files = states.tasks.iter().filter_map(|(task, it)| Some((state.target(&plan, *task), it.lease()?)));
            lines.extend(of_files.map(|(task, lease)| format!("{task} waits for its files: {lease}")));
            // A running task that reserves the whole budget would reserve a higher one too.
            lines.extend(state.held_by_budget().map(|held| {
                let set = || format!("\n  {} {}=...", session.command_on("plan set", &plan), held.measure.key());
                let how = if held.reserved < held.limit { set() } else { String::new() };
                format!("no more tasks start: {}{how}", held.words())
            }));
        }
        Ok(lines)
    }
}

impl NeedView {
    /// The item in one line, and a line for each command.
    fn lines(&self) -> String {
        let (plan, part) = self.id.split_once('/').unwrap_or((&self.id, ""));
        let begin = match self.kind {
            Kind::Consent => format!("task {part} runs once you agree: "),
            Kind::Step | Kind::Parked => format!("task {part} waits for you: "),
            Kind::Paused if part.is_empty() => format!("plan {plan} is paused: "),
            Kind::Paused => format!("task {part} is paused: "),
            Kind::Stopped => format!("plan {plan} has stopped: "),
            Kind::Interrupted | Kind::Ready => format!("plan {plan}: "),
            Kind::Silent => format!("task {part}: "),
            Kind::Permission | Kind::Question | Kind::Failure => format!("{part} asks: "),
            Kind::Budget if !plan.is_empty() && self.from == plan => format!("plan {plan}: "),
            Kind::Budget | Kind::Conflict | Kind::Health | Kind::Overdue => String::new(),
        };
        let by_default = match (&self.default, &self.due) {
            (Some(answer), Some(due)) => format!(" (waits until {} for an answer, then {answer})", readable(due)),
            _none => String::new(),
        };
        // In a line no second line may look like a part of the first.
        let text = self.text.trim_end().replace(['\n', '\r'], if self.kind == Kind::Consent { " ⏎ " } else { "\n" });
        let line = visible(&begin) + &one_line(&text, TEXT_CHARS_MAX) + &by_default;
        let how = (self.kind == Kind::Step)
            .then_some("\n  no executor takes it: do it and report it, put a command, Run `...`, in its text, or write in crewlog.toml:\n    [executors.claude]\n    command = [\"claude\", \"-p\"]");
        let commands = self.commands.iter().map(|command| format!("\n  {}", visible(command)));
        line + how.unwrap_or_default() + &commands.collect::<String>()
    }
}
