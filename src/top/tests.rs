//! The view on an in-memory terminal: the drawing, and the requests after keys.

use crewlog_executors::crew::{Kind, NeedAction, OWN_WORDS};
use crewlog_mq::{Position, Recorded, Timestamp};
use crewlog_planner::lifecycle;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;
use serde_json::{Value, json};
use uuid::Uuid;

use super::draw::draw;
use super::shown::{Asked, PlanLine, Shown, TaskLine};
use super::state::{Event, Request, State};
use crate::views::{AgentView, LeaseView, ListedPlan, N_STATES, NeedView, TaskShown};

const HOUR_MS: u64 = 3_600_000;

fn need(kind: Kind, id: &str, from: &str, text: &str, actions: &[NeedAction]) -> NeedView {
    NeedView {
        default: None,
        due: None,
        kind,
        id: id.into(),
        from: from.into(),
        text: text.into(),
        choices: Vec::new(),
        since: None,
        age_ms: Some(3 * HOUR_MS),
        holds_up: Vec::new(),
        commands: actions.iter().map(NeedAction::words).collect(),
        actions: actions.iter().map(|action| json!(action)).collect(),
    }
}

fn plan(id: &str, status: lifecycle::State, counts: Option<[u32; N_STATES]>) -> PlanLine {
    let listed = ListedPlan {
        plan: id.into(),
        title: format!("Title of {id}"),
        status,
        created_at: String::new(),
        parent: None,
        is_held_by_budget: false,
        waits_for_work: false,
    };
    PlanLine { listed, counts }
}

fn task(id: &str, state: lifecycle::State, text: &str, error: Option<&str>) -> TaskLine {
    let task = TaskShown {
        id: id.into(),
        description: text.into(),
        kind: "Processing",
        state,
        depends_on: vec!["1".into()],
        command: None,
        condition: None,
        priority: None,
        assignee: None,
        notes: Vec::new(),
        files: Vec::new(),
        is_paused: false,
        attempts: 1,
        result: None,
        error: error.map(str::to_owned),
        executor: Some("ann@host/7".into()),
        started_at: None,
        ended_at: None,
        last_output: None,
        deadline: None,
        retry_at: None,
        waits_for: None,
        compensates: None,
        plan: None,
    };
    TaskLine { task, state, since: Some(Timestamp(0)) }
}

fn agent(name: &str) -> AgentView {
    AgentView {
        agent: name.into(),
        liveness: json!("stuck"),
        activity: json!("working"),
        doing: None,
        health: json!("healthy"),
        reason: None,
        limited_until: None,
        program: String::new(),
        model: None,
        capabilities: Vec::new(),
        focus: Vec::new(),
        worktree: String::new(),
        session: String::new(),
        epoch: 1,
        since: String::new(),
        seen: String::new(),
        task: Some("p/2".into()),
        step: Some("parse".into()),
        note: None,
        context_usage: Some(45),
        tokens: None,
        cost_usd: None,
        limits: std::collections::BTreeMap::new(),
    }
}

fn lease(path: &str) -> LeaseView {
    LeaseView {
        lease: None,
        waiting: Some(3),
        agent: "ann".into(),
        worktree: String::new(),
        path: path.into(),
        is_pattern: false,
        is_exclusive: true,
        reason: String::new(),
        task: None,
        token: None,
        since: None,
        call: "reserve",
        doing: None,
        until: "2026-01-02T03:04:05.000000Z".into(),
    }
}

fn event(position: i64, event_type: &str) -> (Recorded, String) {
    let event = Recorded {
        position: Position(position),
        event_id: Uuid::nil(),
        stream_id: "planner".into(),
        aggregate_id: "p".into(),
        sequence: position,
        event_type: event_type.into(),
        event_version: "1".into(),
        data: json!({ "colour": "blue" }).to_string(),
        metadata: "{}".into(),
        tags: Vec::new(),
        created_at: Timestamp(0),
        append_start: Position(position),
    };
    (event, "p/T1".to_owned())
}

