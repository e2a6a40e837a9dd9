//! What was begun before a log is closed is done; what comes later is refused, and nothing waits for ever.

use std::sync::mpsc;

use futures::future::{join, join_all};

use super::rig::{Rig, everything, new_name, note, noting};
use crate::{Append, Error, EventStore, Expected, Options, Query, Range};

/// Appends that are under way while the log is closed.
const N_APPENDS: u64 = 40;

pub(super) async fn check(rig: &Rig) {
    appends_under_way(rig).await;
    import_under_way(rig).await;
}

async fn appends_under_way(rig: &Rig) {
    let store = rig.new_log().await;
    let clone = store.clone();
    store.append(noting("before", 0)).await.expect("it is open");
    let appends = join_all((0..N_APPENDS).map(|n| clone.append(noting("a", n))));
    let query = Query::all();
    let reads = join_all((0..N_APPENDS).map(|_| clone.read(&query, Range::default(), 1)));
    let ((outcomes, read), ()) = join(join(appends, reads), store.close()).await;
    for outcome in
        outcomes.into_iter().map(|outcome| outcome.map(|_| ())).chain(read.into_iter().map(|page| page.map(|_| ())))
    {
        if let Err(refusal) = outcome {
            assert!(matches!(refusal, Error::Closed), "what comes too late is refused as such: {refusal}");
        }
    }
    refused(&clone).await;
    store.close().await;
    refused(&store).await;
}

/// All that can be asked of a log is refused.
async fn refused(store: &EventStore) {
    let append = Append::to("facts", "late", Expected::Any, vec![note(1)]);
    let outcomes = [
        ("append", store.append(append).await.err()),
        ("read", store.read(&Query::all(), Range::default(), 1).await.err()),
        ("head", store.head().await.err()),
        ("whole", store.whole(crate::Position(1)).await.err()),
        ("log", store.log().await.err()),
        ("check", store.check().await.err()),
        ("cells", store.cells("space", "", 1).await.err()),
        ("stats", store.stats().await.err()),
    ];
    for (what, refusal) in outcomes {
        assert!(matches!(refusal, Some(Error::Closed)), "{what} of a closed log is refused, and not {refusal:?}");
    }
}

async fn import_under_way(rig: &Rig) {
    let from = rig.new_log().await;
    for n in 0..3 {
        from.append(noting("a", n)).await.expect("it is open");
    }
    let (identity, events) = (from.log().await.expect("it has an identity"), everything(&from).await);
    let name = new_name();
    let store = rig.open(&name, Options::default()).await;
    let (begun, is_begun) = tokio::sync::oneshot::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let mut begun = Some(begun);
    let records = events.clone().into_iter().map(move |event| {
        if let Some(begun) = begun.take() {
            let _ = begun.send(());
            let _ = may_go_on.recv();
        }
        Ok(event)
    });
    let closing = async {
        is_begun.await.expect("the import begins");
        let close = store.close();
        let mut close = std::pin::pin!(close);
        assert!(futures::poll!(&mut close).is_pending(), "closing waits for what was begun");
        go_on.send(()).expect("the import waits");
        close.await;
    };
    let (imported, ()) = join(store.import(identity.clone(), records), closing).await;
    assert_eq!(imported.expect("it was begun before").n_added, events.len(), "an import that was begun is done");
    let late = store.import(identity, std::iter::empty()).await;
    assert!(matches!(late, Err(Error::Closed)), "an import into a closed log is refused, and not {late:?}");
}
