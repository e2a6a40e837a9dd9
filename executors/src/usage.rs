//! The usage that a program reports at the end of its output, or an estimate.

use crewlog_planner::event::Usage;
use crewlog_planner::text::{estimate_tokens, truncate};
use serde_json::Value;

/// The beginning of a last line that reports usage, before `{"input_tokens": ..., "output_tokens": ..., "cost": ...}`.
pub const USAGE: &str = "USAGE:";

/// More tokens than any run can use.
const TOKENS_MAX: u64 = 1_000_000_000_000;
/// A higher cost than any run can have, in millionths.
const COST_MICROS_MAX: u64 = 1_000_000_000_000_000;
/// The most characters of an invalid value that are shown.
const SAID_CHARS_MAX: usize = 100;

/// Input tokens that coding agents count separately.
const CACHED: [&str; 2] = ["cache_creation_input_tokens", "cache_read_input_tokens"];

/// A program's output without its report of usage, and that report. Three forms are recognised at the end: a line that
/// begins with [`USAGE`]; the document of Claude Code's JSON output; the last event of Codex's JSON output. For the
/// latter two the agent's last message remains.
pub fn split(text: &str) -> (String, Usage) {
    let unchanged = || (text.to_owned(), Usage::default());
    let trimmed = text.trim_end();
    let (before, last) = trimmed.rsplit_once('\n').unwrap_or(("", trimmed));
    if let Some(said) = last.trim_start().strip_prefix(USAGE) {
        return match serde_json::from_str::<Value>(said) {
            Ok(said) => (before.trim_end().to_owned(), usage_of(&said, said.get("cost"))),
            Err(_) => unchanged(),
        };
    }
    if !last.starts_with('{') {
        return unchanged();
    }
    let Ok(said) = serde_json::from_str::<Value>(last) else { return unchanged() };
    match (said["type"].as_str(), said["result"].as_str(), &said["usage"]) {
        (Some("result"), Some(result), usage @ Value::Object(_)) => {
            (result.to_owned(), usage_of(usage, said.get("total_cost_usd")))
        }
        (Some("turn.completed"), _, usage @ Value::Object(_)) => {
            (last_message(before).unwrap_or_else(|| before.to_owned()), usage_of(usage, None))
        }
        (_, _, _) => unchanged(),
    }
}

/// The usage of a run: as reported by the program; if that lacks tokens and they are wanted, an estimate from the
/// characters of its prompt and output.
pub fn with_estimate(usage: Usage, is_wanted: bool, prompt: &str, output: &str) -> Usage {
    if usage.input_tokens > 0 || usage.output_tokens > 0 || !is_wanted {
        return usage;
    }
    let (input_tokens, output_tokens) = (estimate_tokens(prompt), estimate_tokens(output));
    Usage { input_tokens, output_tokens, estimated_tokens: input_tokens + output_tokens, ..usage }
}

/// A value that is neither a number of tokens nor a price is ignored with a warning.
fn usage_of(said: &Value, cost: Option<&Value>) -> Usage {
    let count = |key: &str| said.get(key).map_or(0, |value| number(key, value.as_u64(), value, TOKENS_MAX));
    let cached = CACHED.iter().map(|key| count(key)).fold(0, u64::saturating_add);
    Usage {
        input_tokens: count("input_tokens").saturating_add(cached),
        output_tokens: count("output_tokens"),
        cost_micros: cost.map_or(0, |value| number("cost", value.as_f64().and_then(micros), value, COST_MICROS_MAX)),
        ..Usage::default()
    }
}

/// A number as reported, if it is plausible.
fn number(name: &str, read: Option<u64>, said: &Value, max: u64) -> u64 {
    match read.filter(|read| *read <= max) {
        Some(read) => read,
        None if said.is_null() => 0,
        None => {
            let said = truncate(&said.to_string(), SAID_CHARS_MAX);
            tracing::warn!("ignored implausible usage: {name} = {said}");
            0
        }
    }
}