fn shown() -> Shown {
    Shown {
        at: Position(9),
        head: Position(9),
        before: Some(Position(7)),
        time: Timestamp(60_000_000),
        needs: vec![
            need(
                Kind::Permission,
                "a1",
                "ann",
                "may I drop the table?",
                &[answer("a1", "allow"), answer("a1", "deny")],
            ),
            need(Kind::Question, "p/q1", "p", "Which colour is it?", &[answer("p/q1", OWN_WORDS)]),
            need(Kind::Paused, "it's", "it's", "it is paused", &[NeedAction::Resume { target: "it's".into() }]),
            need(Kind::Conflict, "4", "ann, bob", "they work on **", &[NeedAction::Cancel { target: "p/2".into() }]),
        ],
        plans: vec![
            plan("p", lifecycle::State::Running, Some([0, 0, 2, 0, 0, 0, 0, 1, 0, 0, 0])),
            plan("old", lifecycle::State::Failed, None),
        ],
        plan: Some("p".into()),
        tasks: vec![
            task("1", lifecycle::State::Running, "build it", None),
            task("2", lifecycle::State::Failed, "test it", Some("exit 3")),
        ],
        agents: vec![agent("ann")],
        leases: vec![lease("src/main.rs")],
        events: vec![event(9, "TaskFailed"), event(7, "TasksPlanned")],
    }
}

fn live() -> State {
    State::new(shown(), Asked::default(), "tree".into(), false)
}

fn past() -> State {
    let before = Shown { at: Position(7), before: None, ..shown() };
    State::new(before, Asked { at: Some(Position(7)), plan: None }, "tree".into(), false)
}

fn buffer(state: &State, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("it is in memory");
    terminal.draw(|frame| draw(state, frame)).expect("it is in memory");
    terminal.backend().buffer().clone()
}

fn drawn(state: &State, width: u16, height: u16) -> String {
    let buffer = buffer(state, width, height);
    let lines = buffer.content().chunks(usize::from(width));
    lines.map(|line| line.iter().map(|cell| cell.symbol()).collect::<String>() + "\n").collect()
}

/// Presses keys: `\n` is Enter, `\t` Tab, `\r` Escape.
fn press(state: &mut State, keys: &str) -> Vec<Request> {
    let code = |c| match c {
        '\n' => KeyCode::Enter,
        '\t' => KeyCode::Tab,
        '\r' => KeyCode::Esc,
        typed => KeyCode::Char(typed),
    };
    let presses = keys.chars().map(|c| Event::Key(KeyEvent::new(code(c), KeyModifiers::NONE)));
    presses.flat_map(|event| state.update(event)).collect()
}

fn answer(question: &str, text: &str) -> NeedAction {
    NeedAction::Answer { question: question.into(), text: text.into() }
}

fn executes(order: &Value) -> Vec<Request> {
    vec![Request::Execute(Box::new(serde_json::from_value(order.clone()).expect("it is an action")))]
}

#[track_caller]
fn check_in_order(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let found = rest.split_once(part);
        rest = found.unwrap_or_else(|| panic!("{part:?} is not drawn there:\n{text}")).1;
    }
}

#[test]
fn small_terminal_shows_needs_first_and_one_other_panel() {
    let mut state = live();
    let parts =
        ["live: position 9", "*1 Needs you (4)", "> permission 3 h    a1 ann", "may I drop the table?", "2 Plans (2)"];
    check_in_order(&drawn(&state, 80, 24), &parts);
    check_in_order(&drawn(&state, 80, 24), &["old", "failed", "Enter open", "q quit"]);
    press(&mut state, "\t\t");
    check_in_order(
        &drawn(&state, 80, 24),
        &["1 Needs you (4)", "Which colour", "*3 Tasks of p (2)", "2     failed   1 min"],
    );
    assert!(!drawn(&state, 80, 24).contains("2 Plans"));
    press(&mut state, "6");
    check_in_order(&drawn(&state, 80, 24), &["*6 Log (2)", "9       00:00:00 TaskFailed"]);
    drawn(&state, 3, 2);
}

