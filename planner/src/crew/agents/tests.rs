//! Agents, as scripts: the minute, the command, and the resulting events.

use super::*;

fn at(minute: i64) -> Timestamp {
    Timestamp(minute * 60_000_000)
}

fn profile(program: &str) -> Profile {
    Profile {
        program: program.to_owned(),
        model: None,
        capabilities: vec!["review".into()],
        focus: Vec::new(),
        worktree: "w1".into(),
        process: None,
        program_process: None,
    }
}

fn process() -> Executor {
    Executor { name: "p".into(), host: "h".into(), worker: "w".into() }
}

/// `join NAME SESSION`, `join - SESSION` for any name, `give NAME SESSION`, `over NAME SESSION ENDED`, `sub NAME PARENT SESSION`; `see`, `bury`, `leave` NAME; `say NAME TEXT`;
/// `fire NAMES`: those whose programs are proven to run.
fn command(minute: i64, what: &str) -> AgentCommand {
    let now = at(minute);
    let words: Vec<_> = what.split(' ').collect();
    let name = |at: usize| Some(words[at].to_owned()).filter(|name| name != "-");
    let agent = words.get(1).map_or_else(String::new, |name| (*name).to_owned());
    match words[0] {
        "join" => {
            let (wish, session) = (Wish { name: name(1), ..Wish::default() }, words[2].to_owned());
            let profile = Profile { process: Some(process()), ..profile("Claude Code") };
            AgentCommand::Join { wish, session, profile: profile.into(), now }
        }
        "give" => {
            let wish = Wish { given: name(1), ..Wish::default() };
            AgentCommand::Join { wish, session: words[2].to_owned(), profile: profile("Claude Code").into(), now }
        }
        "over" => {
            let wish = Wish { over: name(3), ..Wish::of(words[1]) };
            AgentCommand::Join { wish, session: words[2].to_owned(), profile: profile("Claude Code").into(), now }
        }
        "sub" => {
            let (wish, session) = (Wish { name: name(1), parent: name(2), ..Wish::default() }, words[3].to_owned());
            AgentCommand::Join { wish, session, profile: profile("Claude Code").into(), now }
        }
        "see" => AgentCommand::See { agent, now },
        "bury" => AgentCommand::Bury { agent, process: process(), now },
        "leave" => {
            let (note, next_step) = (String::new(), String::new());
            AgentCommand::Leave { agent, outcome: LeaveOutcome::Success, note, next_step, now }
        }
        "say" => {
            let report = Report { note: name(2), activity: Activity::Working, ..Report::default() };
            AgentCommand::Report { agent, report, now }
        }
        _ => AgentCommand::FireTimer { now, proven: words[1..].iter().map(|&name| name.to_owned()).collect() },
    }
}

fn shown(event: &AgentEvent) -> String {
    let kind = event.event_type();
    match event {
        AgentEvent::AgentJoined { agent, epoch, supersedes, .. } => {
            format!("{agent} joined as {epoch}{}", if *supersedes { ", superseding" } else { "" })
        }
        AgentEvent::TimerFired { due } => format!("due {}", due.0 / 60_000_000),
        event => format!("{} {}", event.of_agent().map_or("", |(agent, _)| agent), kind.trim_start_matches("Agent")),
    }
}

#[track_caller]
fn check(script: &[(i64, &str, &str)]) -> Agents {
    let (mut agents, mut replayed) = (Agents::default(), Agents::default());
    for (minute, what, expected) in script {
        // No event says that an agent was seen.
        if let Some(agent) = what.strip_prefix("see ") {
            agents.hear(agent, at(*minute), || None);
            replayed.hear(agent, at(*minute), || None);
        }
        let before = agents.clone();
        let found = match agents.process(command(*minute, what)) {
            Ok(events) => {
                let shown: Vec<_> = events.iter().map(shown).collect();
                events.iter().for_each(|event| replayed.apply(event));
                shown.join(", ")
            }
            Err(refused) => {
                assert_eq!(agents, before, "a refusal changes nothing");
                refused.to_string()
            }
        };
        assert_eq!(found, *expected, "at {minute}: {what}");
        assert_eq!(agents, replayed);
    }
    agents
}

#[test]
fn one_identity_is_resumed_or_superseded_and_never_doubled() {
    let agents = check(&[
        (0, "join - s1", "claudecode-1 joined as 1"),
        (0, "join - s2", "claudecode-2 joined as 2"),
        (0, "join - s1", ""),
        (0, "join ada s3", "ada joined as 3"),
        (0, "join ada s3", ""),
        (0, "join bob s3", ""),
        (1, "join ada s4", "ada is the name of a session that is alive: choose another name, or give none"),
        (1, "over ada s4 s2", "ada is the name of a session that is alive: choose another name, or give none"),
        (1, "give ada s4", "ada-2 joined as 4"),
        (1, "give ada s4", ""),
        (1, "give ada s5", "ada-3 joined as 5"),
        (1, "give ada s3", ""),
        (1, "over ada s6 s3", "ada joined as 6, superseding"),
        (1, "leave claudecode-1", "claudecode-1 Left"),
        (1, "join - s7", "claudecode-1 joined as 7"),
        (1, "leave ada-2", "ada-2 Left"),
        (1, "give ada s8", "ada-2 joined as 8"),
        (1, "see claudecode-9", "there is no agent claudecode-9: join first"),
        (31, "fire", "due 30, ada Stuck, ada-2 Stuck, ada-3 Stuck, claudecode-1 Stuck, claudecode-2 Stuck"),
        (31, "give ada s9", "ada joined as 9, superseding"),
    ]);
    assert_eq!(agents.check("ada", 3), Err(CrewError::Superseded("ada".into())));
    assert!(agents.check("ada", 9).is_ok());
    assert_eq!(agents.iter().count(), 5);
}

