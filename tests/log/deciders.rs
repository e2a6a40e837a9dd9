//! Decisions over queries: facts of many aggregates, and no two contradictory decisions.

use std::collections::{BTreeMap, BTreeSet};

use crewlog_mq::{
    Append, Cause, Error, Event, EventStore, ExecuteError, Executed, Expected, Handler, Metadata, NewEvent, Position,
    Query, Runner, Snapshot, given,
};
use serde::{Deserialize, Serialize};

use super::{everything, in_time, logs, noting};
use crewlog_stage::counting::{counted, with_intruder};

/// The seats of a course, and the maximum courses of a student.
const SEATS: usize = 3;
const COURSES_MAX: usize = 2;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Enrolment {
    Enrolled { course: String, student: String },
    Left { course: String, student: String },
}

impl Event for Enrolment {}

fn tags_of(event: &Enrolment) -> Vec<String> {
    let (Enrolment::Enrolled { course, student } | Enrolment::Left { course, student }) = event;
    vec![format!("course:{course}"), format!("student:{student}")]
}

/// All facts that decide whether a student may take a seat in a course.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Seats {
    by_course: BTreeMap<String, BTreeSet<String>>,
}

impl Seats {
    fn n_courses(&self, student: &str) -> usize {
        self.by_course.values().filter(|students| students.contains(student)).count()
    }
}

#[derive(Debug, PartialEq, thiserror::Error)]
enum Refused {
    #[error("the course is full")]
    Full,
    #[error("the student has courses enough")]
    Enough,
}

impl Handler for Seats {
    type Command = (String, String);
    type Event = Enrolment;
    type Error = Refused;

    fn decide(&self, (course, student): (String, String)) -> Result<Vec<Enrolment>, Refused> {
        let taken = self.by_course.get(&course);
        if taken.is_some_and(|taken| taken.contains(&student)) {
            return Ok(vec![]);
        }
        if taken.map_or(0, BTreeSet::len) >= SEATS {
            return Err(Refused::Full);
        }
        if self.n_courses(&student) >= COURSES_MAX {
            return Err(Refused::Enough);
        }
        let event = Enrolment::Enrolled { course, student };
        Ok(vec![event])
    }

    fn apply(&mut self, event: &Enrolment) {
        match event {
            Enrolment::Enrolled { course, student } => {
                self.by_course.entry(course.clone()).or_default().insert(student.clone());
            }
            Enrolment::Left { course, student } => {
                self.by_course.entry(course.clone()).or_default().remove(student);
            }
        }
    }
}

impl Snapshot for Seats {
    const FOLD: &'static str = "seats";
    const VERSION: u32 = 1;
    const EVERY: u64 = 1;
}

fn wanted(course: &str, student: &str) -> (String, String) {
    (course.into(), student.into())
}

fn enrolled(course: &str, student: &str) -> Enrolment {
    Enrolment::Enrolled { course: course.into(), student: student.into() }
}

/// The decision on a seat in a course for a student: it depends on both.
fn decider(store: &EventStore, course: &str, student: &str) -> Runner<Seats> {
    let query = Query::tag(format!("course:{course}")).or(Query::tag(format!("student:{student}")));
    Runner::over(store.clone(), query, ("enrolments", "all"), tags_of)
}

async fn enrol(store: &EventStore, course: &str, student: &str) -> Result<Executed<Enrolment>, ExecuteError<Refused>> {
    decider(store, course, student).execute(wanted(course, student), &Cause::request()).await
}

fn new_event(course: &str, student: &str) -> NewEvent {
    let event = enrolled(course, student);
    NewEvent::of(&event, &Metadata::default()).expect("it is JSON").with_tags(tags_of(&event))
}

/// An enrolment by a writer without a condition.
fn enrolling(aggregate_id: &str, course: &str, student: &str) -> Append {
    Append::to("enrolments", aggregate_id, Expected::Any, vec![new_event(course, student)])
}

#[tokio::test]
async fn a_decision_depends_only_on_the_aggregates_in_its_query() {
    for (store, _place) in logs().await {
        for student in ["ada", "bob", "eve"] {
            enrol(&store, "chess", student).await.unwrap();
        }
        assert!(matches!(enrol(&store, "chess", "zoe").await, Err(ExecuteError::Refused(Refused::Full))));
        enrol(&store, "music", "ada").await.unwrap();
        assert!(matches!(enrol(&store, "dance", "ada").await, Err(ExecuteError::Refused(Refused::Enough))));
        let again = enrol(&store, "music", "ada").await.unwrap();
        assert_eq!((again.events.len(), store.head().await.unwrap()), (0, Position(4)));
        let tags = everything(&store).await.remove(3).tags;
        assert_eq!(tags, ["course:music", "student:ada"]);
    }
}

