//! Real scripts as agents under the real supervisor: their input, their answers, and the processes they leave.

use std::path::PathBuf;
use std::time::Duration;

use crewlog_executors::agent::{ARGUMENT_BYTES_MAX, Agent, Program, PromptBy, SAID_CHARS_MAX};
use crewlog_executors::output::OUTPUT_BYTES_MAX;
use crewlog_executors::roster::{Actor, Roster};
use crewlog_executors::run::{Executor as _, GRACE, Job, Report, SoFar, Stop};
use crewlog_executors::shell::Shell;
use crewlog_planner::claim::{Ending, RunDetails};
use crewlog_planner::event::{Answered, Budget, FailureClass, TaskInput, Usage};
use crewlog_planner::plan::{NodeKind, TaskId};
use tempfile::TempDir;
use tokio::sync::watch;

use super::rig::{self, Rig, soon};
use super::rig::{first_line, rest};

const KIND: NodeKind = NodeKind::CodeImplementation;

/// An agent with this command line.
fn agent(words: &[&str]) -> Agent {
    Agent {
        name: "claude".into(),
        kinds: Vec::new(),
        program: Program::Argv(words.iter().map(|word| (*word).to_owned()).collect()),
        prompt: PromptBy::Stdin,
        env: Vec::new(),
        timeout: None,
        jobs: 1,
        rate_limited: Vec::new(),
        for_person: Vec::new(),
        budget_per_day: None,
        passes: None,
        grace: None,
        resume: None,
        consent: None,
    }
}

/// One of the scripts of `tests/agents`, with arguments.
fn script(name: &str, args: &[&str]) -> Agent {
    let path = format!("{}/tests/agents/{name}.sh", env!("CARGO_MANIFEST_DIR"));
    agent(&[&[path.as_str()], args].concat())
}

fn task(description: &str) -> TaskInput {
    TaskInput {
        label: None,
        description: description.into(),
        command: None,
        notes: Vec::new(),
        attachments: Vec::new(),
        answers: Vec::new(),
        assignee: None,
        files: Vec::new(),
        reads_only: false,
        rerun_safe: false,
        timeout_ms: None,
        needs: Vec::new(),
        is_timed: false,
        budget: Budget::default(),
        counts_tokens: false,
        folder: None,
        sub_plan: None,
        compensates: None,
    }
}

fn answered(question: &str, answer: &str) -> Answered {
    Answered { task: TaskId(1), label: None, question: question.into(), answer: answer.into() }
}

fn roster(agents: Vec<Agent>) -> Roster {
    let env = vec![("SHARED".into(), "surroundings".into())];
    let shell = Shell { supervisor: rig::supervisor(), env, timeout: Duration::from_secs(60), grace: GRACE };
    Roster {
        shell,
        takes_commands: true,
        agents,
        registry: None,
        knows_tools: true,
        trust: None,
        places: None,
        limits: None,
        leaves_limits: false,
        outputs: None,
    }
}

/// A prompt with only the task.
fn prompt(input: &TaskInput) -> String {
    input.description.clone()
}

/// The outcome of a run with no interference, unless it is stopped.
async fn run_until(
    agent: Agent,
    parameters: &TaskInput,
    folder: &TempDir,
    stop: &mut watch::Receiver<Option<Stop>>,
) -> (Ending, Usage) {
    let cwd = parameters.folder.clone().or_else(|| folder.path().to_str().map(str::to_owned));
    let parameters = TaskInput { folder: cwd, ..parameters.clone() };
    let job = Job {
        plan: rig::PLAN,
        task: TaskId(2),
        attempt: 3,
        epoch: 4,
        parameters: &parameters,
        prompt: prompt(&parameters),
        output: None,
        session: None,
        variables: Vec::new(),
    };
    let roster = roster(vec![agent]);
    let Some(Actor::Agent(agent, shell)) = roster.actor(KIND, &parameters) else { panic!("it is an agent's") };
    let (sink, _known) = watch::channel(SoFar::default());
    let Report { ending, usage } = soon(agent.on(shell).run(job, &sink, stop)).await;
    (ending, usage)
}

async fn run(agent: Agent, parameters: &TaskInput) -> Ending {
    let (_stop, mut never) = watch::channel(None);
    run_until(agent, parameters, &tempfile::tempdir().unwrap(), &mut never).await.0
}

async fn completed(agent: Agent, parameters: &TaskInput) -> (String, RunDetails) {
    match run(agent, parameters).await {
        Ending::Completed { result, run } => (result, run.unwrap()),
        other => panic!("{other:?}"),
    }
}

