//! Sealed strings of events: each string field is classified, and no fold needs a sealed one.

use std::collections::BTreeSet;

use crewlog_mq::{Event as MqEvent, Timestamp};
use crewlog_planner::agents::failures::PlanningEvent;
use crewlog_planner::claim::{Claim, Ending, Executor, TaskCommand, TaskEvent};
use crewlog_planner::event::{Amendment, Command, Edit, Event, FailureClass, Order, PlannerConfig, Setting};
use crewlog_planner::model::CallEvent;
use crewlog_planner::plan::{Attachment, AttachmentKind, FailurePolicy, NodeKind, Proposal, TaskId};
use crewlog_planner::sealed::SEALED;
use crewlog_planner::sealing::{Visibility, must_seal, replaced, rule};

use super::tracer::{TEXT, trace};

/// Texts that anyone with the log may read. Each addition needs a reason: it is an id, a name or a path.
const CLEAR: [&str; 22] = [
    "agent",
    "assignee",
    "by",
    "files",
    "folder",
    "host",
    "kind",
    "label",
    "model",
    "name",
    "parent",
    "path",
    "plan",
    "planned_by",
    "priority",
    "ref",
    "request",
    "session",
    "sha256",
    "tag",
    "tool",
    "tools",
];

fn last_name(path: &str) -> &str {
    let mut names = path.rsplit('/').filter(|name| !name.bytes().all(|byte| byte.is_ascii_digit()));
    names.next().expect("a path has a name")
}

fn check<T: MqEvent + PartialEq + std::fmt::Debug>() -> BTreeSet<String> {
    let (found, events) = trace::<T>();
    for path in found.texts.iter().chain(&found.names) {
        assert!(rule(path).is_some(), "{path}: say in planner/src/sealing.rs whether it is clear or sealed");
    }
    for path in &found.names {
        assert_eq!(
            rule(path),
            Some(Visibility::Clear),
            "{path} names a variant, and an event without it cannot be read"
        );
    }
    for path in &found.maps {
        let known = ["parallelism_by_kind", "parallelism_by_executor", "config/retry"];
        let is_known = known.iter().any(|known| path.ends_with(known));
        assert!(is_known, "{path} has keys, which are never sealed: none may be free text");
    }
    // Without its texts an event is still the same event.
    for event in events {
        let data = event.encode().unwrap();
        let sealed = replaced(&data, "data", |path, text| must_seal(path, text).then(|| SEALED.into()));
        let sealed = sealed.unwrap_or_else(|| data.clone());
        let read = T::decode(event.event_type(), T::EVENT_VERSION, &sealed);
        let read = read.unwrap_or_else(|error| panic!("{sealed}: {error}"));
        let back = replaced(&sealed, "", |_, text| (text == SEALED).then(|| TEXT.into()));
        assert_eq!(back.unwrap_or(sealed), data, "nothing but texts was taken");
        assert_eq!(read.event_type(), event.event_type());
    }
    found.texts
}

#[test]
fn every_string_field_of_an_event_is_classified_as_clear_or_sealed() {
    let mut texts = check::<Event>();
    texts.extend(check::<TaskEvent>());
    texts.extend(check::<CallEvent>());
    texts.extend(check::<PlanningEvent>());
    let is_clear = |path: &&String| rule(path) == Some(Visibility::Clear);
    let mut clear = texts.iter().filter(is_clear).map(|path| last_name(path)).collect::<BTreeSet<_>>();
    assert!(clear.remove("worker"), "the tracer sees the executor of a claim");
    assert_eq!(clear.into_iter().collect::<Vec<_>>(), CLEAR);
    for text in [
        "description",
        "command",
        "result",
        "error",
        "answer",
        "question",
        "reason",
        "notes",
        "source",
        "system_prompt",
    ] {
        assert!(texts.iter().any(|path| last_name(path) == text && !is_clear(&path)), "{text} is sealed");
    }
}

#[test]
fn a_task_label_that_contains_heading_text_is_sealed() {
    let label = "data/tasks/0/label";
    assert!(must_seal(label, "Deploy/2") && must_seal(label, "2/question"));
    assert!(!must_seal(label, "T001") && !must_seal(label, "2.1"));
}

