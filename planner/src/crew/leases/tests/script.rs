//! The scripts of the tests, and their replay.

use super::super::*;

pub const SECOND: i64 = 1_000_000;

pub fn at(second: u64) -> Timestamp {
    Timestamp(i64::try_from(second).unwrap() * SECOND)
}

pub fn targets(written: &str) -> Vec<Target> {
    let target = |text: &str| Target::thing(text).unwrap_or_else(|| Target::written(text)).expect(text);
    written.split_whitespace().map(target).collect()
}

/// `ada` works in the worktree `w1`, `ada@w2` in another.
pub fn holder(who: &str) -> LeaseHolder {
    let (agent, worktree) = who.split_once('@').unwrap_or((who, "w1"));
    LeaseHolder { agent: agent.to_owned(), worktree: worktree.to_owned() }
}

/// `exclusive PATHS`, `shared PATHS`, `strict PATHS`, `wait SECONDS PATHS`, `strict-shared`, `strict-wait`, `short PATHS` for a minute; `release`,
/// `hook PATHS` for an edit; `ask SECONDS PATHS`, `keep NUMBER`, `free NUMBER`, `hand NUMBER`; `offer AGENT NUMBERS`, `accept NUMBER`,
/// `decline NUMBER`; `give NUMBER`, `renew`, `extend SECONDS`, `abandon [UP_TO]`, `force NUMBER`, `expire`, `edit PATH`, `refuse NUMBER PATH`.
pub fn command(second: u64, who: &str, what: &str) -> LeaseCommand {
    let (verb, rest) = what.split_once(' ').unwrap_or((what, ""));
    let (now, holder) = (at(second), holder(who));
    let agent = holder.agent.clone();
    let number = || rest.split(' ').next().and_then(|number| number.parse().ok()).expect(what);
    let after_number = || rest.split_once(' ').map_or("", |(_, rest)| rest);
    let request = |paths: &str| Request {
        holder: holder.clone(),
        targets: targets(paths),
        is_exclusive: !verb.ends_with("shared"),
        ttl: if verb == "short" { TTL_RANGE.0 } else { TTL },
        reason: String::new(),
        task: None,
        is_strict: verb.starts_with("strict"),
    };
    match verb {
        "wait" | "strict-wait" => {
            let turn = Turn::Wait(now.plus(Duration::from_secs(number())));
            LeaseCommand::Reserve { request: request(after_number()), turn, now }
        }
        "hook" => LeaseCommand::Reserve { request: request(rest), turn: Turn::Edit, now },
        "ask" => {
            let deadline = now.plus(Duration::from_secs(number()));
            LeaseCommand::RequestRelease { request: request(after_number()), deadline, now }
        }
        "keep" | "free" | "hand" => {
            let answer = match verb {
                "keep" => ReleaseAnswer::Keep { until: at(second + 100) },
                "free" => ReleaseAnswer::Release,
                _ => ReleaseAnswer::HandOver,
            };
            LeaseCommand::AnswerRelease { agent, waiting: number(), answer, note: String::new(), now }
        }
        "offer" => {
            let (to, leases) = rest.split_once(' ').unwrap_or((rest, ""));
            let leases = leases.split_whitespace().map(|number| number.parse().expect(what)).collect();
            let (next_step, note, until) = (String::new(), String::new(), at(second + 300));
            let offer = Handoff { from: agent, to: to.to_owned(), tasks: Vec::new(), leases, next_step, note, until };
            LeaseCommand::OfferHandoff { offer, now }
        }
        "accept" | "decline" => {
            let (accepts, note) = (verb == "accept", String::new());
            LeaseCommand::AnswerHandoff { handoff: number(), agent, accepts, note, now }
        }
        "release" => LeaseCommand::Release { agent, which: Which::All, now },
        "give" => LeaseCommand::Release { agent, which: Which::Numbers(vec![number()]), now },
        "extend" => LeaseCommand::Extend { agent, which: Which::All, by: Duration::from_secs(number()), now },
        "abandon" => LeaseCommand::Abandon { agent, up_to: rest.parse().unwrap_or(u64::MAX), now },
        "force" => LeaseCommand::Force { leases: vec![number()], by: "eve".into(), reason: "stuck".into(), now },
        "expire" => LeaseCommand::Expire { now },
        "edit" => {
            let (agent, path) = (Some(agent), Target::literal(rest).expect(rest));
            LeaseCommand::SeeEdit { worktree: holder.worktree, path, agent, now }
        }
        "watch" => {
            let path = Target::literal(rest).expect(rest);
            LeaseCommand::SeeEdit { worktree: holder.worktree, path, agent: None, now }
        }
        "refuse" => {
            let target = Target::literal(after_number()).expect(rest);
            LeaseCommand::RefuseEdit { holder, target, lease: number(), now }
        }
        _ => LeaseCommand::Reserve { request: request(rest), turn: Turn::Behind, now },
    }
}