#[test]
fn large_terminal_shows_all_panels() {
    let parts = [
        "Needs you (4)",
        "2 Plans (2)",
        "3 Tasks of p (2)",
        "p ",
        "running",
        "2 running, 1 done",
        "running  1 min  ann",
        "error: exit 3; test it",
        "4 Agents (1)",
        "5 Leases (1)",
        "ann            stuck working  ###-- 45%  p/2",
        "parse",
        "src/main.rs",
        "waits  until 03:04:05",
        "6 Log (2)",
        "TaskFailed",
    ];
    check_in_order(&drawn(&live(), 150, 36), &parts);
}

#[test]
fn typed_answer_is_sent() {
    let mut state = live();
    assert_eq!(press(&mut state, "j\n"), []);
    check_in_order(&drawn(&state, 80, 24), &["Which colour is it?", "p/q1", "answer>"]);
    assert_eq!(press(&mut state, "deep q"), [], "keys are text");
    check_in_order(&drawn(&state, 80, 24), &["answer> deep q"]);
    assert_eq!(press(&mut state, "\n"), executes(&json!({ "action": "answer", "question": "p/q1", "text": "deep q" })));
    state.update(Event::Performed("error: it is answered".into()));
    check_in_order(&drawn(&state, 80, 24), &["Needs you", "error: it is answered"]);
    assert_eq!(press(&mut state, "\n\n"), [], "an empty answer is not sent");
    assert_eq!(press(&mut state, "\rq"), [Request::Quit]);
}

#[test]
fn bell_rings_for_new_items_of_the_present() {
    let shown = |ids: &[&str]| Shown {
        needs: ids.iter().map(|id| need(Kind::Question, id, "p", "Which?", &[])).collect(),
        ..Shown::default()
    };
    let mut state = State::new(shown(&["q1"]), Asked::default(), String::new(), false);
    assert!(!state.rings, "the first view is no news");
    let mut rings = |at: Option<i64>, ids: &[&str]| {
        let asked = Asked { at: at.map(Position), plan: None };
        state.asked = asked.clone();
        state.update(Event::Loaded(asked, Box::new(shown(ids))));
        std::mem::take(&mut state.rings)
    };
    // One of as many is another one; an item that goes is no news; nor is the past, or the way back.
    let steps: [(Option<i64>, &[&str], bool); 6] = [
        (None, &["q1"], false),
        (None, &["q2"], true),
        (None, &[], false),
        (Some(3), &["q1", "q2"], false),
        (None, &[], false),
        (None, &["q2"], true),
    ];
    for (n, (at, ids, expected)) in steps.into_iter().enumerate() {
        assert_eq!(rings(at, ids), expected, "{n}");
    }
}

#[test]
fn permission_is_one_key() {
    assert_eq!(
        press(&mut live(), "\nx\ny"),
        executes(&json!({ "action": "answer", "question": "a1", "text": "allow" }))
    );
    assert_eq!(press(&mut live(), "\nn"), executes(&json!({ "action": "answer", "question": "a1", "text": "deny" })));
    assert_eq!(press(&mut live(), "\n\ry"), []);
}

#[test]
fn action_takes_the_words_of_the_person() {
    let own = || OWN_WORDS.to_owned();
    let done = NeedAction::TaskDone { task: "p/1".into(), result: own() };
    let raise = NeedAction::PlanSet { plan: "p".into(), settings: vec!["budget.time=...".into()] };
    for (kind, action, executed) in [
        (Kind::Step, done, json!({ "action": "task-done", "task": "p/1", "result": "2h" })),
        (Kind::Paused, raise, json!({ "action": "plan-set", "plan": "p", "settings": ["budget.time=2h"] })),
    ] {
        let mut state = live();
        state.shown.needs = vec![need(kind, "p", "p", "it is theirs", &[action])];
        assert_eq!(press(&mut state, "\ny"), [], "{kind:?}: keys are text");
        let erase = Event::Key(KeyEvent::new(KeyCode::Backspace, KeyModifiers::NONE));
        assert_eq!(state.update(erase), []);
        assert_eq!(press(&mut state, "2h\n"), executes(&executed), "{kind:?}");
    }
}

