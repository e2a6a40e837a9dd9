//! Messages, as scripts: the minute, the command, and the resulting events. The event of line n has position n.

use super::*;

fn at(minute: i64) -> Timestamp {
    Timestamp(minute * 60_000_000)
}

fn message(from: &str, to: &str, needs_ack: bool) -> Message {
    Message {
        from: Sender::Agent(from.to_owned()),
        to: to.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        subject: "hello".into(),
        body: String::new(),
        thread: None,
        importance: Importance::Normal,
        needs_ack,
    }
}

/// `send FROM TO,TO`, `ask FROM TO,TO` with acknowledgement, `offer WHO`, `read WHO N,N`, `ack WHO N`.
fn command(minute: i64, what: &str) -> MessageCommand {
    let now = at(minute);
    let words: Vec<_> = what.split(' ').collect();
    let agent = words.get(1).map_or_else(String::new, |name| (*name).to_owned());
    let numbers = || words[2].split(',').map(|number| Position(number.parse().unwrap()));
    match words[0] {
        "send" | "ask" => MessageCommand::Send { message: message(words[1], words[2], words[0] == "ask"), now },
        "offer" => MessageCommand::Offer { agent, now },
        "read" => MessageCommand::Read { agent, messages: numbers().collect(), now },
        _ => MessageCommand::Ack { agent, message: numbers().next().unwrap(), note: String::new(), now },
    }
}

fn shown(event: &MessageEvent) -> String {
    match event {
        MessageEvent::MessageSent { .. } => "sent".into(),
        MessageEvent::MessagesOffered { up_to, .. } => format!("offered to {up_to}"),
        MessageEvent::MessagesRead { messages, .. } => format!("read {}", messages.len()),
        MessageEvent::MessageAcked { message, .. } => format!("acked {message}"),
    }
}

#[track_caller]
fn check(script: &[(i64, &str, &str)]) -> Messages {
    let mut messages = Messages::default();
    for (line, (minute, what, expected)) in (1..).zip(script) {
        let before = messages.clone();
        let found = match messages.process(command(*minute, what)) {
            Ok(events) => {
                events.iter().for_each(|_| messages.placed(Position(line)));
                events.iter().map(shown).collect::<Vec<_>>().join(", ")
            }
            Err(refused) => {
                assert_eq!(messages, before, "a refusal changes nothing");
                refused.to_string()
            }
        };
        assert_eq!(found, *expected, "at {minute}: {what}");
    }
    messages
}

fn unread(messages: &Messages, agent: &str) -> Vec<i64> {
    messages.unread(agent).map(|message| message.0).collect()
}

#[test]
fn two_messages_in_one_instant_both_arrive_and_names_are_not_prefixes() {
    let messages = check(&[(0, "send ada bob", "sent"), (0, "send ada bob", "sent"), (0, "send ada bob_2", "sent")]);
    assert_eq!(unread(&messages, "bob"), [1, 2]);
    assert_eq!(unread(&messages, "bob_2"), [3]);
    assert_eq!(unread(&messages, "bob_"), [0; 0]);
}

#[test]
fn a_message_is_sent_offered_once_and_read() {
    let messages = check(&[
        (0, "send ada bob,cyd", "sent"),
        (0, "offer bob", "offered to 1"),
        (0, "offer bob", ""),
        (0, "send cyd bob", "sent"),
        (1, "offer bob", "offered to 4"),
        (1, "read bob 1", "read 1"),
        (1, "read bob 1", ""),
        (1, "read ada 4", ""),
    ]);
    assert_eq!((unread(&messages, "bob"), unread(&messages, "cyd")), (vec![4], vec![1]));
    assert_eq!((messages.n_new("bob"), messages.n_new("cyd")), (0, 1));
}

#[test]
fn a_missing_acknowledgement_is_overdue_until_it_comes() {
    let messages = check(&[
        (0, "ask ada bob,cyd", "sent"),
        (1, "ack bob 1", "acked 1"),
        (1, "ack bob 1", "message 1 needs no acknowledgement from you"),
        (1, "ack eve 1", "message 1 needs no acknowledgement from you"),
        (2, "read cyd 1", "read 1"),
    ]);
    let overdue =
        |messages: &Messages, minute| messages.overdue(at(minute)).map(|(message, _)| message.0).collect::<Vec<_>>();
    assert_eq!((overdue(&messages, 29), overdue(&messages, 30)), (vec![], vec![1]));
    assert_eq!(messages.acks_due("cyd").count(), 1);
    let messages = check(&[(0, "ask ada cyd", "sent"), (31, "ack cyd 1", "acked 1")]);
    assert_eq!(overdue(&messages, 31), [0; 0]);
    assert_eq!(messages, {
        let mut empty = Messages::default();
        empty.offered.clear();
        empty
    });
}

