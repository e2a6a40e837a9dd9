//! The questions of a plan: who is told of their answers, and what an end withdraws.

use crate::event::{Purpose, QuestionId, TaskStatus};
use crate::places::Places;
use crate::plan::TaskId;
use crate::state::PlannerState;
use crate::task::Question;

impl PlannerState {
    pub(super) fn condition_of(&self, id: TaskId) -> Option<String> {
        Some(self.task(id)?.plan.condition.as_ref()?.text.clone())
    }

    /// Opens a question, the next by number.
    pub(super) fn ask(&mut self, mut question: Question) {
        let (task, purpose) = (question.task, question.purpose);
        // The task may be given another condition before the answer comes.
        if purpose == Purpose::Condition {
            question.condition = self.condition_of(task);
        }
        if let Some(text) = question.condition.clone() {
            self.judge(&text, Some(None));
        }
        self.asked.entry(task).or_default().push(self.questions.len());
        self.open.insert(self.questions.len());
        self.questions.push(question);
        if purpose != Purpose::Condition {
            self.change(task, |task| task.status = TaskStatus::NeedsClarification);
        }
    }

    pub(super) fn close_question(&mut self, id: QuestionId, answer: &str, is_by_default: bool) {
        let index = usize::try_from(id.0).unwrap_or(0).wrapping_sub(1);
        let Some(question) = self.questions.get_mut(index) else { return };
        question.answer = Some(answer.to_owned());
        question.is_by_default = is_by_default;
        let (purpose, asker) = (question.purpose, question.task);
        self.open.remove(&index);
        // A task that is a question tells its answer as what came of it.
        if let (false, Some(asker)) = (purpose == Purpose::Task, self.index(asker)) {
            self.past.answer(index, &self.questions[index], &self.tasks[asker]);
        }
        match purpose {
            Purpose::Condition => {
                if let Some(text) = self.questions[index].condition.clone() {
                    self.judge(&text, Some(is_yes(answer)));
                }
            }
            Purpose::Task | Purpose::Executor => self.tell_on(self.index(asker).into_iter().collect()),
            Purpose::Failure => {}
        }
    }

    /// The places of the answered questions that a task is told of, its own and those of all that it waited for.
    pub(crate) fn answers_for(&self, index: usize) -> Places {
        let task = &self.tasks[index].plan;
        let is_told = |place: &&usize| {
            let question = &self.questions[**place];
            question.answer.is_some() && matches!(question.purpose, Purpose::Task | Purpose::Executor)
        };
        let before = task.depends_on.iter().filter_map(|before| self.told.get(&self.index(before.task)?));
        let mut answers = Places::default();
        before.for_each(|told| answers.extend(told));
        let own = self.asked.get(&task.id).into_iter().flatten().filter(is_told);
        own.for_each(|place| answers.insert(*place));
        answers
    }

    /// Finds out anew what comes after these tasks is told of. What has not ended finds it out when it does.
    pub(super) fn tell_on(&mut self, mut to_tell: Vec<usize>) {
        while let Some(index) = to_tell.pop() {
            let answers = self.answers_for(index);
            if answers == self.told.get(&index).cloned().unwrap_or_default() {
                continue;
            }
            if answers.is_empty() {
                self.told.remove(&index);
            } else {
                self.told.insert(index, answers);
            }
            let dependants = self.graph.dependants[index].iter().copied();
            to_tell.extend(dependants.filter(|dependant| self.tasks[*dependant].status.is_end()));
        }
    }

    pub(super) fn withdraw(&mut self, id: QuestionId) {
        let Some(place) = usize::try_from(id.0).ok().and_then(|n| n.checked_sub(1)) else { return };
        if place < self.questions.len() {
            self.withdraw_at(place);
        }
    }

    fn withdraw_at(&mut self, place: usize) {
        let question = &mut self.questions[place];
        if !question.is_open() {
            return;
        }
        question.is_withdrawn = true;
        self.open.remove(&place);
        if let Some(text) = question.condition.clone() {
            self.judge(&text, None);
        }
    }

    pub(super) fn withdraw_questions_of(&mut self, id: TaskId) {
        for place in self.asked.get(&id).cloned().unwrap_or_default() {
            self.withdraw_at(place);
        }
    }
}

/// What a person means by an answer to a yes-or-no question.
pub(crate) fn is_yes(answer: &str) -> Option<bool> {
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" | "true" | "ja" | "oui" | "si" | "sí" | "是" => Some(true),
        "n" | "no" | "false" | "nein" | "non" | "否" => Some(false),
        _ => None,
    }
}
