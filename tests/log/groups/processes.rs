//! A worker in another process that is stopped past its lease.
//!
//! The test binary runs itself as the other process.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use crewlog_mq::Ended;
use rustix::process::{Pid, Signal, kill_process};

use super::super::Place;
use super::*;

const STORE: &str = "CREWLOG_TEST_GROUP_CHILD_STORE";
const LEASE: Duration = Duration::from_millis(500);

/// Handles one event until released, and reports the outcome of its worker.
struct Slow;

impl GroupHandler for Slow {
    fn handle<'a>(
        &'a self,
        event: &'a Recorded,
        delivery: &'a mut Delivery,
    ) -> BoxFuture<'a, Result<(), HandlerError>> {
        Box::pin(async move {
            effect(event, delivery)?;
            say(&format!("handling {}", event.position));
            // The parent stops this process here, in the middle of the work, and releases it with a line.
            let mut line = String::new();
            std::io::stdin().read_line(&mut line)?;
            delivery.append("effects", "late", Expected::Any, &Effect::Made { n: event.position.0 })?;
            say("handled");
            Ok(())
        })
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // The test harness leaves a line open before.
    writeln!(out, "\nchild: {line}").expect("the parent listens");
    out.flush().expect("the parent listens");
}

/// The body of the child process.
#[test]
#[ignore = "runs in another process"]
fn child_process_body() {
    let url = std::env::var(STORE).expect("a test has started this process");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = EventStore::open(&url).await.unwrap();
        let group = group(&store).partitions(1).lease(LEASE);
        let mut said = std::pin::pin!(store.follow(&Query::stream("over"), crewlog_mq::Start::Beginning));
        let over = async { drop(futures::StreamExt::next(&mut said).await) };
        let ended = group.run_until(Slow, over).await;
        say(&format!("ended {:?}", ended.unwrap() == Ended::Stopped));
    });
}

struct Other {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Other {
    fn start(place: &Place) -> Self {
        let module = module_path!().split_once("::").expect("a test is in a module").1;
        let mut child = Command::new(std::env::current_exe().expect("the test binary has a path"))
            .args([&format!("{module}::child_process_body"), "--exact", "--ignored", "--nocapture"])
            .env(STORE, place.url())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the test binary runs");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        Self { child, lines }
    }

    fn says(&mut self) -> String {
        for line in self.lines.by_ref() {
            if let Some(said) = line.expect("the pipe can be read").strip_prefix("child: ") {
                return said.to_owned();
            }
        }
        "nothing more".to_owned()
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("it is there");
    }

    fn go_on(&mut self) {
        let stdin = self.child.stdin.as_mut().expect("it is piped");
        stdin.write_all(b"go on\n").expect("it listens");
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_stopped_past_its_lease_is_refused_together_with_its_effects() {
    let place = Place::new();
    let store = place.open().await;
    for n in 0..3 {
        append(&store, "a", n).await;
    }
    let mut other = Other::start(&place);
    assert_eq!(other.says(), "handling 1");
    other.signal(Signal::STOP);
    let seen = Seen::default();
    run_to(&group(&store).partitions(1).lease(LEASE), Position(3), seen.handler("", effect)).await;
    assert_eq!(seen.sequences()["a"], [1, 2, 3], "another has taken over, from the first event on");
    other.signal(Signal::CONT);
    other.go_on();
    assert_eq!(other.says(), "handled");
    store.append(Append::to("over", "over", Expected::Any, vec![note(0)])).await.unwrap();
    assert_eq!(other.says(), "ended true");
    assert_eq!(effects(&store).await, BTreeMap::from([("a".to_owned(), vec![0, 1, 2])]), "nothing of the late one");
}