#[test]
fn an_open_message_is_known_by_its_position() {
    let messages = check(&[(0, "send ada bob,cyd", "sent"), (1, "ask bob cyd", "sent"), (2, "read bob 1", "read 1")]);
    let open = messages.get(Position(1)).expect("cyd has not read it");
    assert_eq!((open.from.name(), open.subject.as_str(), open.at), ("ada", "hello", at(0)));
    assert_eq!(open.unread, BTreeSet::from(["cyd".to_owned()]));
    assert_eq!(messages.get(Position(2)).map(|open| open.from.name()), Some("bob"));
    assert_eq!(messages.get(Position(3)), None, "the event of a read is no message");
    assert_eq!(messages.acks_due("cyd").collect::<Vec<_>>(), [Position(2)]);
    assert_eq!(messages.acks_due("bob").count(), 0);
    assert_eq!(messages.unread("cyd").collect::<Vec<_>>(), [Position(1), Position(2)]);
    assert_eq!(Sender::Person("zoe".into()).name(), "zoe");
}

#[test]
fn messages_past_a_limit_are_refused() {
    let refused = |edit: &dyn Fn(&mut Message)| {
        let mut message = message("ada", "bob", false);
        edit(&mut message);
        let sent = Messages::default().process(MessageCommand::Send { message, now: at(0) });
        sent.expect_err("it is refused").to_string()
    };
    assert!(refused(&|message| message.to.clear()).contains("needs a recipient"));
    assert!(refused(&|message| message.subject = " ".into()).contains("and a subject"));
    assert!(refused(&|message| message.subject = "x".repeat(201)).contains("at most 200"));
    assert!(refused(&|message| message.body = "x".repeat(16_385)).contains("at most 16384"));
}

/// Sends to bob, and gives each message its position as the log does, or only at the end.
fn sent(messages: &mut Messages, from: Sender, importance: Importance, is_placed: bool) -> Result<(), String> {
    let message = Message { from, importance, ..message("", "bob", false) };
    let sent = messages.process(MessageCommand::Send { message, now: at(0) });
    sent.map_err(|refused| refused.to_string())?;
    if is_placed {
        messages.placed(Position(messages.open.len() as i64 + 1));
    }
    Ok(())
}

#[test]
fn no_sender_fills_an_inbox_and_there_is_room_for_people_and_for_what_is_urgent() {
    let person = || Sender::Person("zoe".into());
    // Messages that share an append have no positions yet.
    for is_placed in [true, false] {
        let mut inbox = Messages::default();
        let mut until_refused = |from: &dyn Fn(usize) -> Sender, importance| {
            let refused = (0..).map(|n| (n, sent(&mut inbox, from(n), importance, is_placed)));
            let (n, refused) = refused.into_iter().find(|(_, sent)| sent.is_err()).unwrap();
            (n, refused.unwrap_err())
        };
        let one = |_: usize| Sender::Agent("a0".into());
        let says = "bob has 150 messages of a0 that are open (unread_from_one_max): wait until some are read";
        assert_eq!(until_refused(&one, Importance::High), (150, says.into()));
        assert_eq!(
            until_refused(&|_| Sender::Agent("a0/sub".into()), Importance::Normal).0,
            0,
            "its subagents share it"
        );
        assert_eq!(until_refused(&one, Importance::Urgent).0, 50);
        let others = |n: usize| Sender::Agent(format!("a{}/sub-{n}", 1 + n % 8));
        assert_eq!(until_refused(&others, Importance::Low).0 + 200, 900);
        let rest = |n: usize| Sender::Agent(format!("b{}", n % 2));
        let full = "bob has 900 messages that are open (unread_max)";
        assert_eq!(until_refused(&rest, Importance::Normal).1, full);
        assert_eq!(until_refused(&rest, Importance::Urgent), (50, full.replace("900", "950")));
        assert_eq!(until_refused(&|_| person(), Importance::Low), (50, full.replace("900", "1000")));
    }
}

#[test]
fn open_messages_have_the_same_limits() {
    let open = |from: &str, n: i64| {
        let open = OpenMessage {
            from: Sender::Agent(from.into()),
            subject: String::new(),
            importance: Importance::Normal,
            unread: ["cyd".to_owned()].into(),
            unacked: BTreeSet::new(),
            at: at(0),
        };
        (Position(n), open)
    };
    let mut messages = Messages { open: (0..4_950).map(|n| open("ada", n)).collect(), ..Messages::default() };
    let refused = sent(&mut messages, Sender::Agent("ada".into()), Importance::Normal, true).unwrap_err();
    assert!(refused.starts_with("there are 4950 messages of ada that are open (open_from_one_max)"), "{refused}");
    sent(&mut messages, Sender::Agent("eve".into()), Importance::Normal, true).unwrap();
    messages.open.extend((5_000..19_949).map(|n| open(&format!("agent-{}", n % 20), n)));
    let refused = sent(&mut messages, Sender::Agent("eve".into()), Importance::Normal, true).unwrap_err();
    assert_eq!(refused, "there are 19900 messages that are open (open_max)");
    sent(&mut messages, Sender::Person("zoe".into()), Importance::Normal, true).unwrap();
}
