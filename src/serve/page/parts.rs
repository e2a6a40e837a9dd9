//! The parts of a page, and their places on it.

use crewlog_mq::Position;

use super::asked::{Asked, Tab};
use super::document::{PageMode, Rendered};
use super::look::Look;
use super::words::{Markup, grouped};
use super::{crew, events, frame, graph, inspector, lists, needs, summary, time, timeline};
use crate::ui::failure::Failure;

/// The class of a view, and the ids of its parts: above the columns, in the left and in the right one.
fn places(asked: &Asked) -> (&'static str, [&'static [&'static str]; 3]) {
    let is_plan = asked.get("plan").is_some();
    let (plan, panel): (&[_], &[_]) = (&["plan"], &["inspector"]);
    let places: [&[_]; 3] = match asked.tab() {
        Tab::Overview if is_plan => [plan, &["timeline", "graph", "tasks"], panel],
        Tab::Tasks => [plan, &["tasks"], panel],
        Tab::Events if is_plan => [plan, &["events"], panel],
        Tab::Overview => [&[], &["needs", "plans"], &["agents"]],
        Tab::Plans => [&["plans"], &[], &[]],
        Tab::Files => [&[], &["files"], &["edits"]],
        Tab::Events => [&[], &["events"], panel],
        Tab::Statistics => [&["statistics"], &["conflicts"], &[]],
    };
    (asked.tab().into(), places)
}

impl Look<'_> {
    /// Renders the parts of the page in order.
    pub async fn render(&self) -> Result<Rendered, Failure> {
        let mut parts = vec![("top", frame::top(self)), ("notice", frame::notice(self))];
        let (class, places) = places(&self.asked);
        if self.head.at == Position(0) {
            parts.push(("empty", frame::empty(self)));
        } else {
            parts.push(("time", time::time(self).await?));
            parts.push(("compare", inspector::compared(self).await?));
            for id in places.concat() {
                parts.push((id, self.part(id).await?));
            }
        }
        let page = if class == "overview" { String::new() } else { format!("{class} · ") };
        let page = self.asked.get("plan").map_or(page, |plan| format!("{plan} · "));
        let title = match (self.is_past(), needs::n_waiting(&self.needs)) {
            (true, _) => format!("{page}position {} · crewlog", grouped(self.shown.at.0)),
            (false, 0) => format!("{page}crewlog"),
            (false, n) => format!("({n}) {page}crewlog"),
        };
        let mode = if self.is_past() { PageMode::Past } else { PageMode::Live };
        Ok(Rendered { at: self.shown.at, mode, now_us: self.shown.now.0, title, class, places, parts })
    }

    async fn part(&self, id: &'static str) -> Result<Markup, Failure> {
        match id {
            "needs" => needs::needs(self).await,
            "timeline" => timeline::timeline(self).await,
            "graph" => graph::graph(self).await,
            "events" => events::events(self).await,
            "inspector" => inspector::inspector(self).await,
            "agents" => crew::agents(self).await,
            "files" => crew::files(self).await,
            "edits" => crew::edits(self).await,
            "statistics" => lists::figures(self).await,
            "conflicts" => lists::conflicts(self).await,
            "plans" => lists::plans(self).await,
            "plan" => summary::summary(self).await,
            _tasks => Ok(lists::tasks(self)),
        }
    }
}
