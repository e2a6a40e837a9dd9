//! The terminal of `top`: taken for the view, and given back on every exit, also after a panic.

use std::fs::File;
use std::io::{self, IsTerminal, stderr, stdout};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::prelude::CrosstermBackend;
use ratatui::{DefaultTerminal, Terminal};

/// Set while the terminal is taken: standard error as it was, if it is a terminal.
static TAKEN: Mutex<Option<Option<OwnedFd>>> = Mutex::new(None);

/// The terminal, until this is dropped.
pub struct Screen {
    pub terminal: DefaultTerminal,
    _taken: Taken,
}

struct Taken;

impl Screen {
    /// Takes the terminal. Warnings of this process are not shown while it is taken: they would be drawn into the view.
    pub fn take() -> io::Result<Self> {
        let terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        let kept = if stderr().is_terminal() { Some(stderr().as_fd().try_clone_to_owned()?) } else { None };
        if kept.is_some() {
            rustix::stdio::dup2_stderr(File::options().write(true).open("/dev/null")?)?;
        }
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
        let taken = Taken;
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panicked| {
            give_back();
            before(panicked);
        }));
        enable_raw_mode()?;
        execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
        Ok(Self { terminal, _taken: taken })
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        give_back();
    }
}

/// Gives the terminal back, once.
fn give_back() {
    let Some(kept) = TAKEN.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
    // A terminal that has hung up takes nothing.
    let _ = disable_raw_mode();
    let _ = execute!(stdout(), DisableBracketedPaste, LeaveAlternateScreen, Show);
    if let Some(kept) = kept {
        let _ = rustix::stdio::dup2_stderr(kept);
    }
}
