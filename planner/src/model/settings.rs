//! Takes the settings of steps (retries, deadlines, undo, default answers) from the text, even if a model plans.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::answer::AnswerError;
use crate::plan::{Mark, TaskPlan};

/// The smallest share of common words, in percent, for two texts to be the same step.
const SIMILARITY_MIN: usize = 60;
/// One text has all words of the other.
const CONTAINED: usize = 101;
const SAME_LABEL: usize = 102;
const SAME_COMMAND: usize = 103;

/// Copies the settings in the text to the matching tasks of an answer.
///
/// # Errors
/// [`AnswerError::LostStep`] if a step has no matching task: its settings would be lost silently.
pub(super) fn take_over(tasks: &mut [TaskPlan], parsed: &[TaskPlan]) -> Result<(), AnswerError> {
    let is_open = |step: &&TaskPlan| !matches!(step.mark, Mark::Done | Mark::Cancelled);
    let steps = parsed.iter().filter(is_open).collect::<Vec<_>>();
    if !steps.iter().any(|step| has_settings(step)) {
        return Ok(());
    }
    for (step, place) in steps.iter().zip(same_steps(tasks, &steps)) {
        let Some(task) = place.map(|place| &mut tasks[place]) else {
            if has_settings(step) {
                return Err(AnswerError::LostStep(step.description.clone()));
            }
            continue;
        };
        (task.retry, task.timeout_ms, task.deadline_ms) = (step.retry, step.timeout_ms, step.deadline_ms);
        (task.estimate_ms, task.on_failure, task.rerun_safe) = (step.estimate_ms, step.on_failure, step.rerun_safe);
        task.compensate.clone_from(&step.compensate);
        task.default_answer.clone_from(&step.default_answer);
    }
    Ok(())
}

fn has_settings(step: &TaskPlan) -> bool {
    let has_limit = step.timeout_ms.is_some() || step.deadline_ms.is_some() || step.estimate_ms.is_some();
    let has_policy = step.retry.is_some() || step.on_failure.is_some() || step.rerun_safe;
    has_limit || has_policy || step.compensate.is_some() || step.default_answer.is_some()
}

/// The place of the same task for each step. The most similar pairs match first, and each task matches one step only.
fn same_steps(tasks: &[TaskPlan], steps: &[&TaskPlan]) -> Vec<Option<usize>> {
    let words = tasks.iter().map(|task| words_of(&task.description)).collect::<Vec<_>>();
    let mut pairs = Vec::new();
    for (n, step) in steps.iter().enumerate() {
        let own = words_of(&step.description);
        for (place, (task, words)) in tasks.iter().zip(&words).enumerate() {
            pairs.push((Reverse(similarity(task, words, step, &own)), n, place));
        }
    }
    pairs.retain(|(similarity, ..)| similarity.0 >= SIMILARITY_MIN);
    pairs.sort_unstable();
    let (mut found, mut is_taken) = (vec![None; steps.len()], vec![false; tasks.len()]);
    for (_, n, place) in pairs {
        if found[n].is_none() && !is_taken[place] {
            (found[n], is_taken[place]) = (Some(place), true);
        }
    }
    found
}

fn similarity(task: &TaskPlan, others: &BTreeSet<String>, step: &TaskPlan, words: &BTreeSet<String>) -> usize {
    if task.command.is_some() && task.command == step.command {
        return SAME_COMMAND;
    }
    let labels = task.label.as_ref().zip(step.label.as_ref());
    if labels.is_some_and(|(one, other)| one.eq_ignore_ascii_case(other)) {
        return SAME_LABEL;
    }
    let n_shared = words.intersection(others).count();
    let n_all = words.union(others).count();
    if n_shared > 0 && n_shared == words.len().min(others.len()) { CONTAINED } else { n_shared * 100 / n_all.max(1) }
}

/// The words of a text in lower case.
fn words_of(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}