#[test]
fn every_string_field_of_a_recorded_command_is_classified_as_clear_or_sealed() {
    let executor = Executor { name: "shell".into(), host: "h".into(), worker: "w".into() };
    let attachment = |kind| Attachment { kind, label: Some(TEXT.into()) };
    let attachments = vec![attachment(AttachmentKind::FileRef("a.rs".into()))];
    let failed = Command::HandleExecutorEvent {
        task: TaskId(1),
        event: TaskEvent::TaskFailed {
            attempt: 1,
            error: TEXT.into(),
            class: FailureClass::TimedOut,
            epoch: 1,
            run: None,
        },
    };
    let ending = Ending::Completed { result: TEXT.into(), run: None };
    let (attempt, now, dead_epoch) = (1, Timestamp(1), None);
    let proposal = Box::new(Proposal { source: TEXT.into(), ..Proposal::default() });
    let initialize = Command::Initialize { proposal, attachments, config: PlannerConfig::default() };
    let kept = [
        initialize.recorded(),
        failed.recorded(),
        Command::Cancel { task: None, reason: TEXT.into() }.recorded(),
        Command::Pause { reason: TEXT.into() }.recorded(),
        Command::PauseFromParent { reason: TEXT.into() }.recorded(),
        Command::CancelFromParent { reason: TEXT.into() }.recorded(),
        TaskCommand::ClaimForAgent { attempt, executor: executor.clone(), now }.recorded(),
        TaskCommand::Unpark { by: "ada".into() }.recorded(),
        TaskCommand::Report { claim: Claim { attempt, executor, now, dead_epoch, ..Claim::default() }, ending }
            .recorded(),
        Command::Amend { amendments: amendments(), reason: TEXT.into() }.recorded(),
        Command::Configure { changes: settings(), reason: TEXT.into() }.recorded(),
    ];
    let mut sealed = BTreeSet::new();
    for command in kept {
        replaced(&command.to_string(), "metadata/extra/command", |path, text| {
            let sight = rule(path).unwrap_or_else(|| panic!("{path}: say in planner/src/sealing.rs what it is"));
            assert_eq!(sight == Visibility::Sealed, text == TEXT, "{path}: {text}");
            if sight == Visibility::Sealed {
                sealed.insert(last_name(path).to_owned());
            }
            None
        });
    }
    assert_eq!(
        sealed.into_iter().collect::<Vec<_>>(),
        ["Command", "Description", "Notes", "error", "label", "reason", "text"]
    );
}

/// Amendments and edits of every kind, with a text in every secret field.
fn amendments() -> Vec<Amendment> {
    let edits = vec![
        Edit::Description(TEXT.into()),
        Edit::Kind(NodeKind::Analysis),
        Edit::Command(Some(TEXT.into())),
        Edit::Label(Some("A".into())),
        Edit::Notes(vec![TEXT.into()]),
        Edit::Priority(Some("high".into())),
        Edit::Assignee(Some("ann".into())),
        Edit::Retry(Some(1)),
        Edit::TimeoutMs(Some(1)),
        Edit::EstimateMs(Some(1)),
        Edit::OnFailure(Some(FailurePolicy::Ask)),
        Edit::Files(vec!["a.rs".into()]),
    ];
    vec![
        Amendment::Add { text: TEXT.into(), after: vec![TaskId(1)], before: Vec::new() },
        Amendment::Edit { task: TaskId(1), edits },
        Amendment::Skip { task: TaskId(1), keeps_order: true },
        Amendment::Reorder { task: TaskId(1), after: Vec::new() },
        Amendment::Done { task: TaskId(1) },
        Amendment::Source { text: TEXT.into() },
    ]
}

fn settings() -> Vec<Setting> {
    vec![
        Setting::Parallelism(1),
        Setting::ParallelismOfKind(NodeKind::Analysis, Some(1)),
        Setting::ParallelismOfExecutor("ann".into(), None),
        Setting::OnFailure(FailurePolicy::Stop),
        Setting::Order(Order::CriticalPath),
    ]
}
