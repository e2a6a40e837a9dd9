//! The input of a task's executor, by the fold of its plan.

use crate::event::{Budget, TaskInput};
use crate::plan::{AttachmentKind, NodeKind};
use crate::state::{PlannerState, Task};

impl PlannerState {
    /// The input of a task's executor, without the rest of its budgets.
    #[must_use]
    pub fn input(&self, task: &Task) -> TaskInput {
        let places = self.index(task.plan.id).map(|index| self.answers_for(index)).unwrap_or_default();
        let (plan, config) = (&task.plan, &self.config);
        TaskInput {
            label: plan.label.clone(),
            description: plan.description.clone(),
            command: plan.command.clone(),
            notes: plan.notes.clone(),
            attachments: plan.attachments.clone(),
            answers: self.answered(&places),
            assignee: plan.assignee.clone(),
            files: plan.files.clone(),
            reads_only: plan.reads_only,
            rerun_safe: plan.rerun_safe,
            timeout_ms: plan.timeout_ms,
            needs: self.needs(task),
            is_timed: config.budget.duration_ms.is_some(),
            budget: Budget::default(),
            counts_tokens: config.budget.tokens.is_some() && plan.command.is_none(),
            folder: config.folder.clone(),
            sub_plan: plan.sub_plan.clone(),
            compensates: plan.compensates,
        }
    }

    /// The attachments that must exist before a task without a command begins: images, and for a task that examines
    /// existing work its files and links. Attachments of an earlier task do not count, since it may create them.
    fn needs(&self, task: &Task) -> Vec<String> {
        if task.plan.command.is_some() {
            return Vec::new();
        }
        let examines = matches!(task.plan.kind, NodeKind::Analysis | NodeKind::Retrieval | NodeKind::Refactor);
        let needs = task.plan.attachments.iter().filter_map(|attachment| match &attachment.kind {
            AttachmentKind::ImageRef(reference) => Some(reference),
            AttachmentKind::FileRef(reference) | AttachmentKind::Link(reference) if examines => Some(reference),
            AttachmentKind::FileRef(_) | AttachmentKind::Link(_) => None,
        });
        // A glob may match nothing, and a word with neither slash nor dot may be the name of anything.
        let is_path = |reference: &&String| reference.contains(['/', '.']) && !reference.contains(['*', '?', '[', '{']);
        let needs = needs.filter(|reference| is_link(reference) || is_path(reference));
        let earlier = || self.tasks.iter().take_while(|earlier| earlier.plan.id < task.plan.id);
        let names = |task: &Task, wanted: &str| {
            task.plan.attachments.iter().any(|attachment| attachment.kind.path() == Some(wanted))
        };
        let is_made = |reference: &&String| earlier().any(|earlier| names(earlier, reference));
        needs.filter(|reference| !is_made(reference)).cloned().collect()
    }
}

fn is_link(reference: &str) -> bool {
    ["http://", "https://", "file:"].iter().any(|scheme| reference.starts_with(scheme))
}
