//! The state of a session as one run of a hook shows it: its activity, and its use of the model by its transcript.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crewlog_executors::crew::SHOWN_EVERY;
use crewlog_mq::Timestamp;
use crewlog_planner::crew::agents::{Activity, ModelUsage, RateLimit, SessionState};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How much of the end of a transcript is read, in bytes.
const TRANSCRIPT_BYTES_MAX: u64 = 256 << 10;
/// The most characters and words of a command or a path that are shown.
const DOING_CHARS_MAX: usize = 60;
const DOING_WORDS_MAX: usize = 4;

/// The part of a session's state that an event shows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Sight {
    /// Its state; unset if the event does not change it.
    pub activity: Option<Activity>,
    /// The tool with its file or its command, of which the first words are recorded.
    pub doing: Option<String>,
    /// The kind of the error that ended the turn.
    pub error: Option<String>,
    /// True if a turn begins.
    pub begins: bool,
    /// True if the context was compacted: its use is unknown until the next answer of the model.
    pub compacted: bool,
    /// The file with the session's use of the model.
    pub transcript: Option<PathBuf>,
    /// Its use of the model, if the program itself states it.
    pub usage: ModelUsage,
}

impl Sight {
    /// The state at an event; `kind` is the kind of a notification or an error, or the source of a start.
    pub fn of(event: &str, kind: Option<&str>, tool: Option<&str>) -> Option<Self> {
        let of = |activity| Some(Self { activity: Some(activity), ..Self::default() });
        let tool = tool.map(str::to_owned);
        match event {
            "UserPromptSubmit" | "BeforeAgent" => Some(Self { begins: true, ..of(Activity::Working)? }),
            "PreToolUse" | "BeforeTool" => Some(Self { doing: tool, ..of(Activity::Working)? }),
            "PostToolUse" | "PostToolUseFailure" | "AfterTool" | "PermissionReplied" => of(Activity::Working),
            "PreCompact" | "PreCompress" => {
                Some(Self { doing: Some("compacts its context".to_owned()), ..Self::default() })
            }
            "PostCompact" => Some(Self { compacted: true, ..Self::default() }),
            "SessionStart" if kind == Some("compact") => Some(Self { compacted: true, ..Self::default() }),
            "SessionStart" | "Stop" | "AfterAgent" | "Interrupt" => of(Activity::Idle),
            "PermissionRequest" => Some(Self { doing: tool, ..of(Activity::Waiting)? }),
            "Notification" => {
                let waits = ["permission_prompt", "idle_prompt", "elicitation_dialog", "ToolPermission"];
                kind.filter(|kind| waits.contains(kind)).and_then(|_| of(Activity::Waiting))
            }
            "StopFailure" => {
                let error = Some(kind.unwrap_or("unknown").chars().take(DOING_CHARS_MAX).collect());
                Some(Self { error, ..of(Activity::Error)? })
            }
            _changes_nothing => None,
        }
    }

    /// Cuts the tool call to a few words, once its secrets are replaced: half a secret would not be found.
    pub fn shorten(&mut self, redacted: impl Fn(&str) -> Option<String>) {
        self.doing = self.doing.take().and_then(|text| redacted(&text)).map(|text| in_short(&text));
    }

    /// The state after it, from the one before.
    pub fn after(&self, known: &SessionState, now: Timestamp) -> SessionState {
        let mut state = known.clone();
        if let Some(activity) = self.activity {
            (state.activity, state.error) = (Some(activity), self.error.clone());
        }
        let is_at_rest = matches!(self.activity, Some(Activity::Idle | Activity::Error));
        if self.doing.is_some() || self.begins || self.compacted || is_at_rest {
            state.doing.clone_from(&self.doing);
        }
        if self.begins {
            state.turn = now;
        }
        // A transcript grows slowly, but the end of a turn is the last time to read it.
        let is_due = self.activity == Some(Activity::Idle) || now.since(known.at) >= SHOWN_EVERY;
        let read = self.transcript.as_deref().filter(|_| is_due).and_then(|path| end_of(path).ok());
        state.usage.update(read.map(|text| of_transcript(&text)).unwrap_or_default());
        state.usage.update(self.usage.clone());
        if self.compacted {
            (state.usage.context_usage, state.usage.tokens) = (None, None);
        }
        state
    }
}

/// A tool call in a few words, without assignments of variables, which may be secret.
fn in_short(text: &str) -> String {
    let words = text.split_whitespace().filter(|word| !word.contains('='));
    words.take(DOING_WORDS_MAX).collect::<Vec<_>>().join(" ").chars().take(DOING_CHARS_MAX).collect()
}

