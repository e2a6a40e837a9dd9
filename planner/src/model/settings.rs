//! What a text sets for a step (how long it may take, what undoes it, what counts when nobody answers) is read by rule, and
//! holds as well where a model plans. It judges no description: it only finds the step again that the text means.

use std::collections::BTreeSet;

use super::answer::AnswerError;
use crate::plan::{Mark, TaskPlan};

/// How much of the words of two steps must be the same for them to be one, in hundredths.
const ALIKE_MIN: usize = 60;
/// Above what words alone can say: one names all of the other.
const WITHIN: usize = 101;
const SAME_LABEL: usize = 102;
const SAME_COMMAND: usize = 103;

/// Gives the tasks of an answer what the text sets for the same steps. What the text sets wins over what the answer says.
///
/// # Errors
/// [`AnswerError::LostStep`] when there is no such step: what is set for it would be lost in silence.
pub(super) fn take_over(tasks: &mut [TaskPlan], parsed: &[TaskPlan]) -> Result<(), AnswerError> {
    let is_wanted = |step: &&TaskPlan| !matches!(step.mark, Mark::Done | Mark::Cancelled);
    let steps = parsed.iter().filter(is_wanted).collect::<Vec<_>>();
    if steps.iter().all(|step| settings_of(step).is_empty()) {
        return Ok(());
    }
    for (step, task) in steps.iter().zip(same_steps(tasks, &steps)) {
        let settings = settings_of(step);
        if settings.is_empty() {
            continue;
        }
        let Some(task) = task.map(|place| &mut tasks[place]) else {
            return Err(AnswerError::LostStep(step.description.clone(), settings.join(", ")));
        };
        task.retry = step.retry.or(task.retry);
        task.timeout_ms = step.timeout_ms.or(task.timeout_ms);
        task.deadline_ms = step.deadline_ms.or(task.deadline_ms);
        task.estimate_ms = step.estimate_ms.or(task.estimate_ms);
        task.on_failure = step.on_failure.or(task.on_failure);
        task.rerun_safe |= step.rerun_safe;
        task.compensate = step.compensate.clone().or(task.compensate.take());
        task.default_answer = step.default_answer.clone().or(task.default_answer.take());
    }
    Ok(())
}

/// What is set for a step, by the words for it in texts.
fn settings_of(step: &TaskPlan) -> Vec<&'static str> {
    let set = [
        (step.retry.is_some(), "a retry"),
        (step.timeout_ms.is_some(), "a timeout"),
        (step.deadline_ms.is_some(), "a deadline"),
        (step.estimate_ms.is_some(), "an estimate"),
        (step.on_failure.is_some(), "what happens on failure"),
        (step.rerun_safe, "that it is rerun safe"),
        (step.compensate.is_some(), "an undo"),
        (step.default_answer.is_some(), "a default answer"),
    ];
    set.into_iter().filter_map(|(is_set, name)| is_set.then_some(name)).collect()
}

/// By step: the place of the task that it is, if one is. Those that are most alike find each other first, also where
/// nothing is set for a step: its task is no other step's.
fn same_steps(tasks: &[TaskPlan], steps: &[&TaskPlan]) -> Vec<Option<usize>> {
    let words = tasks.iter().map(|task| words_of(&task.description)).collect::<Vec<_>>();
    let mut pairs = Vec::new();
    for (n, step) in steps.iter().enumerate() {
        let own = words_of(&step.description);
        let alike = tasks.iter().zip(&words).map(|(task, words)| likeness(task, words, step, &own)).enumerate();
        pairs
            .extend(alike.filter(|(_, likeness)| *likeness >= ALIKE_MIN).map(|(place, likeness)| (likeness, n, place)));
    }
    // Of those that are alike as much, the first.
    pairs.sort_by_key(|(likeness, n, place)| (std::cmp::Reverse(*likeness), *n, *place));
    let (mut found, mut is_taken) = (vec![None; steps.len()], vec![false; tasks.len()]);
    for (_, n, place) in pairs {
        if found[n].is_none() && !is_taken[place] {
            (found[n], is_taken[place]) = (Some(place), true);
        }
    }
    found
}

fn likeness(task: &TaskPlan, others: &BTreeSet<String>, step: &TaskPlan, words: &BTreeSet<String>) -> usize {
    let same = |one: &Option<String>, other: &Option<String>| match (one, other) {
        (Some(one), Some(other)) => one.eq_ignore_ascii_case(other),
        (Some(_), None) | (None, Some(_) | None) => false,
    };
    if task.command.is_some() && task.command == step.command {
        return SAME_COMMAND;
    }
    if same(&task.label, &step.label) {
        return SAME_LABEL;
    }
    let n_shared = words.intersection(others).count();
    let n_all = words.union(others).count();
    if n_shared > 0 && n_shared == words.len().min(others.len()) { WITHIN } else { n_shared * 100 / n_all.max(1) }
}

/// Letters and digits, in small letters.
fn words_of(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}
