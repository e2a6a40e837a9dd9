//! Commands over HTTP: the actions of [`crate::action`], with the fields and the results of the command line.

use std::sync::Arc;

use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use crewlog_executors::caller::ordered;
use serde_json::{Map, Value, json};

use super::access::{Caller, Scope};
use super::problem::Problem;
use super::views::Api;
use crate::action::{Action, ActionKind};
use crate::serve::mcp::once;

/// The header that makes a repeated request run only once.
pub const KEY: &str = "idempotency-key";
const KEY_CHARS_MAX: usize = 200;
/// The field that agrees to run the commands of a plan.
pub const YES: &str = "yes";

/// The JSON schema of a kind of action.
pub fn schema(kind: &ActionKind) -> Value {
    let mut schema = serde_json::to_value((kind.schema)()).unwrap_or_default();
    let yes = "Agree to run the commands, which needs the scope execute";
    schema["properties"][YES] = json!({ "type": "boolean", "description": yes });
    schema
}

/// Executes an action. Returns the JSON that the command line would print, with its other messages under `notes`.
pub async fn perform(api: &Api, caller: &Caller, name: &str, mut fields: Map<String, Value>) -> Result<Value, Problem> {
    let kind = Action::KINDS.iter().find(|kind| kind.name == name);
    let kind = kind.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, format!("there is no command {name:?}")))?;
    caller.check(kind.scope)?;
    let yes = match fields.remove(YES) {
        None => false,
        Some(Value::Bool(yes)) => yes,
        Some(_) => return Err(Problem::invalid("yes is true or false")),
    };
    if yes {
        caller.check(Scope::Execute)?;
    }
    if fields.values().any(has_nul) {
        return Err(Problem::invalid("a text holds the character 0"));
    }
    fields.insert("action".to_owned(), name.into());
    let action: Action = serde_json::from_value(fields.into()).map_err(|error| Problem::invalid(error.to_string()))?;
    let by = caller.by(&api.session);
    let mut session = api.session.of_remote(api.crew.clone(), by.clone(), caller.has(Scope::Operator));
    session.yes = yes;
    // A caller that disconnects must not leave a command half done.
    let executing = tokio::spawn(ordered(by, async move {
        let ended = action.execute(&session).await;
        (ended, session.reply())
    }));
    let (ended, mut reply) = executing.await.map_err(|_| Problem::bug(name))?;
    match ended {
        Ok(_) => {
            if !reply.notes.is_empty() {
                reply.result["notes"] = json!(reply.notes);
            }
            Ok(reply.result)
        }
        Err(failure) => Err(Problem { notes: reply.notes, ..failure.into() }),
    }
}

/// A text with the character 0 can be stored by no database.
fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(values) => values.iter().any(has_nul),
        Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// `POST /api/commands/NAME`.
pub async fn command(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Result<Json<Value>, JsonRejection>,
) -> Result<Json<Value>, Problem> {
    let Json(body) = body.map_err(|rejection| Problem::new(rejection.status(), rejection.body_text()))?;
    let Value::Object(fields) = body else { return Err(Problem::invalid("the body is a JSON object")) };
    let Some(key) = headers.get(KEY) else { return perform(&api, &caller, &name, fields).await.map(Json) };
    let is_key = |key: &&str| !key.is_empty() && key.len() <= KEY_CHARS_MAX && !key.contains([' ', '\t']);
    let key = key.to_str().ok().filter(is_key).map(str::to_owned);
    let key =
        key.ok_or_else(|| Problem::invalid(format!("a {KEY} has 1 to {KEY_CHARS_MAX} visible ASCII characters")))?;
    // A caller that disconnects finds the result when it repeats the request.
    let executing = tokio::spawn(async move {
        let payload = crate::ui::text::sha256(&json!([name, fields]).to_string());
        let call = perform(&api, &caller, &name, fields);
        once(&api.crew, &format!("@{}", caller.name()), &key, payload, |_| true, call).await
    });
    executing.await.map_err(|_| Problem::bug("the command"))?.map(Json)
}