/// The end of a file from a whole line on.
fn end_of(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Ok(String::new());
    }
    let from = file.metadata()?.len().saturating_sub(TRANSCRIPT_BYTES_MAX);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(TRANSCRIPT_BYTES_MAX).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(if from == 0 { text } else { text.split_once('\n').map_or_else(String::new, |(_, rest)| rest.to_owned()) })
}

/// The use of the model by the last lines of a transcript that state it. The transcripts of Claude Code and Gemini CLI do not
/// say how large the context is.
fn of_transcript(text: &str) -> ModelUsage {
    let last = |marks: &[&str], of: fn(&Value) -> Option<ModelUsage>| {
        let lines = text.lines().rev().filter(|line| marks.iter().any(|mark| line.contains(mark)));
        lines.filter_map(|line| of(&serde_json::from_str(line).ok()?)).next().unwrap_or_default()
    };
    let mut usage = last(&["\"usage\"", "\"token_count\"", "\"tokens\""], of_line);
    usage.update(last(&["\"cost-state\""], |line| {
        let cost_micros = micros(line["totalCostUSD"].as_f64()?).filter(|_| line["hasUnknownModelCost"] != true);
        Some(ModelUsage { cost_micros, ..ModelUsage::default() })
    }));
    usage
}

fn of_line(line: &Value) -> Option<ModelUsage> {
    let count = |path: &str| line.pointer(path).and_then(Value::as_u64);
    // Codex
    if line.pointer("/payload/type").and_then(Value::as_str) == Some("token_count") {
        let tokens = count("/payload/info/last_token_usage/total_tokens")?;
        let window = count("/payload/info/model_context_window").filter(|window| *window > 0);
        let context_usage = window.map(|window| percent(tokens as f64 * 100.0 / window as f64));
        let limit = |name: &str| {
            let limit = line.pointer(&format!("/payload/rate_limits/{name}")).filter(|limit| !limit.is_null())?;
            Some((window_named(limit).unwrap_or_else(|| name.to_owned()), limit_of(limit, "used_percent")?))
        };
        let limits = ["primary", "secondary"].iter().filter_map(|name| limit(name)).collect();
        return Some(ModelUsage { context_usage, tokens: Some(tokens), cost_micros: None, limits });
    }
    // Claude Code: the lines of subagents are not of the main chain.
    if let Some(usage) = line.pointer("/message/usage").filter(|_| line["isSidechain"] != true) {
        let parts = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"];
        let tokens = parts.iter().filter_map(|part| usage[part].as_u64()).fold(0, u64::saturating_add);
        // Claude Code writes an error as an answer without tokens.
        if tokens == 0 {
            return None;
        }
        return Some(ModelUsage { tokens: Some(tokens), ..ModelUsage::default() });
    }
    // Gemini CLI
    let tokens = count("/tokens/total").filter(|_| line["type"] == "gemini");
    tokens.map(|tokens| ModelUsage { tokens: Some(tokens), ..ModelUsage::default() })
}

/// The use of the model by the input of Claude Code's status line.
pub fn of_status_line(input: &Value) -> ModelUsage {
    let number = |path: &str| input.pointer(path).and_then(Value::as_f64);
    let limits = input["rate_limits"].as_object().into_iter().flatten();
    let limits = limits.filter_map(|(window, limit)| Some((window.clone(), limit_of(limit, "used_percentage")?)));
    ModelUsage {
        context_usage: number("/context_window/used_percentage").map(percent),
        tokens: None,
        cost_micros: number("/cost/total_cost_usd").and_then(micros),
        limits: limits.take(4).collect(),
    }
}

fn limit_of(limit: &Value, used: &str) -> Option<RateLimit> {
    let until = limit["resets_at"].as_i64().and_then(|seconds| seconds.checked_mul(1_000_000)).map(Timestamp);
    Some(RateLimit { used: percent(limit[used].as_f64()?), until })
}

/// The name of a window by its minutes, as Claude Code names its own.
fn window_named(limit: &Value) -> Option<String> {
    match limit["window_minutes"].as_u64()? {
        300 => Some("five_hour".to_owned()),
        10_080 => Some("seven_day".to_owned()),
        minutes => Some(format!("{minutes}_min")),
    }
}

fn micros(usd: f64) -> Option<u64> {
    (usd.is_finite() && usd >= 0.0).then_some((usd * 1_000_000.0).round() as u64)
}

/// Rounded down, so that only a limit that is used up has 100.
fn percent(value: f64) -> u8 {
    value.clamp(0.0, 100.0) as u8
}
