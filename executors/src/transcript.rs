//! Shows the events that Claude Code and Codex print, one line of JSON for each, as a person reads them.

use crewlog_planner::text::{single_line, truncate};
use serde_json::Value;

/// The most characters of a tool's input or result.
const TOOL_CHARS_MAX: usize = 200;
/// The fields of a tool's input that say the most.
const INPUTS: [&str; 7] = ["command", "file_path", "path", "pattern", "url", "query", "description"];

/// A line of an output for a person: text, tool, result or cost; empty for an event that says nothing, and the line itself if
/// it is of another program.
#[must_use]
pub fn shown(line: &str) -> String {
    let event = Some(line).filter(|line| line.trim_start().starts_with('{'));
    let event = event.and_then(|line| serde_json::from_str::<Value>(line).ok());
    event.and_then(|event| words(&event)).unwrap_or_else(|| line.to_owned())
}

/// None for an event of another program.
fn words(event: &Value) -> Option<String> {
    let item = &event["item"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Some(match event["type"].as_str()? {
        "system" if event["session_id"].is_string() => match event["subtype"].as_str() {
            Some("init") => format!("session {}", text(&event["session_id"])),
            _another => String::new(),
        },
        "thread.started" => format!("session {}", text(&event["thread_id"])),
        "assistant" | "user" if event["message"].is_object() => of_message(&event["message"]["content"]),
        "turn.started" | "item.updated" => String::new(),
        "item.started" => match item["type"].as_str()? {
            "command_execution" => format!("> {}", brief(&item["command"])),
            _told_when_it_ends => String::new(),
        },
        "item.completed" => match item["type"].as_str()? {
            "agent_message" => text(&item["text"]),
            "command_execution" => format!("  {}: {}", item["exit_code"], brief(&item["aggregated_output"])),
            "file_change" => {
                let paths = item["changes"].as_array()?.iter().map(|change| text(&change["path"]));
                format!("> edit {}", paths.collect::<Vec<_>>().join(", "))
            }
            "mcp_tool_call" => {
                format!("> {}.{} {}", text(&item["server"]), text(&item["tool"]), brief(&item["arguments"]))
            }
            another => format!("> {another}"),
        },
        "turn.completed" => format!("={}", usage(&event["usage"], &Value::Null)),
        "turn.failed" => format!("= failed: {}", text(&event["error"]["message"])),
        "result" if event["subtype"].is_string() => {
            format!("= {}{}", text(&event["subtype"]), usage(&event["usage"], &event["total_cost_usd"]))
        }
        _another => return None,
    })
}

/// The parts of a message of Claude Code.
fn of_message(content: &Value) -> String {
    let part = |part: &Value| match part["type"].as_str() {
        Some("text") => part["text"].as_str().unwrap_or_default().to_owned(),
        Some("tool_use") => {
            let input = &part["input"];
            let best = INPUTS.iter().map(|name| &input[*name]).find(|value| value.is_string());
            format!("> {} {}", part["name"].as_str().unwrap_or_default(), brief(best.unwrap_or(input)))
        }
        Some("tool_result") => match part["content"].as_array() {
            Some(parts) => {
                parts.iter().map(|part| format!("  {}", brief(&part["text"]))).collect::<Vec<_>>().join("\n")
            }
            None => format!("  {}", brief(&part["content"])),
        },
        _another => String::new(),
    };
    match content.as_array() {
        Some(parts) => parts.iter().map(part).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n"),
        None => content.as_str().unwrap_or_default().to_owned(),
    }
}

fn brief(value: &Value) -> String {
    match value.as_str() {
        Some(text) => single_line(text.trim(), TOOL_CHARS_MAX),
        None => truncate(&value.to_string(), TOOL_CHARS_MAX),
    }
}

fn usage(usage: &Value, cost: &Value) -> String {
    let tokens = |name: &str| usage[name].as_u64().unwrap_or_default();
    let cost = cost.as_f64().map_or_else(String::new, |cost| format!(", cost {cost}"));
    format!(" {} tokens in, {} out{cost}", tokens("input_tokens"), tokens("output_tokens"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_agents_are_shown_as_a_transcript_and_other_lines_as_they_are() {
        for (line, expected) in [
            (r#"{"type":"system","subtype":"init","session_id":"s1","model":"m"}"#, "session s1"),
            (
                r#"{"type":"assistant","message":{"content":[{"type":"text","text":"I look."},{"type":"tool_use","name":"Bash","input":{"command":"ls -la"}}]}}"#,
                "I look.\n> Bash ls -la",
            ),
            (r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"a\nb"}]}}"#, "  a b"),
            (
                r#"{"type":"user","message":{"content":[{"type":"tool_result","content":[{"type":"text","text":"c"}]}]}}"#,
                "  c",
            ),
            (
                r#"{"type":"result","subtype":"success","usage":{"input_tokens":7,"output_tokens":2},"total_cost_usd":0.5}"#,
                "= success 7 tokens in, 2 out, cost 0.5",
            ),
            (r#"{"type":"thread.started","thread_id":"t1"}"#, "session t1"),
            (r#"{"type":"item.started","item":{"type":"command_execution","command":"cargo test"}}"#, "> cargo test"),
            (
                r#"{"type":"item.completed","item":{"type":"command_execution","aggregated_output":"ok\n","exit_code":0}}"#,
                "  0: ok",
            ),
            (r#"{"type":"item.completed","item":{"type":"agent_message","text":"Done.\nReally."}}"#, "Done.\nReally."),
            (
                r#"{"type":"item.completed","item":{"type":"file_change","changes":[{"path":"a.rs"},{"path":"b.rs"}]}}"#,
                "> edit a.rs, b.rs",
            ),
            (r#"{"type":"turn.completed","usage":{"input_tokens":3,"output_tokens":1}}"#, "= 3 tokens in, 1 out"),
            (r#"{"type":"turn.failed","error":{"message":"limit"}}"#, "= failed: limit"),
            (r#"{"type":"turn.started"}"#, ""),
            (r#"{"level":"info","type":"line"}"#, r#"{"level":"info","type":"line"}"#),
            ("{ not json", "{ not json"),
            ("plain", "plain"),
        ] {
            assert_eq!(shown(line), expected, "{line}");
        }
    }
}
