//! Amends and adds tasks: updates names, references and answers.

use crate::event::{Order, PlannerConfig};
use crate::plan::{AttachmentKind, TaskPlan};
use crate::state::{Phase, PlannerState};

impl PlannerState {
    /// Known tasks are redefined and keep their history. A number that is above all others is a new
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
                // Adding a task to a stopped plan resumes it.
                self.stopped = self.stopped.filter(|_| plan.compensates.is_some());
                self.add_to_graph(plan.clone());
            }
        }
        let (mut amended, mut drops_references) = (Vec::new(), false);
        for plan in tasks {
            let Some(index) = self.index(plan.id) else { continue };
            if let Some(label) = &self.tasks[index].plan.label {
                self.labels.remove(&label.to_lowercase());
            }
            drops_references |=
                references(&self.tasks[index].plan).any(|known| !references(plan).any(|new| new == known));
            amended.push(index);
            self.redefine(index, plan);
        }
        if drops_references {
            self.index_references();
        } else {
            amended.iter().for_each(|index| self.note_references(*index));
        }
        // After all of them have given up their labels, since two may change theirs for each other's.
        for plan in tasks {
            if let (Some(label), Some(_)) = (&plan.label, self.index(plan.id)) {
                self.labels.insert(label.to_lowercase(), plan.id);
            }
        }
        amended.retain(|index| self.tasks[*index].status.is_end() || self.inherited_answers.contains_key(index));
        self.pass_answers_on(amended);
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
        self.index_references();
    }

    fn index_references(&mut self) {
        self.first_named.clear();
        (0..self.tasks.len()).for_each(|index| self.note_references(index));
    }

    fn note_references(&mut self, index: usize) {
        let task = &self.tasks[index].plan;
        for reference in references(task) {
            let first = self.first_named.entry(reference.clone()).or_insert(task.id);
            *first = task.id.min(*first);
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
