//! What is printed for each host, moment and verdict.

use serde_json::{Value, json};

use super::super::answer::{TEXT_CHARS_MAX, Verdict, render};
use super::super::{Host, Moment};

const HOSTS: [Host; 4] = [Host::Claude, Host::Codex, Host::Gemini, Host::Opencode];

fn start() -> Moment {
    Moment::SessionStart { source: "startup".into() }
}

fn moments() -> [Moment; 7] {
    [start(), Moment::Prompt, Moment::PreTool, Moment::PostTool, Moment::Stop, Moment::SessionEnd, Moment::Other]
}

/// The object that is printed, or the text; null for nothing.
fn printed(host: Host, moment: &Moment, verdict: &Verdict) -> Value {
    let printed = render(host, moment, verdict);
    assert_eq!(printed.exit, 0);
    match printed.stdout {
        nothing if nothing.is_empty() => Value::Null,
        text => serde_json::from_str(&text).unwrap_or(Value::String(text)),
    }
}

fn context(event: &str) -> Value {
    json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": "T" } })
}

#[test]
fn allow_prints_nothing_anywhere() {
    for host in HOSTS {
        for moment in moments() {
            for verdict in [Verdict::Allow, Verdict::AllowWith(String::new()), Verdict::AllowWith(" \n".into())] {
                assert_eq!(printed(host, &moment, &verdict), Value::Null, "{host:?} {moment:?} {verdict:?}");
            }
        }
    }
}

#[test]
fn a_denial_is_what_each_host_obeys() {
    let reason =
        json!({ "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "T" });
    let claude = json!({ "hookSpecificOutput": reason });
    let cases = [
        (Host::Claude, claude.clone()),
        (Host::Codex, claude.clone()),
        (Host::Opencode, claude),
        (Host::Gemini, json!({ "decision": "deny", "reason": "T" })),
    ];
    for (host, expected) in cases {
        assert_eq!(printed(host, &Moment::PreTool, &Verdict::Deny("T".into())), expected, "{host:?}");
    }
}

#[test]
fn what_cannot_be_denied_gets_no_denial() {
    for host in HOSTS {
        for moment in [start(), Moment::Prompt, Moment::Stop, Moment::SessionEnd, Moment::Other] {
            assert_eq!(printed(host, &moment, &Verdict::Deny("T".into())), Value::Null, "{host:?} {moment:?}");
        }
        // The call has run: its result stays, and the reason is added.
        let told = Verdict::AllowWith("T".into());
        let expected = printed(host, &Moment::PostTool, &told);
        assert_eq!(printed(host, &Moment::PostTool, &Verdict::Deny("T".into())), expected);
        assert_eq!(expected["hookSpecificOutput"]["additionalContext"], "T", "{host:?}");
    }
}

#[test]
fn context_reaches_the_model_where_the_host_has_a_way() {
    let nothing = || Value::Null;
    // Session start, prompt, before and after a tool call.
    let cases = [
        (Host::Claude, ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"].map(context)),
        (Host::Codex, [context("SessionStart"), "T".into(), context("PreToolUse"), context("PostToolUse")]),
        (Host::Gemini, [context("SessionStart"), context("BeforeAgent"), nothing(), context("AfterTool")]),
        (Host::Opencode, [context("SessionStart"), context("UserPromptSubmit"), nothing(), context("PostToolUse")]),
    ];
    for (host, expected) in cases {
        let expected = expected.into_iter().chain([nothing(), nothing(), nothing()]);
        for (moment, expected) in moments().iter().zip(expected) {
            assert_eq!(printed(host, moment, &Verdict::AllowWith("T".into())), expected, "{host:?} {moment:?}");
        }
    }
}

#[test]
fn only_a_stop_is_refused_and_only_where_it_can_be() {
    let block = json!({ "decision": "block", "reason": "T" });
    let expected = [block.clone(), block, json!({ "decision": "deny", "reason": "T" }), Value::Null];
    for (host, expected) in HOSTS.into_iter().zip(expected) {
        for moment in moments() {
            let expected = if moment == Moment::Stop { &expected } else { &Value::Null };
            assert_eq!(&printed(host, &moment, &Verdict::RefuseStop("T".into())), expected, "{host:?} {moment:?}");
        }
    }
}

#[test]
fn a_blank_reason_still_denies() {
    for reason in ["", " \n\t"] {
        let told = printed(Host::Codex, &Moment::PreTool, &Verdict::Deny(reason.into()));
        let told = told["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap_or_default();
        assert!(told.starts_with("crewlog refused this"), "{told}");
    }
}

#[test]
fn plain_text_never_looks_like_json() {
    for text in ["{\"a\":1}", " [x]"] {
        let told = printed(Host::Codex, &Moment::Prompt, &Verdict::AllowWith(text.into()));
        assert_eq!(told, format!("crewlog: {text}"));
    }
}

#[test]
fn long_text_is_cut_at_a_character() {
    let cases =
        [(TEXT_CHARS_MAX, "ä".repeat(TEXT_CHARS_MAX)), (TEXT_CHARS_MAX + 1, "ä".repeat(TEXT_CHARS_MAX - 1) + "…")];
    for (n_chars, expected) in cases {
        let told = printed(Host::Codex, &Moment::Prompt, &Verdict::AllowWith("ä".repeat(n_chars)));
        assert_eq!(told, expected, "{n_chars}");
    }
}

#[test]
fn text_is_escaped_as_json() {
    let told = printed(Host::Gemini, &Moment::PreTool, &Verdict::Deny("a\"b\\c\n\u{1b}".into()));
    assert_eq!(told, json!({ "decision": "deny", "reason": "a\"b\\c\n\u{1b}" }));
}