#[tokio::test]
async fn a_loser_of_an_append_race_decides_again_on_the_new_events() {
    let store = EventStore::in_memory().await.unwrap();
    for student in ["ada", "bob"] {
        enrol(&store, "chess", student).await.unwrap();
    }
    // An append that does not match causes no conflict; one that matches takes the last seat.
    let (unrelated, counts) = with_intruder(&store, Some(enrolling("elsewhere", "dance", "zoe")));
    decider(&unrelated, "music", "eve").execute(wanted("music", "eve"), &Cause::request()).await.unwrap();
    assert_eq!(counts.take_appends(), 1);
    let (last_seat, counts) = with_intruder(&store, Some(enrolling("elsewhere", "chess", "zoe")));
    let refused = decider(&last_seat, "chess", "eve").execute(wanted("chess", "eve"), &Cause::request()).await;
    assert!(matches!(refused, Err(ExecuteError::Refused(Refused::Full))), "{refused:?}");
    assert_eq!(counts.take_appends(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn racing_deciders_never_take_more_seats_than_available() {
    for (store, _place) in logs().await {
        let racers = (0..24).map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                let student = format!("student {}", n % 12);
                // Some race for a full course, others as one student for too many courses.
                let course = ["chess", "music", "dance"][n % 3];
                loop {
                    match enrol(&store, course, &student).await {
                        Err(ExecuteError::Contended { .. }) => {}
                        other => return other.map(|executed| executed.events.len()).unwrap_or(0),
                    }
                }
            })
        });
        let mut n_won = 0;
        for racer in racers.collect::<Vec<_>>() {
            n_won += in_time("a racer", racer).await.unwrap();
        }
        let events = store.load_events::<Enrolment>(&Query::all(), None).await.unwrap();
        let seats = Seats::fold(&events);
        assert_eq!((events.len(), n_won), (9, 9));
        assert!(seats.by_course.values().all(|students| students.len() == SEATS), "{seats:?}");
    }
}

#[tokio::test]
async fn a_warm_decider_reads_only_new_events_and_a_cold_one_starts_from_a_snapshot() {
    let store = EventStore::in_memory().await.unwrap();
    let (counting, counts) = counted(&store);
    let all = || Runner::<Seats>::over(counting.clone(), Query::stream("enrolments"), ("enrolments", "all"), tags_of);
    let mut warm = all().with_snapshots();
    for (n, student) in ["ada", "bob", "eve"].iter().enumerate() {
        warm.execute(wanted("chess", student), &Cause::request()).await.unwrap();
        store.append(noting("other", 1)).await.unwrap();
        assert_eq!(counts.take_events(), 0, "its own event {n} is in its state already");
    }
    let mut cold = all().with_snapshots();
    cold.catch_up().await.unwrap();
    // The snapshot was written with the last event, from the state before it.
    assert_eq!((cold.handler(), counts.take_events()), (warm.handler(), 2));
}

#[tokio::test]
async fn an_event_outside_the_deciders_query_is_refused() {
    let store = EventStore::in_memory().await.unwrap();
    let blind = Runner::<Seats>::over(store.clone(), Query::tag("course:chess"), ("enrolments", "all"), |_| vec![]);
    let error = { blind }.execute(wanted("chess", "ada"), &Cause::request()).await.unwrap_err();
    assert!(matches!(error, ExecuteError::Store(Error::InvalidAppend { .. })), "{error}");
    assert!(error.to_string().contains("Enrolled does not match the query"), "{error}");
    assert_eq!(store.head().await.unwrap(), Position(0));
}

#[tokio::test]
async fn a_repeated_reaction_leaves_a_decider_in_the_correct_state() {
    let store = EventStore::in_memory().await.unwrap();
    store.append(noting("cause", 1)).await.unwrap();
    let cause = everything(&store).await.remove(0);
    // Another host performs the reaction first, and right before it someone else enrols.
    let id = crewlog_mq::derived_event_id("enroller", cause.created_at, cause.event_id, 0);
    let twice = enrolling("elsewhere", "chess", "bob").and(
        "enrolments",
        "all",
        Expected::Any,
        vec![new_event("chess", "ada").with_id(id)],
    );
    let (overtaken, _) = with_intruder(&store, Some(twice));
    let mut runner = decider(&overtaken, "chess", "ada");
    let reaction = Cause::reaction("enroller", &cause);
    let executed = runner.execute(wanted("chess", "ada"), &reaction).await.unwrap();
    assert_eq!((executed.events.len(), executed.position), (0, Position(3)));
    runner.catch_up().await.unwrap();
    assert_eq!(*runner.handler(), Seats::fold(&[enrolled("chess", "bob"), enrolled("chess", "ada")]));
}

#[tokio::test]
async fn the_seats_handler_passes_its_scenario() {
    let history = || [enrolled("chess", "ada"), enrolled("chess", "bob"), enrolled("music", "ada")];
    let scenario = given::<Seats>(history())
        .when(wanted("chess", "ada"))
        .then_nothing()
        .when(wanted("dance", "ada"))
        .then_refused(|refusal| *refusal == Refused::Enough)
        .when(wanted("chess", "eve"))
        .then([enrolled("chess", "eve")])
        .when(wanted("chess", "zoe"))
        .then_refused(|refusal| *refusal == Refused::Full);
    for (store, _place) in logs().await {
        scenario.on(&store).await;
    }
}
