//! The configurations of texts, and the errors of invalid ones.

use std::time::Duration;

use super::*;

/// The agents alone.
fn parse(text: &str) -> Result<Vec<Agent>, Fault> {
    super::parse(text).map(|config| config.agents)
}

const EVERYTHING: &str = r#"
[executors.zoe]
kinds = ["CodeImplementation", "Refactor"]
command = ["claude", "-p"]
prompt = "stdin"
env = { ANTHROPIC_LOG = "warn", EMPTY = "" }
timeout = "30m"
jobs = 2
rate_limited = ["usage limit reached", "429"]

[executors.Ana-2]
command = "codex exec \"$1\" < /dev/null"
prompt = "argument"

[executors.bo]
command = ["gemini", "-p", "{prompt}"]
prompt = "argument"
"#;

#[test]
fn executors_keep_the_order_of_the_configuration_file() {
    let words = |words: &[&str]| Program::Argv(words.iter().map(|word| (*word).to_owned()).collect());
    let plain = |name: &str, program| Agent {
        name: name.into(),
        kinds: Vec::new(),
        program,
        prompt: PromptBy::Argument,
        env: Vec::new(),
        timeout: None,
        jobs: 1,
        rate_limited: Vec::new(),
        for_person: for_person(),
        budget_per_day: None,
        passes: None,
        grace: None,
        resume: None,
        consent: None,
    };
    let first = Agent {
        kinds: vec![NodeKind::CodeImplementation, NodeKind::Refactor],
        prompt: PromptBy::Stdin,
        env: vec![("ANTHROPIC_LOG".into(), "warn".into()), ("EMPTY".into(), String::new())],
        timeout: Some(Duration::from_secs(1800)),
        jobs: 2,
        rate_limited: vec!["usage limit reached".into(), "429".into()],
        budget_per_day: None,
        passes: None,
        grace: None,
        resume: None,
        consent: None,
        ..plain("zoe", words(&["claude", "-p"]))
    };
    let second = plain("Ana-2", Program::Shell("codex exec \"$1\" < /dev/null".into()));
    let third = plain("bo", words(&["gemini", "-p", "{prompt}"]));
    assert_eq!(parse(EVERYTHING).unwrap(), [first, second, third]);
    assert_eq!(parse("# nothing\n").unwrap(), []);
    let by_default = parse("executors.a.command = 'x'").unwrap().remove(0);
    assert_eq!(by_default.prompt, PromptBy::Stdin);
}

/// An executor of these lines under a first line of its own, so that they begin in line 2.
fn executor(lines: &str) -> String {
    format!("[executors.a]\n{lines}")
}

