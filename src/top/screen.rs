//! The terminal of `top`: taken for the view, and restored on every exit, also after a panic.

use std::fs::File;
use std::io::{self, IsTerminal, Write, stderr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use ratatui::DefaultTerminal;

/// The terminal, taken until this is dropped.
pub struct Screen {
    pub terminal: DefaultTerminal,
    /// The original standard error, if it is a terminal.
    stderr: Arc<Option<OwnedFd>>,
}

impl Screen {
    /// Takes the terminal. Warnings of this process are hidden meanwhile, since they would be drawn into the view.
    pub fn take() -> io::Result<Self> {
        let is_shown = stderr().is_terminal();
        let kept = Arc::new(if is_shown { Some(stderr().as_fd().try_clone_to_owned()?) } else { None });
        let (in_panic, before) = (kept.clone(), std::panic::take_hook());
        std::panic::set_hook(Box::new(move |panicked| {
            give_back(&in_panic);
            before(panicked);
        }));
        let screen = Self { terminal: ratatui::try_init()?, stderr: kept };
        if is_shown {
            rustix::stdio::dup2_stderr(File::options().write(true).open("/dev/null")?)?;
        }
        Ok(screen)
    }

    /// Rings the bell.
    pub fn ring(&mut self) -> io::Result<()> {
        let to = self.terminal.backend_mut();
        to.write_all(b"\x07")?;
        to.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that has hung up cannot be restored.
        let _ = ratatui::try_restore();
        give_back(&self.stderr);
    }
}

fn give_back(stderr: &Option<OwnedFd>) {
    if let Some(kept) = stderr {
        let _ = rustix::stdio::dup2_stderr(kept);
    }
}
