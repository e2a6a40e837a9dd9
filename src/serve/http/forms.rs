//! The forms of the page: the same commands, after which the browser returns to its page. Before commands run, a page
//! shows them and asks.

use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::FormRejection;
use axum::extract::{Form, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use serde_json::{Map, Value};

use super::access::Caller;
use super::commands::{YES, perform};
use super::problem::Problem;
use super::views::Api;
use crate::serve::page::{Form as PageForm, Framed, encoded};

/// The fields of a form that are not fields of the command.
const BACK: &str = "back";
/// The fields of commands that are lists.
const LISTS: [&str; 8] = ["after", "before", "changes", "leases", "seen", "settings", "tasks", "to"];
/// The longest message after a command, in characters.
const SAID_CHARS_MAX: usize = 300;

/// The fields that a person types. A refusal keeps them.
const TYPED: [&str; 9] = ["text", "note", "reason", "result", "error", "name", "subject", "body", "question"];

/// `POST /do/NAME`.
pub async fn form(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    form: Result<Form<Vec<(String, String)>>, FormRejection>,
) -> Response {
    let Form(fields) = match form {
        Ok(form) => form,
        Err(rejection) => return Problem::new(rejection.status(), rejection.body_text()).into_response(),
    };
    let back = fields.iter().find(|(name, _)| name == BACK).map(|(_, value)| value.as_str());
    // The address of another server would begin with two slashes.
    let is_own =
        |back: &&str| back.starts_with('/') && !back[1..].starts_with(['/', '\\']) && !back.contains(char::is_control);
    let back = back.filter(is_own).unwrap_or("/");
    let command = command_of(&fields);
    let is_agreed = command.contains_key(YES);
    match perform(&api, &caller, &name, command).await {
        Ok(result) => {
            let notes = result["notes"].as_array().filter(|_| !is_agreed).into_iter().flatten();
            let said =
                notes.filter_map(Value::as_str).fold(done(&name).to_owned(), |said, note| format!("{said} {note}"));
            let to = match result["plan"].as_str().filter(|_| name == "fork" || name == "run") {
                Some(plan) => format!("/plans/{}", encoded(plan)),
                None => back.to_owned(),
            };
            let joint = if to.contains('?') { '&' } else { '?' };
            let said: String = said.chars().take(SAID_CHARS_MAX).collect();
            Redirect::to(&format!("{to}{joint}said={}", encoded(&said))).into_response()
        }
        Err(problem) => api.site.framed(&asking(&name, &fields, back, problem)).await,
    }
}

/// The page that asks whether commands may run, or says why something was not done.
fn asking(name: &str, fields: &[(String, String)], back: &str, problem: Problem) -> Framed {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::BAD_REQUEST);
    let own = || fields.iter().filter(|(name, _)| name != BACK && name != "yes").cloned();
    let form = |hidden| PageForm::new(name, hidden, back.to_owned(), false);
    let links = vec![(back.to_owned(), "Back".to_owned())];
    if problem.r#type == "consent" {
        let form = form(own().collect()).choice("yes", "true", "Run them").primary();
        let lines = vec!["Nothing has run yet. This is what would run:".to_owned()];
        let asks = Framed::refusal(status, "May these commands run?", lines);
        return Framed {
            says: "waiting for you".to_owned(),
            commands: problem.notes,
            forms: vec![form],
            links,
            ..asks
        };
    }
    let (typed, hidden): (Vec<_>, Vec<_>) = own().partition(|(name, _)| TYPED.contains(&name.as_str()));
    let again = typed.iter().fold(form(hidden), |form, (name, value)| form.filled(name, value)).button("Send again");
    let lines = problem.hints.iter().chain(&problem.notes).map(|line| sentence(line)).collect();
    let forms = if typed.is_empty() { Vec::new() } else { vec![again] };
    let says = format!("{} · nothing was changed", problem.status);
    Framed { says, forms, links, ..Framed::refusal(status, &sentence(&problem.detail), lines) }
}

/// The text with a capital at its beginning.
pub fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

/// The message after a command.
fn done(name: &str) -> &'static str {
    match name {
        "agree" => "It may run.",
        "answer" => "Answered.",
        "cancel" => "It is cancelled.",
        "pause" => "It is paused.",
        "resume" => "It is resumed.",
        "retry" => "It will be tried again.",
        "fork" => "This is the fork.",
        "send" => "The message is sent.",
        "task-add" => "The task is added.",
        "task-done" => "The task is done.",
        "task-fail" => "The task has failed.",
        "plan-checkpoint" => "The checkpoint is set.",
        "end-leases" => "The lease has ended.",
        _other => "Done.",
    }
}

/// The fields of the command: empty ones are omitted. Texts become the types of the fields.
pub fn command_of(fields: &[(String, String)]) -> Map<String, Value> {
    let mut command = Map::new();
    for (name, text) in fields.iter().filter(|(name, text)| name != BACK && !text.is_empty()) {
        let number = || text.parse::<u64>().map_or_else(|_| Value::from(&**text), Value::from);
        let value = match name.as_str() {
            YES | "compensate" | "ack" => Value::Bool(text == "true"),
            "leases" => number(),
            _text => Value::from(&**text),
        };
        if LISTS.contains(&name.as_str()) {
            let list = command.entry(name).or_insert_with(|| Value::Array(Vec::new()));
            list.as_array_mut().into_iter().for_each(|list| list.push(value.clone()));
        } else {
            command.insert(name.clone(), value);
        }
    }
    command
}
