//! Everything that a person, or a program for one, may order. Each face makes an [`Action`], and one function executes it.

use crewlog_executors::crew::OWN_WORDS;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::cli::programs::Scope;
use crate::commands::leases::{self, EndLeases};
use crate::commands::plan::{self, Checkpoint, Set};
use crate::commands::resume::{self, ResumeTarget};
use crate::commands::run::{self, RunText};
use crate::commands::task::{self, AddTask, Ask, Done, EditTask, Fail, Move, Skip, Withdraw};
use crate::commands::{
    Agree, Answer, Cancel, Fork, Pause, Retry, Send, agree, answer, cancel, fork, pause, retry, send,
};
use crate::context::Session;
use crate::ui::failure::{Code, Failure};

/// The action of an item that waits for a person, with the person's own words in it. The error says why they do not fit.
pub fn of_need(order: &Value, words: &str) -> Result<Action, Failure> {
    serde_json::from_value(filled(order, words)).map_err(|error| Failure::user(error.to_string()))
}

/// True if an order has a place for the person's own words.
pub fn asks_words(order: &Value) -> bool {
    filled(order, "") != *order
}

fn filled(order: &Value, words: &str) -> Value {
    match order {
        Value::String(text) if text == OWN_WORDS => words.into(),
        Value::Array(items) => items.iter().map(|item| setting(item, words)).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), filled(value, words))).collect(),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => order.clone(),
    }
}

/// A setting `KEY=...` with the words as its value.
fn setting(item: &Value, words: &str) -> Value {
    let key = item.as_str().and_then(|text| text.strip_suffix(OWN_WORDS)).filter(|key| key.ends_with('='));
    key.map_or_else(|| item.clone(), |key| format!("{key}{words}").into())
}

/// A kind of action, for programs.
pub struct ActionKind {
    /// The value of `action` in its JSON, and its address over HTTP.
    pub name: &'static str,
    pub about: &'static str,
    pub scope: Scope,
    /// The form of its fields.
    pub schema: fn() -> RefOr<Schema>,
}

/// The kinds of actions: the variant, its form, its name, the scope that a token needs, and its function.
macro_rules! actions {
    ($(#[doc = $about:literal] $variant:ident($form:ident) $name:literal $scope:ident => $execute:path;)+) => {
        /// Something that a person or a program orders. In JSON the field `action` is its name.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        #[serde(tag = "action")]
        pub enum Action {
            $(#[doc = $about] #[serde(rename = $name)] $variant($form),)+
        }

        impl Action {
            pub const KINDS: &[ActionKind] =
                &[$(ActionKind { name: $name, about: $about, scope: Scope::$scope, schema: <$form as PartialSchema>::schema },)+];

            /// Executes it, and prints its result.
            pub async fn execute(self, session: &Session) -> Result<Code, Failure> {
                match self {
                    $(Self::$variant(form) => $execute(session, form).await,)+
                }
            }
        }
    };
}

actions! {
    /// Answer a question
    Answer(Answer) "answer" Operator => answer::answer;
    /// Agree to what tasks run
    Agree(Agree) "agree" Operator => agree::agree;
    /// Cancel a plan or a task
    Cancel(Cancel) "cancel" Write => cancel::cancel;
    /// Pause a plan or a task
    Pause(Pause) "pause" Write => pause::pause;
    /// Resume a plan, whose tasks are left to workers, or let a paused task start
    Resume(ResumeTarget) "resume" Write => resume::resume_detached;
    /// Open failed tasks again
    Retry(Retry) "retry" Write => retry::retry;
    /// Make a plan that continues from a point of another
    Fork(Fork) "fork" Write => fork::fork;
    /// Send a message to agents
    Send(Send) "send" Write => send::send;
    /// Change the settings of a plan
    PlanSet(Set) "plan-set" Write => plan::set;
    /// Name the present point of a plan, or list its checkpoints
    PlanCheckpoint(Checkpoint) "plan-checkpoint" Write => plan::checkpoint;
    /// Add a task to a plan, by default to the standing plan of the project
    TaskAdd(AddTask) "task-add" Write => task::add;
    /// Change a task that has not started
    TaskEdit(EditTask) "task-edit" Write => task::edit;
    /// Skip tasks; the tasks that wait for them may run
    TaskSkip(Skip) "task-skip" Write => task::skip;
    /// Make a task wait for other tasks than before
    TaskMove(Move) "task-move" Write => task::reorder;
    /// Report that a person has done a task
    TaskDone(Done) "task-done" Write => task::done;
    /// Report that a task cannot be done
    TaskFail(Fail) "task-fail" Write => task::fail;
    /// Ask a question about a task, which then waits for the answer
    TaskAsk(Ask) "task-ask" Write => task::ask;
    /// Withdraw a question
    TaskWithdraw(Withdraw) "task-withdraw" Operator => task::withdraw;
    /// End leases of others
    EndLeases(EndLeases) "end-leases" Operator => leases::end;
    /// Make a plan from a text, and leave its tasks to workers
    Run(RunText) "run" Write => run::run_text;
}