#[test]
fn a_subagent_has_a_name_below_its_parents() {
    let agents = check(&[
        (0, "join ada s1", "ada joined as 1"),
        (0, "sub - ada s1x", "ada/claudecode-1 joined as 2"),
        (0, "sub explorer ada s1y", "ada/explorer joined as 3"),
        (0, "sub ada/explorer ada s1y", ""),
        (0, "sub x bob s1z", "there is no agent bob: join first"),
        (0, "sub a/b/c ada s1z", "ada/a/b/c joined as 4"),
        (0, "join ada/spy s2", "\"ada/spy\" is the name of a subagent: only ada can start it, which `parent` proves"),
        (0, "give ada/spy s2", "\"ada/spy\" is the name of a subagent: only ada can start it, which `parent` proves"),
        (
            0,
            "give ada/explorer s2",
            "\"ada/explorer\" is the name of a subagent: only ada can start it, which `parent` proves",
        ),
    ]);
    assert_eq!(agents.joined_as("s1y", None), Some("ada/explorer"));
    for (agent, parent, expected) in
        [("ada", "ada", true), ("ada/x", "ada", true), ("adam", "ada", false), ("ada", "ada/x", false)]
    {
        assert_eq!(is_below(agent, parent), expected, "{agent} {parent}");
    }
}

#[test]
fn a_session_is_known_by_its_names_and_a_family_leaves_from_below() {
    let agents = check(&[
        (0, "join ada s1", "ada joined as 1"),
        (0, "sub x ada s1", "ada/x joined as 2"),
        (0, "sub y ada/x s1", "ada/x/y joined as 3"),
        (0, "sub z ada s2", "ada/z joined as 4"),
        (0, "join adam s3", "adam joined as 5"),
        (0, "leave ada/z", "ada/z Left"),
    ]);
    for (session, parent, expected) in [
        ("s1", None, Some("ada")),
        ("s1", Some("ada"), Some("ada/x/y")),
        ("s1", Some("ada/x/y"), None),
        ("s1", Some("adam"), None),
        ("s2", None, None),
        ("s2", Some("ada"), None),
        ("s3", None, Some("adam")),
    ] {
        assert_eq!(agents.joined_as(session, parent), expected, "{session} below {parent:?}");
    }
    let below = |agent| agents.present_below(agent).collect::<Vec<_>>();
    assert_eq!(below("ada"), ["ada/x/y", "ada/x", "ada"]);
    assert_eq!(below("ada/x"), ["ada/x/y", "ada/x"]);
    assert_eq!(below("ada/z"), [""; 0]);
}

#[test]
fn a_family_has_a_limit_that_leaves_room_for_others() {
    let mut agents = Agents::default();
    let mut join = |wish: Wish, n: usize| {
        let session = format!("s{n}");
        agents.process(AgentCommand::Join { wish, session, profile: profile("codex").into(), now: at(0) })
    };
    join(Wish::of("ada"), 0).unwrap();
    for n in 1..FAMILY_MAX {
        join(Wish::below("ada"), n).unwrap();
    }
    let refused = join(Wish::below("ada/codex-1"), FAMILY_MAX).unwrap_err();
    assert_eq!(refused.to_string(), "ada has 100 agents (family_max): let some leave");
    join(Wish::of("bob"), FAMILY_MAX).unwrap();
}

#[test]
fn silence_makes_an_agent_stuck_then_lost_and_a_call_recovers_it() {
    check(&[
        (0, "join ada s1", "ada joined as 1"),
        (0, "join bob s2", "bob joined as 2"),
        (20, "see bob", ""),
        (29, "fire", ""),
        (30, "fire", "due 30, ada Stuck"),
        (31, "fire", ""),
        (50, "fire", "due 50, bob Stuck"),
        (60, "fire", "due 60, ada Lost"),
        (61, "see ada", "ada Recovered"),
        (61, "see ada", ""),
        (62, "see ada", ""),
        (70, "bury bob", "bob Lost"),
        (70, "bury bob", ""),
        (200, "fire", "due 92, ada Lost"),
        (200, "join ada s9", "ada joined as 3"),
    ]);
    let due = |script: &[(i64, &str, &str)]| check(script).next_due(&BTreeSet::new()).map(|due| due.0 / 60_000_000);
    assert_eq!(due(&[]), None);
    assert_eq!(due(&[(0, "join ada s1", "ada joined as 1"), (7, "join bob s2", "bob joined as 2")]), Some(30));
    assert_eq!(due(&[(0, "join ada s1", "ada joined as 1"), (30, "fire", "due 30, ada Stuck")]), Some(60));
    let agents = check(&[(0, "join ada s1", "ada joined as 1"), (60, "fire", "due 30, ada Lost")]);
    assert_eq!(agents.next_due(&BTreeSet::new()), None);
    let is_gone = |agents: &Agents, minute| agents.get("ada").is_some_and(|ada| ada.is_gone(at(minute)));
    assert!(is_gone(&agents, 60));
    let agents = check(&[(0, "join ada s1", "ada joined as 1")]);
    assert_eq!([59, 60].map(|minute| is_gone(&agents, minute)), [false, true], "a timer may be late");
    assert!(is_gone(&check(&[(0, "join ada s1", "ada joined as 1"), (0, "leave ada", "ada Left")]), 0));
}

