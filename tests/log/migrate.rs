//! Creating a log: completely or not at all, with killed and concurrent creators.

use crewlog_mq::EventStore;

use super::child::{self, Chance, Other, body, n_rounds, say};
use super::{Place, everything, noting};

async fn check_usable(place: &Place) {
    let store = place.open().await;
    assert_eq!(everything(&store).await.len(), 0);
    store.append(noting("a", 1)).await.expect("the log goes on");
    let checked = store.check().await.expect("it can be read");
    assert_eq!((checked.findings, checked.more), (vec![], false));
}

/// Opens a log in another process.
#[test]
#[ignore = "runs in another process"]
fn child_that_opens_a_log() {
    let (_, url) = child::role();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        say("opening");
        let store = EventStore::open(&url).await.expect("the log opens");
        say(&store.head().await.expect("it can be read").0.to_string());
    });
}

#[tokio::test]
async fn a_migration_killed_at_any_point_is_completed_by_the_next_open() {
    let mut chance = Chance::new();
    let orders: &[(&str, &str)] = if cfg!(feature = "faults") { &[("CREWLOG_KILL", "migrated")] } else { &[] };
    for round in 0..n_rounds(10) {
        let place = Place::new();
        // One dies after writing everything and before the commit, the others anywhere.
        let environment = if round == 0 { orders } else { &[] };
        let mut other = Other::start(body!(child_that_opens_a_log), "open", &place.url(), environment);
        assert_eq!(other.next().as_deref(), Some("opening"));
        if environment.is_empty() {
            chance.linger(30_000);
            other.kill();
        } else {
            assert_eq!(other.next(), None, "it dies before it is open");
        }
        drop(other);
        check_usable(&place).await;
    }
}

#[tokio::test]
async fn several_processes_can_migrate_one_log_concurrently() {
    let place = Place::new();
    let others = [(); 4].map(|()| Other::start(body!(child_that_opens_a_log), "open", &place.url(), &[]));
    for other in others {
        assert_eq!(other.succeeds(), ["opening", "0"]);
    }
    check_usable(&place).await;
}
