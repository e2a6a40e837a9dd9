//! Tasks that are defined anew, and new ones: what follows from it for their labels and for what they are told.

use std::collections::{BTreeSet, VecDeque};

use crate::event::{Order, PlannerConfig, Purpose};
use crate::plan::TaskPlan;
use crate::state::{Phase, PlannerState};

impl PlannerState {
    /// Tasks that are known are defined anew and keep what happened to them. A number that is above all others is a new
    /// task; another that is not known is passed over. A standing plan that has ended goes on.
    pub(super) fn amend(&mut self, tasks: &[TaskPlan]) {
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
        let mut to_tell = VecDeque::new();
        for plan in tasks {
            let Some(index) = self.index(plan.id) else { continue };
            if let Some(label) = &self.tasks[index].plan.label {
                self.labels.remove(&label.to_lowercase());
            }
            to_tell.push_back(index);
            self.redefine(index, plan);
        }
        // After all of them have given up their labels, since two may change theirs for each other's.
        for plan in tasks {
            if let (Some(label), Some(_)) = (&plan.label, self.index(plan.id)) {
                self.labels.insert(label.to_lowercase(), plan.id);
            }
        }
        self.tell_anew(to_tell);
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

    pub(super) fn index_labels(&mut self) {
        let labelled = self.tasks.iter().filter_map(|task| Some((task.plan.label.as_ref()?, task.plan.id)));
        self.labels = labelled.map(|(label, id)| (label.to_lowercase(), id)).collect();
    }

    /// Finds out which answers these tasks are told of, and those after them as far as it is others than before.
    fn tell_anew(&mut self, mut to_tell: VecDeque<usize>) {
        if self.questions.is_empty() {
            return;
        }
        while let Some(index) = to_tell.pop_front() {
            let plan = &self.tasks[index].plan;
            let is_told = |place: &usize| {
                let question = &self.questions[*place];
                question.answer.is_some() && matches!(question.purpose, Purpose::Task | Purpose::Executor)
            };
            let own = self.asked.get(&plan.id).into_iter().flatten().copied().filter(is_told);
            let before = plan.depends_on.iter().filter_map(|dependency| self.told.get(&dependency.task));
            let told = own.chain(before.flatten().copied()).collect::<BTreeSet<_>>();
            let known = self.told.get(&plan.id).into_iter().flatten().copied().collect::<BTreeSet<_>>();
            if told == known {
                continue;
            }
            let id = plan.id;
            if told.is_empty() {
                self.told.remove(&id);
            } else {
                self.told.insert(id, told.into_iter().collect());
            }
            to_tell.extend(&self.graph.dependants[index]);
        }
    }
}