#[test]
fn tab_reaches_each_action_of_an_item() {
    let own = || OWN_WORDS.to_owned();
    let cancel = |task: &str| NeedAction::Cancel { target: task.into() };
    let done = NeedAction::TaskDone { task: "p/1".into(), result: own() };
    let fail = NeedAction::TaskFail { task: "p/1".into(), error: own() };
    let raise = NeedAction::PlanSet { plan: "p".into(), settings: vec!["budget.time=...".into()] };
    let resume = NeedAction::Resume { target: "p".into() };
    for (kind, actions) in [
        (Kind::Step, vec![done, fail]),
        (Kind::Interrupted, vec![cancel("p/1"), cancel("p/2"), cancel("p/3")]),
        (Kind::Paused, vec![raise, resume]),
    ] {
        for (n, action) in actions.iter().enumerate() {
            let order = json!(action);
            let mut state = live();
            state.shown.needs = vec![need(kind, "p", "p", "it is theirs", &actions)];
            press(&mut state, &format!("\n{}", "\t".repeat(n)));
            check_in_order(&drawn(&state, 80, 24), &["Tab: another way"]);
            let keys = if order.to_string().contains(OWN_WORDS) { "2h\n" } else { "y" };
            let executed: Value =
                serde_json::from_str(&order.to_string().replace(OWN_WORDS, "2h")).expect("it is JSON");
            assert_eq!(press(&mut state, keys), executes(&executed), "{kind:?} {n}");
        }
    }
}

#[test]
fn listed_command_runs_after_a_line_that_shows_it() {
    let mut state = live();
    assert_eq!(press(&mut state, "jj\n"), []);
    check_in_order(&drawn(&state, 80, 24), &["y runs it", r"run: crewlog resume 'it'\''s'"]);
    assert_eq!(press(&mut state, "ny"), [], "it was left");
    assert_eq!(press(&mut state, "\ny"), executes(&json!({ "action": "resume", "target": "it's" })));
    assert_eq!(press(&mut state, "j\ny"), executes(&json!({ "action": "cancel", "target": "p/2" })));
}

#[test]
fn past_is_framed_and_changes_nothing() {
    let mut state = past();
    check_in_order(&drawn(&state, 80, 24), &["PAST: position 7", "╔ PAST: 7 of 9; nothing can be changed", "║┌", "╚═"]);
    assert!(!drawn(&live(), 80, 24).contains(['╔', '║']));
    for keys in ["\ny", "j\nblue\n", "jj\ny\n"] {
        assert_eq!(press(&mut past(), keys), [], "{keys:?}");
    }
    assert_eq!(press(&mut state, "["), [], "nothing is before the first append");
    let load = |at: Option<i64>| vec![Request::Load(Asked { at: at.map(Position), plan: Some("p".into()) })];
    assert_eq!(press(&mut state, "]"), load(Some(8)));
    assert_eq!(press(&mut past(), "L"), load(None));
    assert_eq!(press(&mut live(), "["), load(Some(7)));
    assert_eq!(press(&mut live(), "]L"), []);
    let find = |from, is_forward| Request::Find { from: Position(from), is_forward };
    assert_eq!(press(&mut past(), "}{"), [find(7, true), find(7, false)]);
    assert_eq!(press(&mut live(), "{"), [find(10, false)], "one at the head is before the present");
    assert_eq!(live().update(Event::Found(Some(Position(5)))), load(Some(5)));
}

