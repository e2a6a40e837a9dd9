//! The questions of a plan: the tasks that their answers concern, and their withdrawal.

use std::collections::BTreeSet;

use crate::event::{Answered, Purpose, QuestionId, TaskStatus, Timer};
use crate::state::PlannerState;
use crate::task::{Question, is_yes};

impl PlannerState {
    /// Opens a question, the next by number.
    pub(super) fn ask(&mut self, mut question: Question) {
        let (task, purpose) = (question.task, question.purpose);
        // The task may get another condition before the answer comes.
        if purpose == Purpose::Condition {
            question.condition = self.task(task).and_then(|task| task.plan.condition_key());
        }
        if let Some(condition) = question.condition.clone() {
            self.judge(&condition, Some(None));
        }
        self.asked.entry(task).or_default().push(self.questions.len());
        self.open.insert(self.questions.len());
        self.questions.push(question);
        if purpose != Purpose::Condition {
            self.change(task, |task| task.status = TaskStatus::NeedsClarification);
        }
    }

    pub(super) fn close_question(&mut self, id: QuestionId, answer: &str, is_by_default: bool) {
        let index = id.index();
        let Some(question) = self.questions.get_mut(index) else { return };
        question.answer = Some(answer.to_owned());
        question.is_by_default = is_by_default;
        let (purpose, asker) = (question.purpose, question.task);
        self.drop_timer(Timer::Question(id));
        self.open.remove(&index);
        // The answer to a question task is its result.
        if purpose != Purpose::Task {
            self.note_answer(index);
        }
        match purpose {
            Purpose::Condition => {
                if let Some(condition) = self.questions[index].condition.clone() {
                    self.judge(&condition, Some(is_yes(answer)));
                }
            }
            Purpose::Task | Purpose::Executor => self.pass_answers_on(self.index(asker).into_iter().collect()),
            Purpose::Failure => {}
        }
    }

    /// The answered questions that concern a task, its own and those of its ancestors, by index.
    pub(crate) fn answers_for(&self, index: usize) -> BTreeSet<usize> {
        let task = &self.tasks[index].plan;
        let concerns = |place: &&usize| {
            let question = &self.questions[**place];
            question.answer.is_some() && matches!(question.purpose, Purpose::Task | Purpose::Executor)
        };
        let before = task.depends_on.iter().filter_map(|before| self.inherited_answers.get(&self.index(before.task)?));
        let own = self.asked.get(&task.id).into_iter().flatten().filter(concerns);
        before.flatten().chain(own).copied().collect()
    }

    /// Questions with their answers, in the order they were asked.
    pub(crate) fn answered(&self, places: &BTreeSet<usize>) -> Vec<Answered> {
        let answered = places.iter().filter_map(|place| {
            let question = &self.questions[*place];
            let label = self.task(question.task).and_then(|asker| asker.plan.label.clone());
            let (answer, text) = (question.answer.clone()?, question.question.clone());
            Some(Answered { task: question.task, label, question: text, answer })
        });
        answered.collect()
    }

    /// Updates the answers that dependents inherit from these tasks. An open task passes them on when it ends.
    pub(super) fn pass_answers_on(&mut self, mut changed: Vec<usize>) {
        while let Some(index) = changed.pop() {
            let answers = self.answers_for(index);
            let known = self.inherited_answers.get(&index);
            if known.map_or(answers.is_empty(), |known| *known == answers) {
                continue;
            }
            if answers.is_empty() {
                self.inherited_answers.remove(&index);
            } else {
                self.inherited_answers.insert(index, answers);
            }
            let dependants = self.graph.dependants[index].iter().copied();
            changed.extend(dependants.filter(|dependant| self.tasks[*dependant].status.is_end()));
        }
    }

    pub(super) fn withdraw(&mut self, place: usize) {
        let Some(question) = self.questions.get_mut(place).filter(|question| question.is_open()) else { return };
        question.is_withdrawn = true;
        let (id, condition) = (question.id, question.condition.clone());
        self.open.remove(&place);
        self.drop_timer(Timer::Question(id));
        if let Some(condition) = condition {
            self.judge(&condition, None);
        }
    }
}
