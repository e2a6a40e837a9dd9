//! Tasks that are defined anew, and new ones: what follows from it for what they are called, name and are told.

use crate::event::{Order, PlannerConfig};
use crate::plan::{AttachmentKind, TaskPlan};
use crate::state::graph::{Lane, lane};
use crate::state::{Phase, PlannerState};
use crate::to_do::ToDo;

impl PlannerState {
    /// Tasks that are known are defined anew and keep what happened to them. A number that is above all others is a new
    /// task; another that is not known is passed over. A standing plan that has ended goes on.
    pub(super) fn amend(&mut self, tasks: &[TaskPlan], source: Option<&str>) {
        if let Some(source) = source {
            source.clone_into(&mut self.source);
        }
        if self.goes_on_with(tasks) {
            self.phase = Phase::Active;
            self.cancelled = false;
        }
        for plan in tasks {
            if let Some(undone) = plan.compensates.and_then(|of| self.index(of)) {
                self.tasks[undone].is_compensated = true;
                // What has ended is open again for that.
                if let Phase::Ended(_) = self.phase {
                    self.phase = Phase::Active;
                }
            }
            if plan.id.0 >= self.next_id() {
                self.add_to_graph(plan.clone());
            }
        }
        let mut amended = Vec::new();
        for plan in tasks {
            let Some(index) = self.index(plan.id) else { continue };
            if let Some(label) = &self.tasks[index].plan.label {
                self.labels.remove(&label.to_lowercase());
            }
            self.forget_references(index);
            amended.push(index);
            self.redefine(index, plan);
        }
        for index in amended.iter().copied() {
            self.note_references(index);
            if !self.to_do.is_empty() {
                let task = &self.tasks[index];
                self.to_do.define(index, &task.plan, task.status);
            }
        }
        if self.to_do.is_empty() {
            self.index_to_do();
        }
        // After all of them have given up their labels, since two may change theirs for each other's.
        for plan in tasks {
            if let (Some(label), Some(_)) = (&plan.label, self.index(plan.id)) {
                self.labels.insert(label.to_lowercase(), plan.id);
            }
        }
        // Only what has been told already is told otherwise.
        amended.retain(|index| self.tasks[*index].status.is_end() || self.told.contains_key(index));
        self.tell_on(amended);
        if self.config.order == Order::CriticalPath {
            self.index_graph();
        }
    }

    /// True of a standing plan that has ended, and of tasks that open it again.
    pub(super) fn goes_on_with(&self, tasks: &[TaskPlan]) -> bool {
        let has_ended = matches!(self.phase, Phase::Ended(_));
        has_ended && self.config.standing && tasks.iter().any(|task| task.compensates.is_none())
    }

    /// Other settings, and what follows for which tasks share their limits and in which turn they start.
    pub(super) fn configure(&mut self, config: &PlannerConfig) {
        self.config = config.clone();
        self.index_graph();
    }

    pub(super) fn index_names(&mut self) {
        let labelled = self.tasks.iter().filter_map(|task| Some((task.plan.label.as_ref()?, task.plan.id)));
        self.labels = labelled.map(|(label, id)| (label.to_lowercase(), id)).collect();
        self.named.clear();
        (0..self.tasks.len()).for_each(|index| self.note_references(index));
    }

    /// Lines for all tasks, if one of them is told of others.
    pub(super) fn index_to_do(&mut self) {
        let tasks = self.tasks.iter().map(|task| (&task.plan, task.status));
        let is_told = self.tasks.iter().any(|task| lane(&task.plan) == Lane::Others);
        self.to_do = if is_told { ToDo::of(tasks) } else { ToDo::default() };
    }

    fn note_references(&mut self, index: usize) {
        for reference in references(&self.tasks[index].plan) {
            self.named.entry(reference.clone()).or_default().insert(index);
        }
    }

    fn forget_references(&mut self, index: usize) {
        for reference in references(&self.tasks[index].plan) {
            let Some(places) = self.named.get_mut(reference) else { continue };
            places.remove(&index);
            if places.is_empty() {
                self.named.remove(reference);
            }
        }
    }
}

/// The files and pictures that a task names.
fn references(task: &TaskPlan) -> impl Iterator<Item = &String> {
    task.attachments.iter().filter_map(|attachment| match &attachment.kind {
        AttachmentKind::FileRef(reference)
        | AttachmentKind::ImageRef(reference)
        | AttachmentKind::ScreenshotRef(reference) => Some(reference),
        AttachmentKind::Link(_) | AttachmentKind::EmbeddingRef(_) => None,
    })
}
