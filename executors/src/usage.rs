//! Reads from the output of a program its last message, its usage or an estimate of it, and its failure.

use std::collections::BTreeMap;

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

/// The end of a run, read from the output of its program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reported {
    /// The output, or the last message of a coding agent.
    pub text: String,
    /// The usage.
    pub usage: Usage,
    /// The reason why it failed, whatever its exit code.
    pub failure: Option<String>,
}

/// Reads the output of a program: a last line that begins with [`USAGE`], or the JSON of Claude Code, Codex, Gemini CLI and
/// opencode, as an object, an array or an event per line. A run whose JSON has no end has failed.
pub fn read(text: &str) -> Reported {
    let unchanged = || Reported { text: text.to_owned(), ..Reported::default() };
    let trimmed = text.trim_end();
    let (before, last) = trimmed.rsplit_once('\n').unwrap_or(("", trimmed));
    if let Some(said) = last.trim_start().strip_prefix(USAGE) {
        let Ok(said) = serde_json::from_str::<Value>(said) else { return unchanged() };
        return Reported { text: before.trim_end().to_owned(), usage: usage_of(&said, &said["cost"]), failure: None };
    }
    let mut run = AgentRun::default();
    let (events, is_edge) = objects(trimmed);
    events.iter().for_each(|event| run.take(event));
    let begins = |with: &str| trimmed.trim_start_matches('[').starts_with(with);
    let signs = ["\"is_error\":true", "\"subtype\":\"error", "\"type\":\"turn.failed\"", "\"error\":{"];
    let has_failed = || signs.iter().any(|sign| trimmed.contains(sign));
    let failure = match run.end {
        Some(failure) if is_edge => failure,
        // The middle of a long output is dropped, which cuts a line in two.
        None if begins("{\"") && text.contains(" bytes dropped ...") => {
            has_failed().then(|| "its output, which is cut, says so".to_owned())
        }
        None if is_edge && run.is_known || begins("{\"type\":\"") && events.is_empty() => {
            Some("its output has no end".to_owned())
        }
        _another => return unchanged(),
    };
    Reported { text: run.text.unwrap_or_else(|| text.to_owned()), usage: run.usage, failure }
}

/// The usage that the output of a run shows which was cut short: the totals of its events so far, else the sum of its messages.
pub fn usage_so_far(text: &str) -> Usage {
    let Reported { usage, .. } = read(text);
    if !usage.is_nothing() {
        return usage;
    }
    let mut run = AgentRun::default();
    objects(text.trim_end()).0.iter().for_each(|event| run.take(event));
    run.so_far()
}

/// The JSON objects that begin a line, also of arrays, and whether the text begins or ends with one: others are quoted in it.
fn objects(whole: &str) -> (Vec<Value>, bool) {
    let (mut found, mut is_edge, mut text) = (Vec::new(), false, whole);
    while !text.is_empty() {
        let begins = text.trim_start().starts_with(['{', '[']);
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        text = match values.next().filter(|_| begins) {
            Some(Ok(value)) => {
                match value {
                    Value::Array(values) => found.extend(values),
                    value => found.push(value),
                }
                is_edge |= text.len() == whole.len() || text[values.byte_offset()..].trim().is_empty();
                &text[values.byte_offset()..]
            }
            Some(Err(_)) | None => text.split_once('\n').map_or("", |(_, after)| after),
        };
    }
    (found, is_edge)
}

/// The run of a coding agent, as its events tell.
#[derive(Default)]
pub(crate) struct AgentRun {
    is_known: bool,
    end: Option<Option<String>>,
    text: Option<String>,
    usage: Usage,
    /// The usage of each message of Claude Code, by its id: an event for each part of a message repeats it.
    messages: BTreeMap<String, Usage>,
    /// The id of its session.
    pub(crate) session: Option<String>,
}

impl AgentRun {
    /// True once it has said how it ended.
    pub(crate) const fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// The totals of its events, else the sum of its messages.
    pub(crate) fn so_far(&self) -> Usage {
        let mut usage = self.usage;
        if usage.is_nothing() {
            self.messages.values().for_each(|message| usage.add(message));
        }
        usage
    }

