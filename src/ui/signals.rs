//! Termination signals of this process.

use futures::future::OptionFuture;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::ui::failure::Failure;

/// Termination signals. Once an instance exists, they no longer end the program by default.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Unset when the signal was ignored at the start, as with `nohup`.
    hang_up: Option<Signal>,
}

impl Signals {
    pub fn new() -> Result<Self, Failure> {
        let listen =
            |kind| signal(kind).map_err(|error| Failure::user(format!("the program cannot receive signals: {error}")));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: if hang_up_is_ignored() { None } else { Some(listen(SignalKind::hangup())?) },
        })
    }

    pub async fn next(&mut self) {
        self.next_kind().await;
    }

    pub async fn next_kind(&mut self) -> SignalKind {
        tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            Some(_) = OptionFuture::from(self.hang_up.as_mut().map(Signal::recv)) => SignalKind::hangup(),
        }
    }
}

/// True if SIGHUP was ignored when the program began; known on Linux only.
fn hang_up_is_ignored() -> bool {
    const HANG_UP: u64 = 1;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & HANG_UP != 0)
}