async fn failed(agent: Agent, parameters: &TaskInput) -> (String, FailureClass, Option<RunDetails>) {
    match run(agent, parameters).await {
        Ending::Failed { error, class, run } => (error, class, run),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn unreported_tokens_of_an_agent_are_estimated_if_the_plan_counts_tokens() {
    let (_stop, mut never) = watch::channel(None);
    let folder = tempfile::tempdir().unwrap();
    let plain = task("Paint the wall");
    let counting = TaskInput { counts_tokens: true, ..plain.clone() };
    let silent = || agent(&["echo", "It is blue now."]);
    let unknown = Usage { n_without_tokens: 1, n_without_cost: 1, ..Usage::default() };
    assert_eq!(run_until(silent(), &plain, &folder, &mut never).await.1, unknown);
    // 14 characters, and 15.
    let unknown = Usage { n_without_cost: 1, ..Usage::default() };
    let estimated = Usage { input_tokens: 4, output_tokens: 4, estimated_tokens: 8, ..unknown };
    assert_eq!(run_until(silent(), &counting, &folder, &mut never).await.1, estimated);
    let reports = agent(&["printf", "done\nUSAGE: {\"input_tokens\": 70, \"output_tokens\": 5}\n"]);
    let reported = run_until(reports, &counting, &folder, &mut never).await.1;
    assert_eq!(reported, Usage { input_tokens: 70, output_tokens: 5, ..unknown });
}

#[tokio::test]
async fn an_agent_gets_its_exact_prompt_and_the_environment_of_a_command() {
    let text = "Paint the wall\nof the house, keep $HOME and `date` as they are\n";
    let input = TaskInput { answers: vec![answered("Which \"colour\"?", "sky blue; rm -rf $(x)")], ..task(text) };
    let own = Agent { env: vec![("OWN".into(), "a 'b'".into())], ..script("echo", &[]) };
    let (result, run) = completed(own, &input).await;
    let environment = "plan=p task=2 attempt=3 answer=sky blue; rm -rf $(x)\nown=a 'b' shared=surroundings";
    assert_eq!(result, format!("{text}{environment}"));
    assert_eq!((run.exit_code, run.output_is_cut), (Some(0), false));
}

#[tokio::test]
async fn an_agents_question_is_answered_in_its_next_prompt() {
    let asked = run(script("asks", &[]), &task("Paint it")).await;
    assert_eq!(asked, Ending::Asked { question: "Which colour is it to be?".into(), default: None });
    let next = task("Paint it\n\n## Answers from people\n\n- Which colour is it to be?\n  -> blue\n");
    assert_eq!(completed(script("asks", &[]), &next).await.0, "painted it blue");
}

#[tokio::test]
async fn only_the_last_line_of_a_successful_agent_can_be_a_question_or_failure() {
    let asked = |question: &str| Ending::Asked { question: question.into(), default: None };
    for (code, out, expected) in [
        ("0", "QUESTION: so?", asked("so?")),
        ("0", "looked\n  QUESTION:so?  \n\n \n", asked("so?")),
        ("0", "QUESTION: first?\nQUESTION: last?", asked("last?")),
    ] {
        assert_eq!(run(script("ends", &[code, out, "err"]), &task("do")).await, expected, "{out:?}");
    }
    for (out, result) in [
        ("QUESTION: so?\ndone", "QUESTION: so?\ndone"),
        ("\n  done \n\n", "done"),
        ("I asked QUESTION: so?", "I asked QUESTION: so?"),
        ("question: so?", "question: so?"),
        ("FAILED: once\nthen done", "FAILED: once\nthen done"),
        ("", ""),
    ] {
        assert_eq!(completed(script("ends", &["0", out, "err"]), &task("do")).await.0, result, "{out:?}");
    }
    for (code, out, error) in [
        ("0", "tried\nFAILED: no paint\n", "no paint\ntried"),
        ("0", "FAILED:", "the agent gave no reason"),
        ("0", "QUESTION:  ", "it ended with QUESTION: without a question"),
        ("3", "QUESTION: so?", "exit code 3\nQUESTION: so?\nerr"),
    ] {
        let (said, class, run) = failed(script("ends", &[code, out, "err"]), &task("do")).await;
        assert_eq!((said.as_str(), class), (error, FailureClass::Task), "{out:?}");
        assert_eq!(run.unwrap().exit_code, code.parse().ok());
    }
}

#[tokio::test]
async fn the_last_line_counts_after_any_amount_of_output() {
    let asked = run(script("chatty", &["QUESTION: enough?"]), &task("talk")).await;
    assert_eq!(asked, Ending::Asked { question: "enough?".into(), default: None });
    let (result, run) = completed(script("chatty", &["enough"]), &task("talk")).await;
    assert!(result.starts_with("begin\no") && result.ends_with("o\nenough") && result.contains("bytes dropped"));
    assert!(!result.contains("eee"), "errors are no part of the result");
    assert!(result.len() < OUTPUT_BYTES_MAX + 100 && run.output_is_cut);
    assert_eq!(run.output_bytes, 6_000_000 + "begin\n\nenough\nend of errors\n".len() as u64);
}

#[tokio::test]
async fn an_overlong_question_or_failure_line_fails_the_task() {
    let long = |begin: &str| format!("printf '{begin}'; head -c 200000 /dev/zero | tr '\\0' b; echo");
    let of = |line: String| agent(&["sh", "-c", &line]);
    for begin in ["FAILED: ", "much\\nQUESTION: "] {
        let (error, class, _) = failed(of(long(begin)), &task("do")).await;
        assert!(error.starts_with("its last line is too long: "), "{error}");
        assert_eq!(class, FailureClass::Task);
    }
    let (result, _) = completed(of(long("{\"result\":")), &task("do")).await;
    assert!(result.starts_with("{\"result\":") && result.contains("bytes dropped"));
}

#[tokio::test]
async fn a_result_within_a_long_line_of_json_is_read_whole() {
    let line = r#"printf '{"type":"result","is_error":false,"total_cost_usd":3.0,"result":"'
        head -c 70000 /dev/zero | tr '\0' x
        printf '\\n%s"}' "$1""#;
    let of = |last: &str| agent(&["sh", "-c", line, "sh", last]);
    let (error, class, _) = failed(of("FAILED: the tests do not pass"), &task("do")).await;
    assert!(error.starts_with("the tests do not pass\n"), "{}", &error[..100]);
    assert_eq!(class, FailureClass::Task);
    let (result, run) = completed(of("all is well"), &task("do")).await;
    assert!(result.starts_with("xxx") && result.ends_with("\nall is well") && result.contains("bytes dropped"));
    assert!(run.output_is_cut);
}

#[tokio::test]
async fn a_failed_agent_reports_its_exit_code_and_the_end_of_both_outputs() {
    let (error, class, run) = failed(script("ends", &["3", "I tried", "no network"]), &task("do")).await;
    assert_eq!((error.as_str(), class), ("exit code 3\nI tried\nno network", FailureClass::Task));
    assert_eq!(run.unwrap().exit_code, Some(3));
    let long = "ä".repeat(SAID_CHARS_MAX) + "end";
    let (error, _, _) = failed(script("ends", &["1", &long, &long]), &task("do")).await;
    let end = "ä".repeat(SAID_CHARS_MAX - 3) + "end";
    assert_eq!(error, format!("exit code 1\n{end}\n{end}"));
}

#[tokio::test]
async fn exit_code_75_or_its_message_marks_an_agent_as_rate_limited() {
    let limited = |words: &[&str]| Agent {
        rate_limited: vec!["Usage Limit reached".into(), "429".into()],
        budget_per_day: None,
        passes: None,
        grace: None,
        resume: None,
        ..script("ends", words)
    };
    for (words, expected) in [
        (["75", "later", ""], FailureClass::RateLimited { retry_after_ms: None }),
        (["1", "claude: USAGE LIMIT REACHED|17", ""], FailureClass::RateLimited { retry_after_ms: None }),
        (["1", "", "HTTP 429: retry after 2 m"], FailureClass::RateLimited { retry_after_ms: Some(120_000) }),
        (["75", "try again in 9 s", "in 9"], FailureClass::RateLimited { retry_after_ms: Some(9_000) }),
        (["1", "usage", "limit reached"], FailureClass::Task),
    ] {
        assert_eq!(failed(limited(&words), &task("do")).await.1, expected, "{words:?}");
    }
    let said = completed(limited(&["0", "the 429 is handled", ""]), &task("do")).await;
    assert_eq!(said.0, "the 429 is handled", "what a run says that does not fail is its result");
    assert_eq!(failed(script("ends", &["1", "429", ""]), &task("do")).await.1, FailureClass::Task);
    let mut unknown = limited(&["1", "429: you are not Logged In", ""]);
    unknown.for_person = vec!["not logged in".into()];
    assert_eq!(failed(unknown.clone(), &task("do")).await.1, FailureClass::RateLimited { retry_after_ms: None });
    unknown.rate_limited.clear();
    assert_eq!(failed(unknown, &task("do")).await.1, FailureClass::ForPerson);
}

#[tokio::test]
async fn an_agent_may_ignore_a_long_prompt_on_its_input() {
    let told = task(&"Paint it. ".repeat(150_000));
    assert_eq!(completed(script("deaf", &[]), &told).await.0, "not listening\nstill here");
    let count = agent(&["wc", "-c"]);
    assert_eq!(
        completed(count, &told).await.0.trim(),
        told.description.len().to_string(),
        "and one that does has it all"
    );
}

#[tokio::test]
async fn a_prompt_passed_as_an_argument_arrives_unchanged() {
    let told = task("say \"it's\" $(touch hacked) `touch hacked` ${HOME} \\ %s\n\n-- {prompt} *; touch hacked\0!");
    let said = told.description.replace('\0', "");
    let by_argument = |agent: Agent| Agent { prompt: PromptBy::Argument, ..agent };
    let line = |line: &str| Agent { program: Program::Shell(line.into()), ..agent(&[]) };
    for (agent, expected) in [
        (script("words", &["-p"]), format!("<-p>\n<{said}>\ninput=")),
        (script("words", &["-p", "{prompt}", "-x"]), format!("<-p>\n<{said}>\n<-x>\ninput=")),
        (script("words", &["{prompt}", "{prompt}"]), format!("<{said}>\n<{said}>\ninput=")),
        (script("words", &["say: {prompt}"]), format!("<say: {{prompt}}>\n<{said}>\ninput=")),
        (line(r#"printf '<%s>\n' "$1" "$#"; echo "input=$(cat)""#), format!("<{said}>\n<1>\ninput=")),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (_stop, mut never) = watch::channel(None);
        let ending = run_until(by_argument(agent), &told, &folder, &mut never).await.0;
        let Ending::Completed { result, .. } = ending else { panic!("{ending:?}") };
        assert_eq!(result, expected);
        assert!(!folder.path().join("hacked").exists());
    }
    let on_input = completed(line("echo \"$# $(wc -c)\" | tr -s ' '"), &told).await.0;
    assert_eq!(on_input, format!("0 {}", told.description.len()), "otherwise a line has it on its standard input");
}

#[tokio::test]
async fn a_prompt_too_long_for_an_argument_fails_with_a_hint() {
    let by_argument = || Agent { prompt: PromptBy::Argument, ..agent(&["true"]) };
    completed(by_argument(), &task(&"x".repeat(ARGUMENT_BYTES_MAX))).await;
    let (error, class, _) = failed(by_argument(), &task(&"x".repeat(ARGUMENT_BYTES_MAX + 1))).await;
    assert_eq!(class, FailureClass::Task, "it is not tried again");
    for part in ["131072 bytes", "131071", "prompt = \"stdin\"", "[executors.claude]"] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[tokio::test]
async fn an_agent_runs_in_the_folder_of_the_plan() {
    let (folder, plan) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (_stop, mut never) = watch::channel(None);
    let told = TaskInput { folder: plan.path().to_str().map(str::to_owned), ..task("make it") };
    let ending = run_until(script("writes", &[]), &told, &folder, &mut never).await.0;
    assert!(matches!(&ending, Ending::Completed { result, .. } if result == "made"), "{ending:?}");
    assert_eq!(std::fs::read_to_string(plan.path().join("made")).unwrap(), "made by an agent\n");
}

#[tokio::test]
async fn an_agent_that_cannot_start_is_named_with_its_configuration_file() {
    let (error, class, run) = failed(agent(&["no-such-agent", "-p"]), &task("do")).await;
    assert_eq!((class, run), (FailureClass::NotStarted, None));
    for part in ["cannot start no-such-agent: ", "[executors.claude]", "crewlog.toml"] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[tokio::test]
async fn the_timeout_of_a_task_overrides_the_agents() {
    let slow =
        |timeout| Agent { timeout: Some(timeout), ..agent(&["sh", "-c", "echo begun; echo why >&2; sleep 1000"]) };
    let (error, class, run) = failed(slow(Duration::from_millis(300)), &task("do")).await;
    assert_eq!((error.as_str(), class), ("stopped after 300 ms, its time-out\nbegun\nwhy", FailureClass::TimedOut));
    assert!(run.unwrap().duration_ms >= 300);
    let told = TaskInput { timeout_ms: Some(200), ..task("do") };
    assert_eq!(failed(slow(Duration::from_secs(600)), &told).await.1, FailureClass::TimedOut);
}

#[tokio::test]
async fn a_stopped_agent_leaves_no_process() {
    for (stop, expected) in [
        (Stop::Cancelled { reason: "not wanted".into() }, Ending::Stopped { reason: "not wanted".into() }),
        (Stop::Interrupted, Ending::Released { reason: "the worker was interrupted".into(), cut_off: true }),
    ] {
        let rig = Rig::new().await;
        let pipe = rig.pipe("pipe");
        let (wanted, mut stopped) = watch::channel(None);
        // Far more than a pipe holds, so the writer is still busy.
        let told = task(&"wait ".repeat(100_000));
        let stopping = async {
            let (line, pipe) = first_line(pipe).await;
            wanted.send_replace(Some(stop));
            (line, rest(pipe).await)
        };
        let ((ending, _), (line, rest)) =
            tokio::join!(run_until(script("slow", &[]), &told, &rig.folder, &mut stopped), stopping);
        assert_eq!((ending, line.as_str(), rest.as_str()), (expected, "up\n", ""));
    }
}

#[test]
fn a_task_goes_to_the_shell_its_assignee_or_the_first_executor_of_its_kind() {
    let named = |name: &str, kinds: &[NodeKind]| Agent { name: name.into(), kinds: kinds.to_vec(), ..agent(&["true"]) };
    let roster = roster(vec![
        named("coder", &[NodeKind::CodeImplementation, NodeKind::Refactor]),
        named("Any", &[]),
        named("late", &[NodeKind::Analysis]),
    ]);
    let told = |command: Option<&str>, assignee: Option<&str>| TaskInput {
        command: command.map(str::to_owned),
        assignee: assignee.map(str::to_owned),
        ..task("do")
    };
    for (kind, parameters, expected) in [
        (NodeKind::ToolCall, told(Some("true"), None), Some("shell")),
        (NodeKind::CodeImplementation, told(Some("true"), Some("late")), Some("shell")),
        (NodeKind::CodeImplementation, told(None, None), Some("coder")),
        (NodeKind::Refactor, told(None, None), Some("coder")),
        (NodeKind::Analysis, told(None, None), Some("Any")),
        (NodeKind::CodeImplementation, told(None, Some("LATE")), Some("late")),
        (NodeKind::CodeImplementation, told(None, Some("any")), Some("Any")),
        (NodeKind::CodeImplementation, told(None, Some("ana")), None),
        (NodeKind::Clarification, told(None, None), None),
        (NodeKind::Clarification, told(None, Some("coder")), None),
    ] {
        let actor = roster.actor(kind, &parameters);
        assert_eq!(actor.as_ref().map(|actor| actor.name()), expected, "{kind:?} {parameters:?}");
        let jobs = actor.and_then(|actor| actor.jobs());
        assert_eq!(jobs, expected.filter(|name| *name != "shell").map(|_| 1));
    }
    let own = Roster { agents: vec![named("coder", &[NodeKind::Refactor])], ..roster };
    assert!(own.actor(NodeKind::Analysis, &task("do")).is_none(), "nobody takes it, so a person does");
}

/// A failure then names the script and not a missing file.
#[test]
fn every_test_agent_can_be_started() {
    use std::os::unix::fs::PermissionsExt;
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/agents");
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o111, 0o111, "{:?}", entry.path());
    }
}

#[tokio::test]
async fn a_run_that_timed_out_has_used_what_its_output_shows() {
    let folder = TempDir::new().unwrap();
    let (_stop, mut never) = watch::channel(None);
    let said = r#"{"type":"assistant","message":{"id":"a","usage":{"input_tokens":70,"output_tokens":5}}}"#;
    let cut =
        Agent { timeout: Some(Duration::from_millis(300)), ..agent(&["sh", "-c", "echo \"$0\"; sleep 1000", said]) };
    let (ending, usage) = run_until(cut, &task("Look"), &folder, &mut never).await;
    assert!(matches!(ending, Ending::Failed { class: FailureClass::TimedOut, .. }), "{ending:?}");
    assert_eq!(usage, Usage { input_tokens: 70, output_tokens: 5, n_without_cost: 1, ..Usage::default() });
    // It says nothing, and its plan counts tokens: an estimate of its prompt.
    let silent = Agent { timeout: Some(Duration::from_millis(300)), ..agent(&["sleep", "1000"]) };
    let counted = TaskInput { counts_tokens: true, ..task("Look") };
    let (_, usage) = run_until(silent, &counted, &folder, &mut never).await;
    assert!(usage.input_tokens > 0 && usage.estimated_tokens == usage.input_tokens, "{usage:?}");
}
