//! Commands over HTTP: those of the command line that append to the log, field by field. Both interfaces offer the same
//! commands, and print the same results.

use std::sync::{Arc, LazyLock};

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use clap::builder::ValueRange;
use clap::{ArgAction, CommandFactory, FromArgMatches};
use serde_json::{Map, Value, json};

use super::Api;
use super::access::{Caller, Scope};
use super::problem::Problem;
use crate::commands::Cli;
use crate::context::Remote;
use crate::serve::mcp::once;
use crate::ui::failure::Failure;

/// The header that makes a repeated request run only once.
pub const KEY: &str = "idempotency-key";
const KEY_CHARS_MAX: usize = 200;
/// The field for text that the command line would read from standard input.
const TEXT: &str = "text";

/// A command that is available over HTTP.
pub struct Spec {
    pub name: &'static str,
    /// The first words of its command line.
    words: &'static [&'static str],
    /// Its fields, if not all.
    fields: &'static [&'static str],
    pub scope: Scope,
    /// True if its text replaces standard input.
    reads_text: bool,
    /// Fields that are required here because the command line would do more without them.
    needs: &'static [&'static str],
    about: &'static str,
}

/// Leaves the tasks of a plan to workers.
const DETACH: &str = "--detach";

const fn spec(name: &'static str, words: &'static [&'static str]) -> Spec {
    Spec { name, words, fields: &[], scope: Scope::Write, reads_text: false, needs: &[], about: "" }
}

/// The commands, by name.
pub static SPECS: [Spec; 19] = [
    Spec { scope: Scope::Operator, ..spec("answer", &["answer"]) },
    spec("cancel", &["cancel"]),
    spec("pause", &["pause"]),
    Spec { fields: &["target"], needs: &["target"], ..spec("resume", &["resume", DETACH]) },
    spec("retry", &["retry"]),
    spec("fork", &["fork"]),
    spec("send", &["send"]),
    spec("plan-set", &["plan", "set"]),
    Spec { needs: &["name"], ..spec("plan-checkpoint", &["plan", "checkpoint"]) },
    spec("task-add", &["task", "add"]),
    spec("task-edit", &["task", "edit"]),
    spec("task-skip", &["task", "skip"]),
    spec("task-move", &["task", "move"]),
    spec("task-done", &["task", "done"]),
    spec("task-fail", &["task", "fail"]),
    spec("task-ask", &["task", "ask"]),
    Spec { scope: Scope::Operator, ..spec("task-withdraw", &["task", "withdraw"]) },
    Spec {
        fields: &["force", "reason"],
        needs: &["force", "reason"],
        about: "End leases of others, by their numbers",
        scope: Scope::Operator,
        ..spec("end-leases", &["leases"])
    },
    Spec {
        fields: &["format", "parallel", "set"],
        reads_text: true,
        ..spec("run", &["run", DETACH, "--no-model", "-"])
    },
];

static COMMAND: LazyLock<clap::Command> = LazyLock::new(|| {
    let mut command = Cli::command();
    command.build();
    command
});

impl Spec {
    fn args(&self) -> impl Iterator<Item = &'static clap::Arg> + '_ {
        let mut words = self.words.iter().filter(|word| !word.starts_with('-'));
        let found = words.try_fold(&*COMMAND, |command, word| command.find_subcommand(word));
        let is_own = |arg: &&clap::Arg| !arg.is_global_set() && !matches!(arg.get_id().as_str(), "help" | "version");
        let is_field = |arg: &&clap::Arg| self.fields.is_empty() || self.fields.contains(&arg.get_id().as_str());
        found.into_iter().flat_map(clap::Command::get_arguments).filter(is_own).filter(is_field)
    }

    /// The JSON schema of the fields.
    pub fn schema(&self) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for arg in self.args() {
            let mut schema = match arg.get_action() {
                ArgAction::SetTrue => json!({ "type": "boolean" }),
                ArgAction::Append => json!({ "type": "array", "items": { "type": "string" } }),
                _set if is_list(arg) => json!({ "type": "array", "items": { "type": "string" } }),
                _set if !arg.get_possible_values().is_empty() => {
                    let values = arg.get_possible_values();
                    json!({ "enum": values.iter().map(clap::builder::PossibleValue::get_name).collect::<Vec<_>>() })
                }
                _set => json!({ "type": ["string", "integer"] }),
            };
            schema["description"] = arg.get_help().map(ToString::to_string).unwrap_or_default().into();
            if arg.is_required_set() || self.needs.contains(&arg.get_id().as_str()) {
                required.push(arg.get_id().to_string());
            }
            properties.insert(arg.get_id().to_string(), schema);
        }
        if self.reads_text {
            properties.insert(TEXT.to_owned(), json!({ "type": "string", "description": "The text of the plan" }));
            required.push(TEXT.to_owned());
        }
        let yes = "Agree: to run commands, which needs the scope execute; of an agent's question, to what it asks";
        properties.insert("yes".to_owned(), json!({ "type": "boolean", "description": yes }));
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
    }

    /// The description of the command, from its help.
    pub fn about(&self) -> String {
        let mut words = self.words.iter().filter(|word| !word.starts_with('-'));
        let found = words.try_fold(&*COMMAND, |command, word| command.find_subcommand(word));
        let about = found.and_then(|command| command.get_about()).map(ToString::to_string).unwrap_or_default();
        if self.about.is_empty() { about } else { self.about.to_owned() }
    }

    /// The words of the command line.
    fn words(&self, fields: &Map<String, Value>) -> Result<Vec<String>, Problem> {
        let mut words: Vec<String> = ["crewlog"].iter().chain(self.words).map(|word| (*word).to_owned()).collect();
        let mut known: Vec<&str> = vec!["yes"];
        if self.reads_text {
            known.push(TEXT);
        }
        if let Some(missing) = self.needs.iter().find(|field| !fields.contains_key(**field)) {
            return Err(Problem::invalid(format!("{missing} has to be given")));
        }
        let (mut positional, mut missing) = (Vec::new(), None);
        for arg in self.args() {
            let name = arg.get_id().as_str();
            known.push(name);
            let values = match fields.get(name) {
                None => {
                    if arg.is_positional() {
                        missing.get_or_insert(name);
                    }
                    continue;
                }
                Some(Value::Bool(is_set)) if matches!(arg.get_action(), ArgAction::SetTrue) => {
                    words.extend(is_set.then(|| format!("--{}", arg.get_long().unwrap_or(name))));
                    continue;
                }
                Some(value) => texts(name, value, is_list(arg))?,
            };
            match arg.get_long().filter(|_| !arg.is_positional()) {
                Some(long) => words.extend(values.iter().map(|value| format!("--{long}={value}"))),
                None => {
                    if let Some(missing) = missing {
                        return Err(Problem::invalid(format!("{name} is given, and {missing} is not")));
                    }
                    positional.extend(values);
                }
            }
        }
        if let Some(unknown) = fields.keys().find(|field| !known.contains(&field.as_str())) {
            let known = known.join(", ");
            return Err(
                Problem::invalid(format!("{} has no field {unknown:?}", self.name)).hint(format!("it has {known}"))
            );
        }
        if !positional.is_empty() {
            words.push("--".to_owned());
            words.extend(positional);
        }
        Ok(words)
    }
}

