//! The reporting of lost events: which readers must be notified, and which need not.

use crewlog_mq::{Cause, Error, ExecuteError, Followed, Position, Query, Result, Start};
use futures::{Stream, StreamExt};

use super::restored::{Site, runners, with_copies};
use super::{Fact, everything, in_time, noting, went_back};

/// The next event, mark or loss. Lost connections are skipped.
async fn next(stream: &mut (impl Stream<Item = Result<Followed>> + Unpin)) -> String {
    loop {
        match in_time("an item", stream.next()).await.expect("a stream has no end") {
            Ok(Followed::CaughtUp(position)) => return format!("caught up to {position}"),
            Ok(Followed::Event(event)) => return format!("event {}", event.position),
            Err(error) if went_back(&error).is_some() => return "went back".to_owned(),
            Err(_) => {}
        }
    }
}

/// It had caught up with events that were replaced; a log that ends there or later does not show that.
#[tokio::test]
async fn a_caught_up_follower_learns_of_a_loss_after_its_last_event_from_a_log_that_has_regrown() {
    for site in Site::all() {
        with_copies(&site).await;
        for (copy, new) in [("other", 3), ("longer", 4)] {
            site.bring_back("same").await;
            let store = site.open().await;
            let mut stream = store.follow_marked(&Query::aggregate("facts", "x"), Start::After(Position(1))).boxed();
            while next(&mut stream).await != "caught up to 5" {}
            site.bring_back(copy).await;
            let mut seen = vec![next(&mut stream).await];
            // After a lost connection it may report again that it has caught up with the old log.
            while seen.last().is_some_and(|last| last == "caught up to 5") {
                seen = vec![next(&mut stream).await];
            }
            seen.push(next(&mut stream).await);
            assert_eq!(seen, ["went back", &*format!("event {new}")], "{copy}");
            store.close().await;
        }
    }
}

/// The append itself detects the loss, since nothing was read after it.
#[tokio::test]
async fn a_decider_reports_a_loss_that_its_append_finds_once() {
    for site in Site::all() {
        let store = site.open().await;
        store.append(noting("a", 1)).await.unwrap();
        site.keep("past").await;
        for mut runner in runners(&store) {
            let mut n_told = 0;
            runner.execute("lost".to_owned(), &Cause::request()).await.unwrap();
            site.bring_back("past").await;
            loop {
                match runner.execute_as_read("then".to_owned(), &Cause::request()).await {
                    Ok(_) => break,
                    Err(ExecuteError::Store(error)) => n_told += u32::from(went_back(&error).is_some()),
                    Err(error) => panic!("{error}"),
                }
            }
            assert_eq!((n_told, &*runner.handler().steps), (1, &["then".to_owned()][..]));
            site.bring_back("past").await;
            // The process learns of the loss, too, so that the next decider starts with the current log.
            while store.head().await.ok() != Some(Position(1)) {}
        }
    }
}

#[tokio::test]
async fn a_load_that_begins_after_a_loss_reads_the_log_as_it_is() {
    for site in Site::all() {
        with_copies(&site).await;
        let store = site.open().await;
        assert_eq!(everything(&store).await.len(), 5);
        site.bring_back("base").await;
        let loaded = loop {
            match store.load_events::<Fact>(&Query::all(), None).await {
                // The connection was lost.
                Err(Error::Unreachable { .. } | Error::Storage { .. }) => {}
                loaded => break loaded,
            }
        };
        assert_eq!(loaded.unwrap().len(), 2);
    }
}
