//! The views: the state of the log as of a position. The command line, MCP, HTTP, the page and the terminal view all
//! show these, and fold nothing themselves.
//!
//! A view is made of folds of events, kept in memory at some positions ([`warm`](crewlog_executors::crew::warm)), so it
//! is cheap at the head and at any position. Each has a JSON form, documented by its type. A view includes only appends
//! that are complete at its position.

mod as_of;
pub mod at;
pub mod changes;
mod conflicts;
mod crew;
mod events;
pub mod facts;
mod files;
mod forms;
mod graph;
pub mod history;
mod lists;
pub mod names;
mod points;
mod prompt;
pub mod queries;
mod shown;
mod since;
mod states;
mod task_names;
pub mod text;
mod timeline;
mod track;
pub mod waiting;
mod why;

pub use self::as_of::{AsOf, Views, read_all, views};
pub use self::events::{EventDetail, Linked};
pub use self::forms::*;
pub use self::graph::{GraphNode, PlanGraph};
pub use self::points::{CheckpointJson, ForkJson, checkpoints_of};
pub use self::prompt::{Prompt, prompt_of_attempt};
pub use self::shown::{PlanShown, TaskShown, name_of};
pub use self::since::Since;
pub use self::states::counts_of;
pub use self::task_names::TaskNames;
pub use self::timeline::{LaneBar, Timeline, of_executor, time_of_day};
pub use self::track::{Counts, N_STATES, Track, ViewedPlan};
