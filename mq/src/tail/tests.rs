//! Many threads that use one tail.

use std::sync::mpsc::channel;

use super::*;

#[test]
fn new_followers_and_the_writer_never_wait_for_each_other() {
    const N_COMMITS: i64 = 200_000;
    let tail = Arc::new(Tail::default());
    let (done, is_done) = channel();
    let (writer, reader, writer_done) = (Arc::clone(&tail), tail, done.clone());
    std::thread::spawn(move || {
        for position in 1..=N_COMMITS {
            writer.grew(0, End { head: Position(position), ..End::default() });
        }
        writer_done.send(())
    });
    std::thread::spawn(move || {
        while reader.head() < Position(N_COMMITS) {
            drop(reader.follow());
        }
        done.send(())
    });
    for _ in 0..2 {
        is_done.recv_timeout(Duration::from_secs(60)).expect("nobody waits for ever");
    }
}
