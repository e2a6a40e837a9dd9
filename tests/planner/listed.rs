//! The list of plans, and their open state.

use crewlog_mq::{Event as MqEvent, Handler, Position, Recorded, Timestamp, new_event_id};
use crewlog_planner::crew::Projection;
use crewlog_planner::event::{self, Amendment, Command, Event, PlannerConfig};
use crewlog_planner::listing::{ListedPlan, PlanList};
use crewlog_planner::planner::Planner;

/// A plan and its entry in the list.
#[derive(Default)]
struct Listed {
    planner: Planner,
    list: PlanList,
    position: i64,
}

impl Listed {
    fn entry(&self) -> Option<&ListedPlan> {
        self.list.plans().next()
    }

    fn append(&mut self, stream: &str, aggregate: &str, event: &impl MqEvent) {
        self.position += 1;
        let recorded = Recorded {
            position: Position(self.position),
            event_id: new_event_id(),
            stream_id: stream.into(),
            aggregate_id: aggregate.into(),
            sequence: self.position,
            event_type: event.event_type().into(),
            event_version: "1.0".into(),
            data: event.encode().unwrap(),
            metadata: "{}".into(),
            tags: Vec::new(),
            created_at: Timestamp(self.position),
            append_start: Position(self.position),
        };
        self.list.handle(&recorded).unwrap();
    }

    fn order(&mut self, command: Command) -> Vec<Event> {
        let events = self.planner.process(command).unwrap_or_default();
        events.iter().for_each(|event| self.append(event::STREAM, "p", event));
        events
    }
}

#[test]
fn another_source_text_does_not_open_an_ended_standing_plan() {
    let mut listed = Listed::default();
    let config = PlannerConfig { standing: true, ..PlannerConfig::default() };
    listed.order(Command::of_text("- Sow\n".into(), config, true).unwrap());
    let amend = |amendment| Command::Amend { amendments: vec![amendment], reason: String::new() };
    listed.order(Command::Cancel { task: None, reason: String::new() });
    assert!(!listed.entry().unwrap().is_open);
    let events = listed.order(amend(Amendment::Source { text: "- Sow\n- Mow\n".into() }));
    assert_eq!(events.len(), 1);
    assert!(!listed.entry().unwrap().is_open);
    listed.order(amend(Amendment::Add { text: "- Mow".into(), after: Vec::new(), before: Vec::new() }));
    assert!(listed.entry().unwrap().is_open);
}
