//! The forms of the page: the same commands, after which the browser returns to its page. Before commands run, a page
//! shows them and asks.

use std::sync::Arc;

use askama::Template;
use axum::extract::rejection::FormRejection;
use axum::extract::{Form, Path, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect, Response};
use serde_json::{Map, Value};

use super::access::Caller;
use super::api::Api;
use super::commands::{YES, perform};
use super::problem::Problem;

/// The fields of a form that are not fields of the command.
const BACK: &str = "back";
/// The fields of commands that are lists.
const LISTS: [&str; 7] = ["after", "before", "changes", "leases", "settings", "tasks", "to"];
/// The longest message after a command, in characters.
const SAID_CHARS_MAX: usize = 300;

/// The page that asks whether commands may run, or says why something was not done.
#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{{ title }}</title><link rel="stylesheet" href="{{ style }}">
<body class="ask"><main class="card"><h1>{{ title }}</h1><p>{{ problem.detail }}</p>
{% for hint in problem.hints %}<p class="sub">{{ hint }}</p>{% endfor %}
{% if !problem.notes.is_empty() %}<pre>{% for note in problem.notes %}{{ note }}
{% endfor %}</pre>{% endif %}
{% if asks %}<form method="post" action="/do/{{ name }}">
{% for (field, value) in fields %}<input type="hidden" name="{{ field }}" value="{{ value }}">{% endfor %}
<input type="hidden" name="yes" value="true"><button class="pri">Run them</button></form>{% endif %}
<p><a href="{{ back }}">Back</a></p></main></body></html>"#
)]
struct Ask<'a> {
    title: &'a str,
    style: String,
    name: &'a str,
    problem: &'a Problem,
    fields: &'a [(String, String)],
    asks: bool,
    back: &'a str,
}

/// `POST /do/NAME`.
pub async fn form(
    State(api): State<Arc<Api>>,
    caller: Caller,
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
            let said = notes.filter_map(Value::as_str).fold("done".to_owned(), |said, note| format!("{said}; {note}"));
            let to = match result["plan"].as_str().filter(|_| name == "fork" || name == "run") {
                Some(plan) => format!("/?plan={}", encoded(plan)),
                None => back.to_owned(),
            };
            let joint = if to.contains('?') { '&' } else { '?' };
            let said: String = said.chars().take(SAID_CHARS_MAX).collect();
            Redirect::to(&format!("{to}{joint}said={}", encoded(&said))).into_response()
        }
        Err(problem) => {
            let asks = problem.r#type == "consent";
            let title = if asks { "Run these commands?" } else { "It was not done" };
            let style = crate::serve::page::style();
            let page = Ask { title, style, name: &name, problem: &problem, fields: &fields, asks, back };
            let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::BAD_REQUEST);
            (status, Html(page.render().unwrap_or_default())).into_response()
        }
    }
}

/// The fields of the command: empty ones are omitted. Texts become the types of the fields.
fn command_of(fields: &[(String, String)]) -> Map<String, Value> {
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

/// A text encoded for a query.
fn encoded(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(byte);
    text.bytes().map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
