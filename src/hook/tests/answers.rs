//! The output for each host, moment and verdict.

use serde_json::{Value, json};

use super::super::dialect::{Call, Moment, TEXT_CHARS_MAX, Verdict, printed};
use super::super::touches::Edits;
use crate::cli::programs::Host;

const HOSTS: [Host; 4] = [Host::Claude, Host::Codex, Host::Gemini, Host::Opencode];

fn moments() -> [Moment; 7] {
    let edits = Edits::default;
    let stop = Moment::Stop { is_repeated: false };
    let start = Moment::Start;
    [start, Moment::Prompt, Moment::Before(edits()), Moment::After(edits()), stop, Moment::End, Moment::Other]
}

/// The printed object, or the text; null for no output.
fn answer(host: Host, moment: &Moment, verdict: &Verdict) -> Value {
    let (session, cwd) = ("s".to_owned(), "/repo".into());
    let call = Call {
        host,
        event: "E".to_owned(),
        moment: moment.clone(),
        session,
        agent: None,
        cwd,
        tool: None,
        sight: None,
    };
    match printed(&call, verdict) {
        nothing if nothing.is_empty() => Value::Null,
        text => serde_json::from_str(&text).unwrap_or(Value::String(text)),
    }
}

#[test]
fn allow_prints_nothing_anywhere() {
    for host in HOSTS {
        for moment in moments() {
            assert_eq!(answer(host, &moment, &Verdict::Allow(String::new())), Value::Null, "{host:?} {moment:?}");
        }
    }
}

#[test]
fn a_refusal_has_the_form_that_each_host_obeys() {
    let reason = json!({ "hookEventName": "E", "permissionDecision": "deny", "permissionDecisionReason": "T" });
    let (claude, gemini) = (json!({ "hookSpecificOutput": reason }), json!({ "decision": "deny", "reason": "T" }));
    let block = json!({ "decision": "block", "reason": "T" });
    // Before a tool call, and at a stop.
    let cases = [
        (Host::Claude, claude.clone(), block.clone()),
        (Host::Codex, claude.clone(), block.clone()),
        (Host::Gemini, gemini.clone(), gemini),
        (Host::Opencode, claude, block),
    ];
    let [_, _, before, _, stop, ..] = moments();
    for (host, of_call, of_stop) in cases {
        let refuse = Verdict::Refuse("T".into());
        assert_eq!(answer(host, &before, &refuse), of_call, "{host:?}");
        assert_eq!(answer(host, &stop, &refuse), of_stop, "{host:?}");
    }
}

#[test]
fn context_reaches_the_model_where_the_host_has_a_way() {
    let (nothing, context) =
        (|| Value::Null, || json!({ "hookSpecificOutput": { "hookEventName": "E", "additionalContext": "T" } }));
    // Session start, prompt, before and after a tool call.
    let cases = [
        (Host::Claude, [context(), context(), context(), context()]),
        (Host::Codex, [context(), "T".into(), context(), context()]),
        (Host::Gemini, [context(), context(), nothing(), context()]),
        (Host::Opencode, [context(), context(), nothing(), context()]),
    ];
    for (host, expected) in cases {
        let expected = expected.into_iter().chain([nothing(), nothing(), nothing()]);
        for (moment, expected) in moments().iter().zip(expected) {
            assert_eq!(answer(host, moment, &Verdict::Allow("T".into())), expected, "{host:?} {moment:?}");
        }
    }
}

#[test]
fn long_text_is_cut_at_a_character() {
    let cases =
        [(TEXT_CHARS_MAX, "ä".repeat(TEXT_CHARS_MAX)), (TEXT_CHARS_MAX + 1, "ä".repeat(TEXT_CHARS_MAX - 1) + "…")];
    for (n_chars, expected) in cases {
        let told = answer(Host::Codex, &Moment::Prompt, &Verdict::Allow("ä".repeat(n_chars)));
        assert_eq!(told, expected, "{n_chars}");
    }
}