/// A price in millionths, if it is one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is no less than 0, and too much is the most"
)]
fn micros(cost: f64) -> Option<u64> {
    (cost >= 0.0).then(|| (cost * 1e6).round() as u64)
}

/// The agent's last message, from output with one event per line.
fn last_message(events: &str) -> Option<String> {
    let events = events.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let messages = events.filter(|event| event["item"]["type"] == "agent_message");
    messages.filter_map(|event| event["item"]["text"].as_str().map(str::to_owned)).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, remains: &str, input_tokens: u64, output_tokens: u64, cost_micros: u64) {
        let (rest, usage) = split(text);
        assert_eq!(rest, remains);
        assert_eq!(usage, Usage { input_tokens, output_tokens, cost_micros, ..Usage::default() });
    }

    #[test]
    fn a_usage_line_at_the_end_is_removed_from_the_result() {
        let said = "USAGE: {\"input_tokens\": 1200, \"output_tokens\": 34, \"cost\": 0.0125}";
        check(&format!("painted\nQUESTION: which?\n{said}\n"), "painted\nQUESTION: which?", 1_200, 34, 12_500);
        check("USAGE: {\"output_tokens\": 3}", "", 0, 3, 0);
        check("USAGE: {\"cost\": -1}", "", 0, 0, 0);
    }

    #[test]
    fn impossible_usage_values_are_ignored_and_the_others_count() {
        for (cost, tokens) in
            [("1e308", "\"many\""), ("-3", "-1"), ("\"free\"", "1.5"), ("1000000001", "1000000000001")]
        {
            let said = format!("USAGE: {{\"cost\": {cost}, \"input_tokens\": {tokens}, \"output_tokens\": 7}}");
            check(&format!("painted\n{said}\n"), "painted", 0, 7, 0);
        }
        check("USAGE: {\"cost\": null, \"input_tokens\": 0}", "", 0, 0, 0);
        check("USAGE: {\"cost\": 1000000000}", "", 0, 0, COST_MICROS_MAX);
    }

    #[test]
    fn the_json_of_coding_agents_gives_their_usage_and_their_last_message() {
        let claude = "{\"type\":\"result\",\"subtype\":\"success\",\"total_cost_usd\":0.5,\"result\":\"painted\\nblue\",\
                      \"usage\":{\"input_tokens\":4,\"cache_creation_input_tokens\":100,\"cache_read_input_tokens\":20,\
                      \"output_tokens\":7}}";
        check(claude, "painted\nblue", 124, 7, 500_000);
        let codex = "{\"type\":\"thread.started\"}\n\
                     {\"type\":\"item.completed\",\"item\":{\"id\":\"a\",\"type\":\"agent_message\",\"text\":\"done\"}}\n\
                     {\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":90,\"cached_input_tokens\":80,\"output_tokens\":5}}";
        check(codex, "done", 90, 5, 0);
    }

    #[test]
    fn reported_usage_takes_precedence_over_an_estimate() {
        let (prompt, said) = ("Paint the door blue, please.", "I painted it.");
        let reported = Usage { input_tokens: 900, output_tokens: 5, ..Usage::default() };
        for reported in [reported, Usage { input_tokens: 0, ..reported }, Usage { output_tokens: 0, ..reported }] {
            assert_eq!(with_estimate(reported, true, prompt, said), reported);
        }
        let nothing = Usage { cost_micros: 3, ..Usage::default() };
        assert_eq!(with_estimate(nothing, false, prompt, said), nothing, "nobody wants to know");
        let estimated = Usage { input_tokens: 7, output_tokens: 4, estimated_tokens: 11, ..nothing };
        assert_eq!(with_estimate(nothing, true, prompt, said), estimated);
    }

    #[test]
    fn output_without_usage_is_kept_unchanged() {
        for text in ["", "painted\n", "USAGE: a lot", "{\"type\":\"result\"}", "{\"a\": 1}", "{", "USAGE: {}\nmore"] {
            check(text, text, 0, 0, 0);
        }
    }
}
