//! Settings of plans and fields of tasks, written as KEY=VALUE: on the command line, in the front matter of plan files and in
//! `crewlog.toml`. The value `none` unsets each of them.

use std::path::Path;
use std::str::FromStr;

use crewlog_planner::event::{Budget, Edit, ExcerptProfile, Order, PlannerConfig, RetryClass, RetrySetting, Setting};
use crewlog_planner::plan::{FailurePolicy, NodeKind};
use crewlog_planner::state::Measure;
use crewlog_planner::text::price;
use crewlog_planner::{parse, priority};

use crate::cli::typed::{Parse, millis};
use crate::ui::failure::{Code, Failure};
use crate::ui::text::words;

/// The keys of settings, each on a line with its meaning.
pub const KEYS: &str = include_str!("settings/keys.txt");
/// The same of a task's fields.
pub const FIELDS: &str = include_str!("settings/fields.txt");
const NONE: &str = "none";
const FRONT_MATTER: &str = "crewlog:";
const POLICIES: [FailurePolicy; 4] =
    [FailurePolicy::SkipDependants, FailurePolicy::Continue, FailurePolicy::Stop, FailurePolicy::Ask];
const ORDERS: [(&str, Order); 2] = [("place", Order::Place), ("critical-path", Order::CriticalPath)];
const PROFILES: [(&str, ExcerptProfile); 2] =
    [("coding", ExcerptProfile::Coding), ("analysis", ExcerptProfile::Analysis)];
const BOOLS: [(&str, bool); 2] = [("true", true), ("false", false)];
const RETRY_MAX: u32 = 100;
const RETRY: &str = "retry.";

pub fn help(text: &str, keys: &str) -> String {
    format!("{text}\n\nKEY={NONE} unsets a key. The keys:\n\n{keys}")
}

pub fn names(keys: &'static str) -> impl Iterator<Item = &'static str> {
    keys.lines().filter_map(|line| line.split_whitespace().next())
}

fn listed(names: impl IntoIterator<Item = &'static str>) -> String {
    names.into_iter().collect::<Vec<_>>().join(", ")
}

/// A new value for one setting of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Setting(Setting),
    Budget(Measure, Option<u64>),
    // Profile and system prompt are set when a plan is made, and not changed later.
    Profile(ExcerptProfile),
    SystemPrompt(String),
}

impl Change {
    /// True if it says whether open sessions get the steps of executors.
    pub fn is_of_sessions(&self) -> bool {
        matches!(self, Self::Setting(Setting::Sessions(_)))
    }

    /// True if it only changes when tasks start, retry and stop, not the prompts and not which commands run.
    pub fn is_of_scheduling(&self) -> bool {
        let Self::Setting(setting) = self else { return matches!(self, Self::Budget(..)) };
        !matches!(setting, Setting::TokenBudget(_) | Setting::Compensate(_) | Setting::Standing(_))
    }
}

/// Reads a setting: `parallelism=2`.
impl Parse for Change {
    fn parse(typed: &str) -> Result<Self, String> {
        let (key, value) = pair(typed)?;
        change_of(key, value)
    }
}

fn change_of(key: &str, typed: &str) -> Result<Change, String> {
    let default = PlannerConfig::default();
    let value = (typed != NONE).then_some(typed);
    let number = |default| value.map_or(Ok(default), whole);
    let setting = match key {
        "parallelism" => Setting::Parallelism(number(default.parallelism)?),
        "on-failure" => Setting::OnFailure(value.map_or(Ok(default.on_failure), policy)?),
        "order" => Setting::Order(value.map_or(Ok(default.order), |value| one_of(&ORDERS, value))?),
        "deadline" => Setting::DeadlineMs(value.map(millis).transpose()?),
        "prompt.tokens" => Setting::TokenBudget(number(default.token_budget)?),
        "compensate" => Setting::Compensate(value.map_or(Ok(false), |value| one_of(&BOOLS, value))?),
        "standing" => Setting::Standing(value.map_or(Ok(false), |value| one_of(&BOOLS, value))?),
        "sessions" => Setting::Sessions(value.map_or(Ok(false), |value| one_of(&BOOLS, value))?),
        "budget.tokens" => return Ok(Change::Budget(Measure::Tokens, value.map(whole).transpose()?)),
        "budget.cost" => return Ok(Change::Budget(Measure::Cost, value.map(price).transpose()?)),
        "budget.time" => return Ok(Change::Budget(Measure::Duration, value.map(millis).transpose()?)),
        "prompt.profile" => {
            return Ok(Change::Profile(value.map_or(Ok(default.profile), |value| one_of(&PROFILES, value))?));
        }
        "prompt.system" => return Ok(Change::SystemPrompt(value.unwrap_or_default().to_owned())),
        _of_class if key.starts_with(RETRY) => retry(&key[RETRY.len()..], value)?,
        _limit => {
            let unknown = || format!("there is no setting {key:?}: {}", listed(names(KEYS)));
            let limited = key.strip_prefix("parallelism.").filter(|limited| !limited.is_empty()).ok_or_else(unknown)?;
            let n = value.map(whole).transpose()?;
            match limited.strip_prefix('@') {
                Some(name) => Setting::ParallelismOfExecutor(name.to_owned(), n),
                None => Setting::ParallelismOfKind(kind(limited)?, n),
            }
        }
    };
    Ok(Change::Setting(setting))
}

