//! The blocks of the suite that are about appends, on a log in memory: the database that adds least to the judge.

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

#[tokio::test]
async fn appends_are_judged_as_the_suite_says() {
    for block in ["atomicity", "idempotency", "cells", "time", "closing", "model"] {
        check_block(&memory(), block, 1).await;
    }
}