    pub(crate) fn take(&mut self, event: &Value) {
        let kind = event["type"].as_str().unwrap_or_default();
        let part = &event["part"];
        let fails = |has_failed: bool| has_failed.then(|| failure_of(event));
        let id = ["session_id", "thread_id", "sessionID"].iter().find_map(|name| event[*name].as_str());
        self.session = self.session.take().or_else(|| id.filter(|id| is_session(id)).map(str::to_owned));
        match (kind, event["sessionID"].is_string()) {
            ("thread.started" | "turn.started", _) | ("step_start" | "tool_use", true) => {
                (self.is_known, self.end) = (true, None);
            }
            ("system" | "init", _) if event["session_id"].is_string() => (self.is_known, self.end) = (true, None),
            ("message", _) if event["role"] == "assistant" => {
                let before = self.text.take().filter(|_| event["delta"] == true).unwrap_or_default();
                self.text = Some(before + event["content"].as_str().unwrap_or_default());
            }
            ("assistant", _) if event["message"]["usage"].is_object() => {
                let id = event["message"]["id"].as_str().unwrap_or_default().to_owned();
                self.messages.insert(id, usage_of(&event["message"]["usage"], &Value::Null));
            }
            ("item.completed", _) if event["item"]["type"] == "agent_message" => self.say(&event["item"]["text"]),
            ("text", true) => self.say(&part["text"]),
            ("step_finish", true) => {
                let tokens = [&part["tokens"], &part["tokens"]["cache"]];
                self.count(&tokens, &["input", "read", "write"], &["output", "reasoning"], &part["cost"]);
                self.is_known = true;
                let has_ended = !matches!(part["reason"].as_str(), Some("tool-calls") | None);
                self.end = has_ended.then(|| fails(part["reason"] != "stop"));
            }
            ("error", true) | ("turn.failed", _) => self.end = Some(fails(true)),
            ("turn.completed", _) => {
                self.usage.add(&usage_of(&event["usage"], &Value::Null));
                self.end = Some(None);
            }
            // Gemini's, then Claude's.
            ("result", _)
                if event["status"].is_string() && (event["stats"].is_object() || event["error"].is_object()) =>
            {
                self.usage = usage_of(&event["stats"], &Value::Null);
                self.end = Some(fails(event["status"] != "success"));
            }
            ("result", _) if event["subtype"].is_string() || event["is_error"].is_boolean() => {
                self.say(&event["result"]);
                self.usage = usage_of(&event["usage"], &event["total_cost_usd"]);
                let subtype = event["subtype"].as_str().unwrap_or_default();
                self.end = Some(fails(event["is_error"] == true || subtype.starts_with("error")));
            }
            ("", _)
                if event["session_id"].is_string() && (event["response"].is_string() || event["error"].is_object()) =>
            {
                self.say(&event["response"]);
                for model in event["stats"]["models"].as_object().into_iter().flat_map(serde_json::Map::values) {
                    self.count(&[&model["tokens"]], &["prompt"], &["candidates", "thoughts"], &Value::Null);
                }
                self.end = Some(fails(event["error"].is_object()));
            }
            _another => return,
        }
        self.is_known |= self.end.is_some();
    }

    fn say(&mut self, text: &Value) {
        self.text = text.as_str().map(str::to_owned).or(self.text.take());
    }

    fn count(&mut self, counts: &[&Value], input: &[&str], output: &[&str], cost: &Value) {
        let all = |name: &&str| counts.iter().filter_map(|of| of[*name].as_u64()).fold(0, u64::saturating_add);
        let sum = |names: &[&str]| names.iter().map(all).fold(0, u64::saturating_add);
        let usage = serde_json::json!({ "input_tokens": sum(input), "output_tokens": sum(output) });
        self.usage.add(&usage_of(&usage, cost));
    }
}

/// True for the id of a session, which becomes part of an argument.
fn is_session(id: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    id.len() <= 128 && id.starts_with(|c: char| c.is_ascii_alphanumeric()) && id.chars().all(is_plain)
}