/// A setting of the retries of a class of failures: `transient.count`.
fn retry(key: &str, value: Option<&str>) -> Result<Setting, String> {
    let (name, field) = key.split_once('.').unwrap_or((key, ""));
    let classes = RetryClass::ALL.iter().map(|class| (<&str>::from(*class), *class)).collect::<Vec<_>>();
    let class = one_of(&classes, name)?;
    let default = class.policy();
    let ms = |default| value.map_or(Ok(default), millis);
    let setting = match field {
        "count" => RetrySetting::Count(value.map_or(Ok(default.count), |value| up_to(value, 1_000))?),
        "first" => RetrySetting::FirstMs(ms(default.first_ms)?),
        "longest" => RetrySetting::LongestMs(ms(default.longest_ms)?),
        "jitter" => {
            let percent = |value: &str| up_to(value.trim_end_matches('%'), 100);
            RetrySetting::JitterPercent(value.map_or(Ok(default.jitter_percent), percent)?)
        }
        _unknown => return Err(format!("{RETRY}{name} has count, first, longest and jitter, not {field:?}")),
    };
    Ok(Setting::Retry(class, setting))
}

/// Changes the settings of a new plan.
pub fn apply(changes: &[Change], config: &mut PlannerConfig) {
    for change in changes {
        match change {
            Change::Setting(setting) => config.set(setting.clone()),
            Change::Budget(measure, limit) => set_limit(&mut config.budget, *measure, *limit),
            Change::Profile(profile) => config.profile = *profile,
            Change::SystemPrompt(text) => config.system_prompt.clone_from(text),
        }
    }
}

/// The changes of a plan under way that has this budget.
pub fn of_open(changes: Vec<Change>, before: Budget) -> Result<Vec<Setting>, String> {
    let fixed = "prompt.profile and prompt.system are set when a plan is made, and cannot be changed";
    let (mut budget, mut settings) = (before, Vec::new());
    for change in changes {
        match change {
            Change::Setting(setting) => settings.push(setting),
            Change::Budget(measure, limit) => set_limit(&mut budget, measure, limit),
            Change::Profile(_) | Change::SystemPrompt(_) => return Err(fixed.into()),
        }
    }
    settings.extend((budget != before).then_some(Setting::Budget(budget)));
    Ok(settings)
}

fn set_limit(budget: &mut Budget, measure: Measure, limit: Option<u64>) {
    match measure {
        Measure::Tokens => budget.tokens = limit,
        Measure::Cost => budget.cost_micros = limit,
        Measure::Duration => budget.duration_ms = limit,
    }
}

/// The settings in the front matter of a plan file, on lines `crewlog: KEY=VALUE KEY=VALUE`.
pub fn of_file(path: &Path, text: &str) -> Result<Vec<Change>, Failure> {
    let refused = |message| Failure::new(Code::Parse, format!("{}:{message}", path.display()));
    let front = text[..parse::front_matter(text)].lines().zip(1..);
    let mut changes = Vec::new();
    for (line, number) in front {
        let Some(written) = line.trim_start().strip_prefix(FRONT_MATTER) else { continue };
        if line.starts_with(char::is_whitespace) || written.trim().is_empty() {
            return Err(refused(format!("{number}: write one line without indentation: crewlog: KEY=VALUE KEY=VALUE")));
        }
        for word in words(written).ok_or_else(|| refused(format!("{number}: a quote is not closed")))? {
            let change = Change::parse(&word).and_then(of_person);
            changes.push(change.map_err(|error| refused(format!("{number}: {word}: {error}")))?);
        }
    }
    Ok(changes)
}

/// Refuses in a file the setting by which a person gives a plan to sessions.
fn of_person(change: Change) -> Result<Change, String> {
    let refused =
        || "sessions is not set in a file: a person gives a plan to sessions, by `crewlog plan set`".to_owned();
    if change.is_of_sessions() { Err(refused()) } else { Ok(change) }
}