#[test]
fn an_agent_that_is_proven_to_live_is_stuck_and_never_lost() {
    let agents = check(&[
        (0, "join ada s1", "ada joined as 1"),
        (0, "join bob s2", "bob joined as 2"),
        (29, "fire ada bob", ""),
        (30, "fire ada bob", "due 30, ada Stuck, ada Proven, bob Stuck, bob Proven"),
        (31, "fire ada bob", ""),
        (60, "fire ada", "due 60, ada Proven"),
        (61, "fire ada", ""),
        (90, "fire ada", "due 90, ada Proven, bob Lost"),
        // A host that cannot prove it, such as another machine, waits as long as after a call.
        (149, "fire", ""),
        (150, "fire", "due 150, ada Lost"),
        (151, "see ada", "ada Recovered"),
        // A machine that slept.
        (400, "fire ada", "due 181, ada Stuck, ada Proven"),
        (400, "fire ada", ""),
        (401, "see ada", "ada Recovered"),
    ]);
    let proven = ["ada".to_owned()].into();
    assert_eq!(agents.next_due(&proven).map(|due| due.0 / 60_000_000), Some(431));
}

#[test]
fn a_changed_report_of_an_agent_is_recorded() {
    check(&[
        (0, "join ada s1", "ada joined as 1"),
        (0, "say ada reading", "ada Reported"),
        (0, "say ada reading", ""),
        (2, "say ada writing", "ada Reported"),
        (3, "leave ada", "ada Left"),
        (3, "say ada writing", "ada has left: join again"),
        (3, "leave ada", "ada has left: join again"),
    ]);
}

#[test]
fn names_and_texts_have_limits() {
    let long = "a".repeat(33);
    for name in [
        "everyone",
        "Human",
        "ROOT",
        "person",
        "",
        "a b",
        "ada/",
        "/ada",
        "a/b/c/d/e",
        ".ada",
        "-ada",
        "a\u{e9}",
        "a:b",
        &long,
    ] {
        assert!(!is_name(name), "{name}");
    }
    for name in ["ada", "claude-1", "A.b_c-9", "a/b/c/d"] {
        assert!(is_name(name), "{name}");
    }
    let mut agents = Agents::default();
    let mut large = profile(&"x".repeat(TEXT_BYTES_MAX + 1));
    let join = |profile: Profile| AgentCommand::Join {
        wish: Wish::of("ada"),
        session: "s".into(),
        profile: profile.into(),
        now: at(0),
    };
    assert!(agents.process(join(large.clone())).unwrap_err().to_string().contains("1001 bytes"));
    large.program.clear();
    large.capabilities = vec![String::new(); WORDS_MAX + 1];
    assert!(agents.process(join(large)).is_err());
}

#[test]
fn a_session_that_joins_with_less_keeps_its_profile_and_a_dead_process_is_forgotten() {
    let mut agents = Agents::default();
    let process = process();
    let focus = vec![Target::literal("src").unwrap()];
    let known = Profile { model: Some("m".into()), focus, process: Some(process.clone()), ..profile("codex") };
    let join = |profile: Profile, now| AgentCommand::Join {
        wish: Wish::of("ada"),
        session: "s".into(),
        profile: profile.into(),
        now,
    };
    agents.process(join(known.clone(), at(0))).unwrap();
    let less = Profile { capabilities: Vec::new(), focus: Vec::new(), ..profile("codex") };
    assert_eq!(agents.process(join(less.clone(), at(0))), Ok(Vec::new()));
    assert_eq!(agents.get("ada").map(|agent| &agent.profile), Some(&known));
    let bury = |process| AgentCommand::Bury { agent: "ada".into(), process, now: at(1) };
    let earlier = Executor { worker: "earlier".into(), ..process.clone() };
    assert_eq!(agents.process(bury(earlier)), Ok(Vec::new()), "it goes on by another process");
    agents.process(bury(process.clone())).unwrap();
    agents.process(join(less, at(2))).unwrap();
    assert_eq!(agents.get("ada").map(|agent| &agent.profile.process), Some(&None));
    agents.process(join(Profile { process: Some(process.clone()), ..known }, at(3))).unwrap();
    assert_eq!(agents.get("ada").map(|agent| &agent.profile.process), Some(&Some(process)));
}
