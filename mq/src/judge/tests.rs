//! The blocks of the suite that are about appends, on logs in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::conformance::{Rig, check_block};
use crate::{EventStore, Memory};

fn memory() -> Rig {
    let logs: Arc<Mutex<HashMap<String, EventStore>>> = Arc::default();
    Rig::new("memory", move |name, options| {
        let mut logs = logs.lock().expect("nobody panics with it");
        let make = || EventStore::on(Memory::new(options));
        std::future::ready(Ok(logs.entry(name).or_insert_with(make).clone()))
    })
}

#[cfg(feature = "sqlite")]
fn sqlite() -> Rig {
    let logs: Arc<tokio::sync::Mutex<HashMap<String, EventStore>>> = Arc::default();
    Rig::new("SQLite in memory", move |name, options| {
        let logs = Arc::clone(&logs);
        async move {
            let mut logs = logs.lock().await;
            if !logs.contains_key(&name) {
                logs.insert(name.clone(), EventStore::on(crate::Sqlite::in_memory(options).await?));
            }
            Ok(logs[&name].clone())
        }
    })
}

#[tokio::test]
async fn appends_are_judged_as_the_suite_says() {
    for block in ["atomicity", "idempotency", "cells", "time", "closing", "model"] {
        check_block(&memory(), block, 1).await;
        #[cfg(feature = "sqlite")]
        check_block(&sqlite(), block, 1).await;
    }
}