#[test]
fn configuration_errors_name_line_column_and_allowed_values() {
    let with = |line: &str| executor(&format!("command = ['x']\n{line}"));
    let mut wrong = Vec::new();
    for (text, place, parts) in [
        (executor("comand = ['x']"), (2, 1), ["unknown field `comand`", "`command`, `kinds`, `prompt`"]),
        (executor("kinds = ['Analysis']"), (1, 1), ["missing field", "`command`"]),
        (
            "[executor.a]\ncommand = 'x'".into(),
            (1, 2),
            ["unknown field `executor`", "expected one of `project`, `runs_bytes_max`, `quiet`"],
        ),
        (executor("command = 'x'\ncommand = 'y'"), (3, 1), ["duplicate key", ""]),
        (executor("command = ['x'"), (2, 15), ["array", "`]`"]),
        (executor("command = []"), (2, 11), ["the command is empty", "[\"claude\", \"-p\"]"]),
        (executor("command = [' ', 'x']"), (2, 11), ["the command is empty", "program first"]),
        (executor("command = ' '"), (2, 11), ["the command is empty", "a line for sh"]),
        (executor("command = ['x', 7]"), (2, 11), ["a list of a program and its arguments, or", ""]),
        (executor("command = 7"), (2, 11), ["a list of a program and its arguments, or", ""]),
        (executor("command = [\"x\\u0000\"]"), (2, 11), ["NUL", ""]),
        (executor("command = \"x\\u0000\""), (2, 11), ["NUL", ""]),
        (executor("command = ['x', '{prompt}']"), (2, 11), ["standard input", "prompt = \"argument\""]),
        (executor("prompt = 'argument'\ncommand = ['{prompt}']"), (3, 11), ["not a program", "program first"]),
        (executor("prompt = 'argument'\ncommand = 'x {prompt}'"), (3, 11), ["not use its prompt", "\"$1\""]),
        (with("prompt = 'file'"), (3, 10), ["unknown variant `file`", "`stdin` or `argument`"]),
        (with("kinds = []"), (3, 9), ["some kinds", "left out"]),
        (with("kinds = ['Analysis', 'Cooking']"), (3, 22), ["unknown variant `Cooking`", "`ToolCall`, `Processing`"]),
        (with("kinds = ['Clarification']"), (3, 9), ["without Clarification", ""]),
        (with("kinds = 'Analysis'"), (3, 9), ["invalid type: string", "a sequence"]),
        (with("timeout = '30 parsecs'"), (3, 11), ["invalid duration", "30s, 10m, 2h or 1d"]),
        (with("timeout = '0s'"), (3, 11), ["above 0", "30s"]),
        (with("timeout = '-5m'"), (3, 11), ["above 0", "30s"]),
        (with("timeout = 30"), (3, 11), ["invalid type: integer `30`", "expected a string"]),
        (with("jobs = 0"), (3, 8), ["jobs is 1 to 1000", ""]),
        (with("jobs = 1001"), (3, 8), ["jobs is 1 to 1000", ""]),
        (with("jobs = -1"), (3, 8), ["jobs is 1 to 1000", ""]),
        (with("env = { 'A=B' = 'c' }"), (3, 7), ["invalid variable name", "= and NUL are not allowed"]),
        (with("env = { '' = 'c' }"), (3, 7), ["invalid", "name"]),
        (with("env = { CREWLOG_TASK = 'c' }"), (3, 7), ["begins with CREWLOG_", "another name"]),
        (with("env = { A = \"\\u0000\" }"), (3, 7), ["no NUL", ""]),
        (with("env = { A = 1 }"), (3, 7), ["env is a table of variables", "a list of the names"]),
        (with("env = ['A=1', 'CREWLOG_X']"), (3, 7), ["begins with CREWLOG_", "another name"]),
        (with("grace = '31s'"), (3, 9), ["grace is at most 30 s", ""]),
        (with("budget_per_day = 0"), (3, 18), ["a budget is a number above 0", "2.50"]),
        (with("resume = true"), (3, 10), ["resume = true is for claude", "{session}"]),
        (with("rate_limited = ['429', '']"), (3, 16), ["empty text", ""]),
        ("[executors.shell]\ncommand = 'x'".into(), (1, 12), ["\"shell\" is the name of another", ""]),
        ("[executors.Human]\ncommand = 'x'".into(), (1, 12), ["\"Human\" is the name of another", ""]),
        ("[executors.\"ä b\"]\ncommand = 'x'".into(), (1, 12), ["invalid", "letters, digits, - and _"]),
        ("[executors.'']\ncommand = 'x'".into(), (1, 12), ["invalid", "name"]),
        (format!("[executors.{}]\ncommand = 'x'", "a".repeat(65)), (1, 12), ["invalid", "64"]),
        ("# ä\n executors.A.command = 'x'\nexecutors.a.command = 'x'".into(), (3, 11), ["\"a\" and \"A\" are one", ""]),
    ] {
        let fault = parse(&text).expect_err(&text);
        let said = &fault.message;
        let found = place_of(text.as_bytes(), fault.at);
        if found != place || !parts.iter().all(|part| said.contains(part)) || fault.message.contains('\n') {
            wrong.push(format!("{found:?} {said:?}, not {place:?} {parts:?}, of\n{text}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn columns_are_counted_in_characters() {
    for (text, at, expected) in
        [("", 0, (1, 1)), ("äöü=1", 6, (1, 4)), ("a\nä=1", 4, (2, 2)), ("a\n", 2, (2, 1)), ("a", 9, (1, 2))]
    {
        assert_eq!(place_of(text.as_bytes(), at), expected, "{text:?}");
    }
}

#[test]
fn every_documented_configuration_example_is_valid() {
    let page = include_str!("../../../docs/agents.md");
    let blocks = page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    let names = blocks.flat_map(|block| parse(block).expect(block)).map(|agent| agent.name).collect::<Vec<_>>();
    assert_eq!(names, ["script", "claude", "codex", "gemini", "script"]);
}

/// The model of these lines under a first line of its own, so that they begin in line 2.
fn model(lines: &str) -> Result<ModelConfig, Fault> {
    let model = super::parse(&format!("[model]\n{lines}"))?.model;
    Ok(model.expect("there is a section"))
}

#[test]
fn a_model_can_be_configured_with_all_settings_or_only_the_required_ones() {
    use crewlog_executors::model::{Key, Prices};
    use crewlog_planner::event::RetryClass;

    let everything = r#"
name = "claude-x"
provider = "anthropic"
endpoint = "http://127.0.0.1:8080/v1"
api_key_env = "MY_KEY"
max_tokens = 4000
temperature = 0
timeout = "90s"
stream = false
retries = 0
backoff = "2s"
price_per_million_input = 3
price_per_million_output = 15.5
plan = false
"#;
    let all = model(&everything.replace("temperature = 0", "temperature = 0.0")).unwrap();
    assert_eq!(
        (all.parameters.model.as_str(), all.parameters.max_tokens, all.parameters.temperature),
        ("claude-x", Some(4000), Some(0.0))
    );
    assert_eq!((all.settings.provider.as_str(), all.settings.stream), ("anthropic", false));
    assert_eq!(all.settings.endpoint.as_deref(), Some("http://127.0.0.1:8080/v1"));
    assert_eq!(all.settings.key, Key::Variable("MY_KEY".into()));
    assert_eq!(all.settings.timeout, Duration::from_secs(90));
    assert_eq!(all.settings.prices, Some(Prices { input: 3_000_000, output: 15_500_000 }));
    assert_eq!((all.retry_policy.count, all.retry_policy.first_ms), (0, 2_000));
    assert!(!all.plan);
    assert_eq!(model(everything).unwrap(), all, "a whole number is a number too");
    let little = model("name = 'gpt-x'").unwrap();
    assert_eq!((little.settings.provider.as_str(), &little.settings.endpoint), ("openai", &None));
    assert_eq!(little.settings.key, Key::Variable("OPENAI_API_KEY".into()));
    assert_eq!((little.retry_policy, little.settings.prices), (RetryClass::Transient.policy(), None));
    assert!(little.plan && little.settings.stream);
    let local = model("name = 'x'\nendpoint = 'http://127.0.0.1:1/v1'").unwrap();
    assert_eq!(local.settings.key, Key::None, "what is elsewhere gets no key unasked");
}

#[test]
fn an_invalid_model_is_refused_with_its_location_and_without_its_key() {
    for (lines, says) in [
        ("provider = 'openai'", "missing field `name`"),
        ("name = ' '", "1 to 200 characters"),
        ("name = 'x'\nprovider = 'acme'", "no provider is called \"acme\""),
        ("name = 'x'\nendpoint = 'example.org'", "invalid endpoint \"example.org\""),
        ("name = 'x'\nendpoint = 'https://ana:secret@example.org/v1'", "an endpoint holds no password"),
        ("name = 'x'\napi_key_env = 'sk-secret'", "the name of a variable"),
        ("name = 'x'\nmax_tokens = 0", "expected a nonzero u32"),
        ("name = 'x'\ntemperature = 3.0", "the temperature is 0 to 2"),
        ("name = 'x'\ntimeout = '2h'", "it is at most 3600 s"),
        ("name = 'x'\nretries = 11", "retries is 0 to 10"),
        ("name = 'x'\nbackoff = 'soon'", "invalid duration"),
        ("name = 'x'\nprice_per_million_input = 1.0", "one price without the other"),
        ("name = 'x'\nprice_per_million_input = -1.0\nprice_per_million_output = 1.0", "a price is 0 to 1000000"),
        ("name = 'x'\nkey = 'sk-secret'", "unknown field `key`"),
    ] {
        let fault = model(lines).expect_err(lines);
        assert!(fault.message.contains(says), "{}", fault.message);
        assert!(!fault.message.contains("secret"), "{fault:?}");
    }
}

#[test]
fn every_documented_model_example_is_valid() {
    let page = include_str!("../../../docs/models.md");
    let blocks = page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    let names = blocks.filter_map(|block| Some(super::parse(block).expect(block).model?.parameters.model));
    assert_eq!(names.collect::<Vec<_>>(), ["claude-sonnet-4-5"]);
}

#[test]
fn hooks_allow_on_errors_and_lease_edits_unless_the_configuration_says_otherwise() {
    use crate::context::config::{HooksConfig, OnError, Wake};
    let (wake, wakes_per_hour) = (Wake::Person, 12);
    let permission_wait = Duration::from_secs(590);
    let default = HooksConfig {
        on_error: OnError::Allow,
        strict: false,
        lease_on_edit: true,
        wake,
        wakes_per_hour,
        permission_wait,
    };
    let (wake, wakes_per_hour) = (Wake::Off, 3);
    let permission_wait = Duration::from_secs(60);
    let set = HooksConfig {
        on_error: OnError::Deny,
        strict: true,
        lease_on_edit: false,
        wake,
        wakes_per_hour,
        permission_wait,
    };
    let text = "[hooks]\non_error = \"deny\"\nstrict = true\nlease_on_edit = false\nwake = \"off\"\nwakes_per_hour = 3\npermission_wait = \"1m\"\n";
    for (text, expected) in [("", default.clone()), ("[hooks]\n", default), (text, set)] {
        assert_eq!(super::parse(text).unwrap().hooks, expected, "{text:?}");
    }
    let fault = super::parse("[hooks]\non_error = \"ask\"\n").unwrap_err();
    assert!(fault.message.contains("ask"), "{fault:?}");
}