pub fn shown(event: &LeaseEvent) -> String {
    match event {
        LeaseEvent::LeasesGranted { first, request, merge_risks, .. } => {
            let risks: Vec<_> = merge_risks.iter().map(|risk| format!(" risk {}", risk.holder.agent)).collect();
            format!("{} has {first}+{}{}", request.holder.agent, request.targets.len(), risks.concat())
        }
        LeaseEvent::LeasesQueued { waiting, request, .. } => format!("{} waits as {waiting}", request.holder.agent),
        LeaseEvent::WaitingEnded { waiting } => format!("no longer waits {waiting:?}"),
        LeaseEvent::LeasesExtended { leases, until } => format!("extended {leases:?} to {}", until.0 / SECOND),
        LeaseEvent::LeasesReleased { leases, .. } => format!("released {leases:?}"),
        LeaseEvent::LeasesExpired { leases, .. } => format!("expired {leases:?}"),
        LeaseEvent::LeasesAbandoned { leases, .. } => format!("abandoned {leases:?}"),
        LeaseEvent::LeasesForced { leases, by, .. } => format!("{by} ended {leases:?}"),
        LeaseEvent::ReleaseRequested { waiting, of, .. } => format!("{waiting} asks {}", of.join(" ")),
        LeaseEvent::ReleaseAnswered { waiting, agent, answer, .. } => match answer {
            ReleaseAnswer::Release => format!("{agent} releases for {waiting}"),
            ReleaseAnswer::Keep { .. } => format!("{agent} keeps"),
            ReleaseAnswer::HandOver => format!("{agent} hands over to {waiting}"),
        },
        LeaseEvent::DeadlockDetected(Deadlock { ring, release, .. }) => {
            let parts: Vec<_> = ring.iter().map(|part| format!("{} for {}", part.agent, part.lease)).collect();
            format!("ring {}: release {release}", parts.join(" "))
        }
        LeaseEvent::HandoffOffered { handoff, offer, .. } => format!("{} offers {handoff} to {}", offer.from, offer.to),
        LeaseEvent::HandoffAnswered { handoff, agent, is_accepted, .. } => {
            format!("{agent} {} {handoff}", if *is_accepted { "accepts" } else { "ends" })
        }
        LeaseEvent::HandoffsEnded { handoffs } => format!("lapsed {handoffs:?}"),
        LeaseEvent::LeasesTransferred { leases, first, to, .. } => format!("{leases:?} go to {to} as {first}"),
        LeaseEvent::EditRefused { target, lease, .. } => format!("refused {} under {lease}", target.path),
        LeaseEvent::FilesCommitted { commit, files, .. } => format!("{} has {}", commit.id, files.len()),
        LeaseEvent::UnleasedEdit { path, lease, .. } => match lease {
            Some(lease) => format!("{path} changed under {lease}"),
            None => format!("{path} changed"),
        },
    }
}

/// An input of a state.
#[derive(Debug)]
pub enum Step {
    Event(LeaseEvent),
    Seen(String, Timestamp),
}

pub fn replay(history: &[Step]) -> Leases {
    history.iter().fold(Leases::default(), |mut leases, step| {
        match step {
            Step::Event(event) => leases.apply(event),
            Step::Seen(agent, at) => leases.hear(agent, *at),
        }
        leases
    })
}

/// Carries out a command; `renew` is a call of an agent, which counts if its leases are due.
pub fn act(
    leases: &mut Leases,
    history: &mut Vec<Step>,
    second: u64,
    who: &str,
    what: &str,
) -> Result<Vec<String>, CrewError> {
    if what == "renew" {
        let agent = who.split('@').next().unwrap().to_owned();
        if !leases.renewal_is_due(&agent, at(second)) {
            return Ok(Vec::new());
        }
        leases.hear(&agent, at(second));
        let renewed = format!("{agent} renewed");
        history.push(Step::Seen(agent, at(second)));
        return Ok(vec![renewed]);
    }
    let events = leases.process(command(second, who, what))?;
    let said = events.iter().map(shown).collect();
    history.extend(events.into_iter().map(Step::Event));
    Ok(said)
}

#[track_caller]
pub fn check(script: &[(u64, &str, &str, &str)]) {
    let (mut leases, mut history) = (Leases::default(), Vec::new());
    for (second, who, what, expected) in script {
        let before = leases.clone();
        let found = match act(&mut leases, &mut history, *second, who, what) {
            Ok(said) => said.join(", "),
            Err(refused) => {
                assert_eq!(leases, before, "a refusal changes nothing");
                refused.to_string()
            }
        };
        assert_eq!(found, *expected, "at {second}: {who} {what}");
        assert_eq!(leases, replay(&history));
        let mut placed = leases.clone();
        history.iter().for_each(|_| placed.placed(Position(0)));
        let snapshot = serde_json::to_string(&placed).unwrap();
        let mut restored = serde_json::from_str::<Leases>(&snapshot).unwrap();
        placed.renewed.iter().for_each(|(agent, at)| restored.hear(agent, *at));
        assert_eq!(restored, placed, "a snapshot keeps all that the events say");
    }
}