/// The words of an event about a failure.
fn failure_of(event: &Value) -> String {
    let error = &event["error"];
    let places = [
        &event["subtype"],
        &event["part"]["reason"],
        &error["name"],
        &error["type"],
        &event["result"],
        &event["errors"][0],
        &error["message"],
        &error["data"]["message"],
        error,
    ];
    let mut words =
        places.into_iter().filter_map(Value::as_str).filter(|words| *words != "success").collect::<Vec<_>>();
    words.dedup();
    if words.is_empty() { "it gives no reason".to_owned() } else { words.join(": ") }
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

/// The usage of a run of an agent, with the parts that nobody reported as unknown.
pub fn with_unknown(usage: Usage) -> Usage {
    let n_without_tokens = u64::from(usage.input_tokens == 0 && usage.output_tokens == 0);
    Usage { n_without_tokens, n_without_cost: u64::from(usage.cost_micros == 0), ..usage }
}

/// A value that is neither a number of tokens nor a price is ignored with a warning.
fn usage_of(said: &Value, cost: &Value) -> Usage {
    let count = |key: &str| said.get(key).map_or(0, |value| number(key, value.as_u64(), value, TOKENS_MAX));
    let cached = ["cache_creation_input_tokens", "cache_read_input_tokens"]
        .iter()
        .map(|key| count(key))
        .fold(0, u64::saturating_add);
    Usage {
        input_tokens: count("input_tokens").saturating_add(cached),
        output_tokens: count("output_tokens"),
        cost_micros: number("cost", cost.as_f64().and_then(micros), cost, COST_MICROS_MAX),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, remains: &str, input_tokens: u64, output_tokens: u64, cost_micros: u64) {
        let Reported { text: rest, usage, failure } = read(text);
        assert_eq!((rest.as_str(), failure), (remains, None));
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
    fn the_output_of_a_run_that_was_cut_short_shows_its_usage_so_far() {
        let init = "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s\"}\n";
        let message = |id: &str, output: u64| {
            format!(
                "{{\"type\":\"assistant\",\"message\":{{\"id\":\"{id}\",\"usage\":{{\"input_tokens\":10,\
                 \"cache_read_input_tokens\":100,\"output_tokens\":{output}}}}}}}\n"
            )
        };
        let codex = "{\"type\":\"thread.started\"}\n\
                     {\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":90,\"output_tokens\":5}}\n\
                     {\"type\":\"turn.started\"}\n";
        let failed = "{\"type\":\"result\",\"subtype\":\"error_max_turns\",\"is_error\":true,\"total_cost_usd\":1.4,\
                      \"usage\":{\"input_tokens\":2409,\"output_tokens\":900}}";
        for (text, input_tokens, output_tokens, cost_micros) in [
            // A part of a message repeats its usage.
            (format!("{init}{}{}{}{{\"type\":\"assis", message("a", 3), message("a", 3), message("b", 4)), 220, 7, 0),
            (codex.to_owned(), 90, 5, 0),
            (format!("{init}{}{failed}", message("a", 3)), 2409, 900, 1_400_000),
            ("work\nUSAGE: {\"input_tokens\": 7}\n".to_owned(), 7, 0, 0),
            ("work".to_owned(), 0, 0, 0),
            (String::new(), 0, 0, 0),
        ] {
            let expected = Usage { input_tokens, output_tokens, cost_micros, ..Usage::default() };
            assert_eq!(usage_so_far(&text), expected, "{text}");
        }
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

    /// The output of a coding agent; its last message, its tokens, and the words of its failure.
    type Said = (&'static str, &'static str, (u64, u64), Option<&'static str>);

    const RUNS: [Said; 25] = [
        (
            r#"{"type":"result","subtype":"success","is_error":true,"result":"usage limit reached","usage":{"input_tokens":3}}"#,
            "usage limit reached",
            (3, 0),
            Some("usage limit reached"),
        ),
        (
            r#"{"type":"result","subtype":"error_max_turns","is_error":true,"usage":{"input_tokens":9,"output_tokens":2}}"#,
            "",
            (9, 2),
            Some("error_max_turns"),
        ),
        (
            r#"{"type":"result","subtype":"error_during_execution","errors":["lost"],"usage":{}}"#,
            "",
            (0, 0),
            Some("error_during_execution: lost"),
        ),
        // With `verbose` it is an array; it may have several lines.
        (
            r#"[{"type":"system","subtype":"init","session_id":"s"},
            {"type":"result","subtype":"success","is_error":false,"result":"done","usage":{"output_tokens":2}}]"#,
            "done",
            (0, 2),
            None,
        ),
        (
            r#"[{"type":"system","subtype":"init","session_id":"s"},{"type":"result","is_error":true,"result":"no"}]"#,
            "no",
            (0, 0),
            Some("no"),
        ),
        ("warning: a proxy\n{\"type\":\"result\",\"is_error\":true,\"result\":\"no\"}", "no", (0, 0), Some("no")),
        (r#"{"type":"system","subtype":"init","session_id":"s"}"#, "", (0, 0), Some("its output has no end")),
        (r#"{"type":"result","subtype":"success","result":"it was cu"#, "", (0, 0), Some("its output has no end")),
        (
            "{\"type\":\"thread.started\"}\n{\"type\":\"turn.started\"}\n{\"type\":\"turn.failed\",\"error\":{\"message\":\"lost\"}}",
            "",
            (0, 0),
            Some("lost"),
        ),
        ("{\"type\":\"thread.started\"}\n{\"type\":\"turn.started\"}", "", (0, 0), Some("its output has no end")),
        // A lost connection that was found again.
        (
            "{\"type\":\"turn.started\"}\n{\"type\":\"error\",\"message\":\"Reconnecting\"}\n\
          {\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"done\"}}\n\
          {\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":4}}",
            "done",
            (4, 0),
            None,
        ),
        (
            "{\"session_id\":\"s\",\n \"response\":\"done\",\n \"stats\":{\"models\":{\"m\":{\"tokens\":{\"prompt\":5,\"candidates\":2,\"thoughts\":1}}}}}",
            "done",
            (5, 3),
            None,
        ),
        (
            r#"{"session_id":"s","error":{"type":"FatalTurnLimitedError","message":"too many turns"}}"#,
            "",
            (0, 0),
            Some("FatalTurnLimitedError: too many turns"),
        ),
        (
            "{\"type\":\"init\",\"session_id\":\"s\"}\n{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"do\",\"delta\":true}\n\
          {\"type\":\"message\",\"role\":\"assistant\",\"content\":\"ne\",\"delta\":true}\n\
          {\"type\":\"result\",\"status\":\"success\",\"stats\":{\"input_tokens\":6,\"output_tokens\":1}}",
            "done",
            (6, 1),
            None,
        ),
        (
            "{\"type\":\"init\",\"session_id\":\"s\"}\n{\"type\":\"result\",\"status\":\"error\",\"error\":{\"message\":\"safety\"}}",
            "",
            (0, 0),
            Some("safety"),
        ),
        (
            "{\"type\":\"text\",\"sessionID\":\"s\",\"part\":{\"text\":\"done\"}}\n\
          {\"type\":\"step_finish\",\"sessionID\":\"s\",\"part\":{\"reason\":\"stop\",\"cost\":0,\
          \"tokens\":{\"input\":7,\"output\":2,\"reasoning\":1,\"cache\":{\"read\":3,\"write\":0}}}}",
            "done",
            (10, 3),
            None,
        ),
        (
            "{\"type\":\"step_finish\",\"sessionID\":\"s\",\"part\":{\"reason\":\"tool-calls\"}}\n\
          {\"type\":\"error\",\"sessionID\":\"s\",\"error\":{\"name\":\"APIError\",\"data\":{\"message\":\"429\"}}}",
            "",
            (0, 0),
            Some("APIError: 429"),
        ),
        ("{\"type\":\"step_start\",\"sessionID\":\"s\"}", "", (0, 0), Some("its output has no end")),
        ("{\"type\":\"step_finish\",\"sessionID\":\"s\",\"part\":{\"reason\":\"length\"}}", "", (0, 0), Some("length")),
        ("{\"type\":\"result\",\"is_error\":true,\"result\":\"no\"}\nnotice: update", "no", (0, 0), Some("no")),
        ("{\"type\":\"result\",\"result\":\"aa\n... 9 bytes dropped ...\naa\",\"is_error\":false}", "", (0, 0), None),
        (
            "{\"type\":\"result\",\"result\":\"aa\n... 9 bytes dropped ...\naa\",\"is_error\":true}",
            "",
            (0, 0),
            Some("its output, which is cut, says so"),
        ),
        // A program's own JSON, and an answer about such JSON.
        (r#"{"type":"result","status":"error","suite":"a negative test"}"#, "", (0, 0), None),
        (
            "It prints:\n{\"type\":\"result\",\"subtype\":\"error\",\"is_error\":true}\nAll tests pass.",
            "",
            (0, 0),
            None,
        ),
        (
            "Its log ends so:\n{\"type\":\"turn\"}\nand nothing failed",
            "Its log ends so:\n{\"type\":\"turn\"}\nand nothing failed",
            (0, 0),
            None,
        ),
    ];

    #[test]
    fn a_run_fails_if_its_output_says_so_or_has_no_end() {
        for (text, said, tokens, failure) in RUNS {
            let found = read(text);
            assert_eq!(found.failure.as_deref(), failure, "{text}");
            assert_eq!((found.usage.input_tokens, found.usage.output_tokens), tokens, "{text}");
            assert!(found.text == said || said.is_empty() && found.text == text, "{text}: {}", found.text);
        }
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