#[test]
fn hostile_text_does_not_reach_the_terminal() {
    let hostile = "\u{1b}[2J\u{7}\u{9b}1m\u{202e}evil\ttext\r\n\u{2066}";
    let mut state = live();
    state.shown.needs.iter_mut().for_each(|need| {
        (need.text, need.from, need.id) = (hostile.into(), hostile.into(), hostile.into());
        need.commands.iter_mut().for_each(|command| command.push_str(hostile));
        need.choices.push(hostile.into());
    });
    state.shown.plans[0].listed.title = hostile.into();
    state.shown.tasks[0] = task(hostile, lifecycle::State::Running, hostile, Some(hostile));
    state.shown.agents = vec![agent(hostile)];
    state.shown.leases = vec![lease(hostile)];
    state.shown.events[0].0.event_type = hostile.into();
    state.shown.events[0].0.data = json!({ hostile: hostile }).to_string();
    (state.shown.plan, state.folder) = (Some(hostile.into()), hostile.into());
    for keys in ["", "\n", "\rj\nx", "\rjj\n", "\r3\n", "\r4\n", "\r5\n", "\r6\n"] {
        press(&mut state, keys);
        state.note = hostile.into();
        for (width, height) in [(80, 24), (150, 36)] {
            let buffer = buffer(&state, width, height);
            let is_hostile = |c: char| c.is_control() || matches!(c, '\u{202e}' | '\u{2066}');
            assert!(buffer.content().iter().all(|cell| !cell.symbol().contains(is_hostile)), "{keys:?}");
            let text = drawn(&state, width, height);
            assert!(text.contains("\\u{1b}[2J") && !text.contains("eviltext"), "{keys:?}: it is shown as text\n{text}");
        }
    }
}

#[test]
fn states_are_words_and_colours_are_optional() {
    let colours = |has_colour| {
        let state = State::new(shown(), Asked::default(), String::new(), has_colour);
        buffer(&state, 150, 36).content().iter().filter(|cell| cell.fg != Color::Reset).count()
    };
    assert_eq!(colours(false), 0);
    assert!(colours(true) > 0);
}

#[test]
fn chosen_row_stays_chosen_as_lists_change() {
    let mut state = live();
    press(&mut state, "j");
    let mut changed = shown();
    changed.needs.insert(0, need(Kind::Permission, "a0", "bob", "first", &[answer("a0", "allow")]));
    changed.events.insert(0, event(11, "PlanPaused"));
    let asked = state.asked.clone();
    state.update(Event::Loaded(asked, Box::new(changed)));
    check_in_order(&drawn(&state, 80, 24), &["> question"]);
    assert_eq!(press(&mut state, "\nx\n"), executes(&json!({ "action": "answer", "question": "p/q1", "text": "x" })));
    press(&mut state, "6");
    check_in_order(&drawn(&state, 80, 24), &["> 11 "]);
}

#[test]
fn loads_do_not_overlap_and_late_ones_are_dropped() {
    let mut state = live();
    let plan = Some("p".to_owned());
    let now = Asked { at: None, plan: plan.clone() };
    assert_eq!(state.update(Event::Grew), [Request::Load(now.clone())]);
    assert_eq!(state.update(Event::Grew), []);
    assert_eq!(state.update(Event::Loaded(now.clone(), Box::new(shown()))), []);
    assert_eq!(state.update(Event::Tick(Timestamp(61_000_000))), [Request::Load(now.clone())], "what came meanwhile");
    assert_eq!(press(&mut state, "["), []);
    let then = Asked { at: Some(Position(7)), plan };
    let late = Shown { needs: Vec::new(), ..shown() };
    assert_eq!(state.update(Event::Loaded(now, Box::new(late))), [Request::Load(then)]);
    check_in_order(&drawn(&state, 80, 24), &["Needs you (4)"]);
}

#[test]
fn details_filter_and_help_are_shown() {
    let mut state = live();
    assert_eq!(press(&mut state, "3j\n"), []);
    check_in_order(&drawn(&state, 80, 24), &["Details", "test it", "2  failed", "depends on:", "error: exit 3"]);
    press(&mut state, "\r6\n");
    check_in_order(&drawn(&state, 80, 24), &["9 TaskFailed", "planner p/T1", "\"colour\": \"blue\""]);
    press(&mut state, "\r/planned\n");
    check_in_order(&drawn(&state, 80, 24), &["Log (1) with \"planned\"", "TasksPlanned"]);
    press(&mut state, "\r");
    check_in_order(&drawn(&state, 80, 24), &["Log (2)"]);
    press(&mut state, "?");
    check_in_order(&drawn(&state, 80, 24), &["Help", "the previous failure", "quit"]);
    press(&mut state, "\r2");
    let old = Asked { at: None, plan: Some("old".into()) };
    assert_eq!(press(&mut state, "j"), [Request::Load(old)], "its tasks are shown");
}