fn is_list(arg: &clap::Arg) -> bool {
    let takes_many = arg.get_num_args().is_some_and(|range| range.max_values() > 1 && range != ValueRange::new(0..=1));
    matches!(arg.get_action(), ArgAction::Append) || takes_many
}

/// The words of a field's value.
fn texts(name: &str, value: &Value, is_list: bool) -> Result<Vec<String>, Problem> {
    let text = |value: &Value| match value {
        Value::String(text) if !text.contains('\0') => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(is) => Ok(is.to_string()),
        _other => Err(Problem::invalid(format!("{name} is no text without the character 0"))),
    };
    match value {
        Value::Array(values) if is_list => values.iter().map(text).collect(),
        Value::Array(_) => Err(Problem::invalid(format!("{name} has one value"))),
        one => Ok(vec![text(one)?]),
    }
}

/// Runs a command. Returns the JSON that the command line would print, with its other messages under `notes`.
pub async fn perform(api: &Api, caller: &Caller, name: &str, fields: &Map<String, Value>) -> Result<Value, Problem> {
    let spec = SPECS.iter().find(|spec| spec.name == name);
    let spec = spec.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, format!("there is no command {name:?}")))?;
    caller.check(spec.scope)?;
    let yes = match fields.get("yes") {
        None => false,
        Some(Value::Bool(yes)) => *yes,
        Some(_) => return Err(Problem::invalid("yes is true or false")),
    };
    // For `answer`, `yes` answers an agent's question; it is not consent.
    if yes && spec.name != "answer" {
        caller.check(Scope::Execute)?;
    }
    let input = match fields.get(TEXT).filter(|_| spec.reads_text) {
        Some(Value::String(text)) => Some(text.clone()),
        None if !spec.reads_text => None,
        Some(_) | None => return Err(Problem::invalid("text has to be given")),
    };
    let words = spec.words(fields)?;
    let matches = COMMAND.clone().try_get_matches_from(words).and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = matches.map_err(|error| {
        let text = error.render().to_string();
        let is_said = |line: &&str| !line.starts_with("Usage:") && !line.starts_with("For more");
        let said = text.lines().take_while(is_said).map(str::trim).filter(|line| !line.is_empty());
        Problem::invalid(said.collect::<Vec<_>>().join(" ").trim_start_matches("error: ").to_owned())
    })?;
    let (crew, is_person) = (api.crew.clone(), caller.has(Scope::Operator));
    let remote = Remote { crew, name: caller.name(), is_person, input, reply: Default::default() };
    let session = api.session.of_remote(remote, yes);
    // A caller that disconnects must not leave a command half done.
    let carrying_out = tokio::spawn(async move {
        let ended = crate::commands::carry_out(&session, cli.command).await;
        (ended, session.reply())
    });
    let (ended, reply) = carrying_out.await.map_err(|_| Problem::bug(name))?;
    match ended {
        Ok(_) => {
            let mut result: Value = serde_json::from_slice(&reply.result).unwrap_or_else(|_| json!({}));
            if !reply.notes.is_empty() {
                result["notes"] = json!(reply.notes);
            }
            Ok(result)
        }
        Err(failure) => Err(Problem { notes: reply.notes, ..Failure::into(failure) }),
    }
}

/// `POST /api/commands/NAME`.
pub async fn command(
    State(api): State<Arc<Api>>,
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Result<Json<Value>, JsonRejection>,
) -> Result<Json<Value>, Problem> {
    let Json(body) = body.map_err(|rejection| Problem::new(rejection.status(), rejection.body_text()))?;
    let Value::Object(fields) = body else { return Err(Problem::invalid("the body is a JSON object")) };
    let Some(key) = headers.get(KEY) else { return perform(&api, &caller, &name, &fields).await.map(Json) };
    let key = key.to_str().ok().filter(|key| (1..=KEY_CHARS_MAX).contains(&key.len())).map(str::to_owned);
    let key = key.ok_or_else(|| Problem::invalid(format!("an idempotency key has 1 to {KEY_CHARS_MAX} characters")))?;
    // A caller that disconnects finds the result when it repeats the request.
    let carrying_out = tokio::spawn(async move {
        let payload = crate::ui::text::sha256(&json!([name, fields]).to_string());
        let call = perform(&api, &caller, &name, &fields);
        once(&api.crew, &format!("@{}", caller.name()), &key, payload, call).await
    });
    let carried_out = carrying_out.await;
    carried_out.map_err(|_| Problem::bug("the command"))?.map(Json)
}