/// The settings of a key of the table `[plan]` in `crewlog.toml`; a table below it has keys of its own.
pub fn of_toml(key: &str, value: &toml::Value) -> Result<Vec<Change>, String> {
    let one = |text: &str| change_of(key, text).and_then(of_person).map_err(|error| format!("{key}: {error}"));
    match value {
        toml::Value::Table(table) => {
            let changes = table.iter().map(|(below, value)| of_toml(&format!("{key}.{below}"), value));
            Ok(changes.collect::<Result<Vec<_>, _>>()?.concat())
        }
        toml::Value::String(text) => Ok(vec![one(text)?]),
        toml::Value::Integer(n) => Ok(vec![one(&n.to_string())?]),
        toml::Value::Float(n) => Ok(vec![one(&n.to_string())?]),
        toml::Value::Boolean(is) => Ok(vec![one(&is.to_string())?]),
        toml::Value::Array(_) | toml::Value::Datetime(_) => Err(format!("{key} is one text, number or boolean")),
    }
}

/// Reads a field of a task: `priority=high`.
impl Parse for Edit {
    fn parse(typed: &str) -> Result<Self, String> {
        let (key, typed) = pair(typed)?;
        let value = (typed != NONE).then_some(typed);
        let text = || value.map(str::to_owned);
        let list = |texts: Vec<&str>| texts.into_iter().filter(|text| !text.is_empty()).map(str::to_owned).collect();
        let required = || value.ok_or_else(|| format!("a task always has a {key}"));
        Ok(match key {
            "text" => Edit::Description(required()?.to_owned()),
            "command" => Edit::Command(text()),
            "kind" => Edit::Kind(kind(required()?)?),
            "label" => Edit::Label(text()),
            "note" => Edit::Notes(value.map(str::to_owned).into_iter().collect()),
            "priority" => match value {
                Some(word) if priority::known_rank(word).is_none() => {
                    let known = listed(priority::words());
                    return Err(format!("unknown priority {word:?}: use one of {known}"));
                }
                word => Edit::Priority(word.map(str::to_owned)),
            },
            "assignee" => Edit::Assignee(value.map(|name| name.trim_start_matches('@').to_owned())),
            "retry" => match value.map(whole::<u32>).transpose()? {
                Some(n) if n > RETRY_MAX => return Err(format!("a task is retried at most {RETRY_MAX} times")),
                n => Edit::Retry(n),
            },
            "timeout" => Edit::TimeoutMs(value.map(millis).transpose()?),
            "estimate" => Edit::EstimateMs(value.map(millis).transpose()?),
            "on-failure" => Edit::OnFailure(value.map(policy).transpose()?),
            "files" => Edit::Files(list(value.into_iter().flat_map(|files| files.split(',')).map(str::trim).collect())),
            _unknown => return Err(format!("a task has no field {key:?}: {}", listed(names(FIELDS)))),
        })
    }
}

/// The edits of a task; its notes are one edit.
pub fn edits(typed: Vec<Edit>) -> Vec<Edit> {
    let mut edits = Vec::<Edit>::new();
    for edit in typed {
        let known = edits.iter_mut().find_map(|known| if let Edit::Notes(notes) = known { Some(notes) } else { None });
        match (edit, known) {
            (Edit::Notes(more), Some(notes)) => notes.extend(more),
            (edit, _) => edits.push(edit),
        }
    }
    edits
}

fn pair(typed: &str) -> Result<(&str, &str), String> {
    match typed.split_once('=') {
        Some((key, value)) if !key.is_empty() && !value.trim().is_empty() => Ok((key, value)),
        Some((key, _)) => Err(format!("write {key}=VALUE, or {key}={NONE} to unset it")),
        None => Err("write KEY=VALUE".into()),
    }
}

fn whole<T: FromStr>(typed: &str) -> Result<T, String> {
    typed.parse().map_err(|_| format!("{typed:?} is not a whole number in range"))
}

fn up_to(typed: &str, max: u32) -> Result<u32, String> {
    let n = typed.parse().ok().filter(|n| *n <= max);
    n.ok_or_else(|| format!("{typed:?} is not a whole number from 0 to {max}"))
}

fn one_of<T: Copy>(values: &[(&'static str, T)], typed: &str) -> Result<T, String> {
    let found = values.iter().find(|(name, _)| *name == typed);
    let names = || listed(values.iter().map(|(name, _)| *name));
    found.map(|(_, value)| *value).ok_or_else(|| format!("{typed:?} is not one of: {}", names()))
}

fn policy(typed: &str) -> Result<FailurePolicy, String> {
    one_of(&POLICIES.map(|policy| (policy.into(), policy)), typed)
}

/// A kind of task, by its name in any case.
fn kind(typed: &str) -> Result<NodeKind, String> {
    let found = NodeKind::ALL.iter().find(|kind| kind.as_str().eq_ignore_ascii_case(typed));
    let names = || listed(NodeKind::ALL.iter().map(|kind| kind.as_str()));
    found.copied().ok_or_else(|| format!("unknown kind {typed:?}: use one of {}", names()))
}
