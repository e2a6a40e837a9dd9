//! A program's output with a size limit: if it is too long, its middle is dropped.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::oneshot;

/// The bytes kept of a command's output, or of each output of an agent: half from the beginning, half from the end.
pub const OUTPUT_BYTES_MAX: usize = 64 << 10;
/// The bytes kept of the beginning of a line, in addition to the text.
const LINE_BYTES_MAX: usize = 64;
/// How long to read output after the program has exited: a process that left its session may hold the pipes open forever.
const OUTPUT_GRACE: Duration = Duration::from_secs(1);

/// The form in which the two outputs of a program are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outputs {
    /// One text in order of arrival: standard output and standard error mixed.
    Mixed,
    /// Two, each with its own limit.
    Apart,
}

/// A program's output.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Written {
    /// Its standard output; when mixed, all output.
    pub out: Text,
    /// Its standard error; when mixed, nothing.
    pub err: Text,
}

/// One output as text: invalid UTF-8 is replaced, white space at the end is dropped, and so is the middle if it is too long.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Text {
    /// The text.
    pub text: String,
    /// The bytes that were written.
    pub n_bytes: u64,
    /// True if the middle was dropped.
    pub is_cut: bool,
    /// The beginning of the last line that is not blank, if it was dropped.
    pub lost_last_line: Option<String>,
}

impl Written {
    /// Everything that is kept. Standard error comes last: a shortened error keeps its end.
    pub(crate) fn text(&self) -> String {
        let texts = [&*self.out.text, &*self.err.text].into_iter().filter(|text| !text.is_empty());
        texts.collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn n_bytes(&self) -> u64 {
        self.out.n_bytes + self.err.n_bytes
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.out.is_cut || self.err.is_cut
    }
}

/// An output as it arrives, within the size limit.
#[derive(Debug, Default)]
struct Output {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    n_bytes: u64,
    /// The beginning of the current line.
    line: Vec<u8>,
    /// The beginning of the last line that is not blank.
    last_line: Vec<u8>,
}

impl Output {
    fn take(&mut self, bytes: &[u8]) {
        self.n_bytes += bytes.len() as u64;
        for (nth, part) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if nth > 0 {
                self.line.clear();
            }
            let room = LINE_BYTES_MAX.saturating_sub(self.line.len()).min(part.len());
            self.line.extend_from_slice(&part[..room]);
            if !self.line.trim_ascii().is_empty() {
                self.last_line.clone_from(&self.line);
            }
        }
        let room = (OUTPUT_BYTES_MAX / 2).saturating_sub(self.head.len());
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        self.tail.extend(rest);
        let excess = self.tail.len().saturating_sub(OUTPUT_BYTES_MAX / 2);
        self.tail.drain(..excess);
    }

    fn is_cut(&self) -> bool {
        self.n_bytes > (self.head.len() + self.tail.len()) as u64
    }

    /// The beginning of the last line that is not blank, if it was dropped from the text.
    fn lost_last_line(&self) -> Option<String> {
        let mut rest = self.tail.iter().rev().skip_while(|byte| byte.is_ascii_whitespace());
        let is_lost = self.is_cut() && !rest.any(|byte| *byte == b'\n');
        is_lost.then(|| String::from_utf8_lossy(&self.last_line).into_owned())
    }

    fn into_text(self) -> Text {
        let (n_bytes, is_cut, lost_last_line) = (self.n_bytes, self.is_cut(), self.lost_last_line());
        Text { text: self.text(), n_bytes, is_cut, lost_last_line }
    }

    fn text(&self) -> String {
        let mut bytes = self.head.clone();
        if self.is_cut() {
            let n_dropped = self.n_bytes - (self.head.len() + self.tail.len()) as u64;
            bytes.extend_from_slice(format!("\n... {n_dropped} bytes dropped ...\n").as_bytes());
        }
        bytes.extend(&self.tail);
        String::from_utf8_lossy(&bytes).trim_end().to_owned()
    }
}

/// Reads both to their ends, or for a while after the program `is_gone`.
pub(crate) async fn collect(
    outputs: Outputs,
    mut stdout: impl AsyncRead + Unpin,
    mut stderr: impl AsyncRead + Unpin,
    is_gone: oneshot::Receiver<()>,
) -> Written {
    let given_up = async {
        // Returns when the sender is dropped.
        let _ = is_gone.await;
        tokio::time::sleep(OUTPUT_GRACE).await;
    };
    tokio::pin!(given_up);
    let (mut first, mut second) = (Output::default(), Output::default());
    let (mut out, mut err) = ([0; 8192], [0; 8192]);
    let (mut out_is_open, mut err_is_open) = (true, true);
    while out_is_open || err_is_open {
        tokio::select! {
            n_read = stdout.read(&mut out), if out_is_open => match n_read {
                Ok(0) | Err(_) => out_is_open = false,
                Ok(n_read) => first.take(&out[..n_read]),
            },
            n_read = stderr.read(&mut err), if err_is_open => match n_read {
                Ok(0) | Err(_) => err_is_open = false,
                Ok(n_read) => match outputs {
                    Outputs::Mixed => first.take(&err[..n_read]),
                    Outputs::Apart => second.take(&err[..n_read]),
                },
            },
            () = &mut given_up => break,
        }
    }
    Written { out: first.into_text(), err: second.into_text() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excess_output_loses_its_middle_with_a_note() {
        let mut output = Output::default();
        for n in 0..100_000 {
            output.take(format!("line {n}\n").as_bytes());
        }
        let text = output.text();
        assert!(text.starts_with("line 0\n") && text.ends_with("line 99999"));
        assert!(text.contains("bytes dropped"));
        assert!(text.len() < OUTPUT_BYTES_MAX + 64);
        assert_eq!(output.n_bytes, (0..100_000).map(|n| format!("line {n}\n").len() as u64).sum::<u64>());
    }

    fn of(parts: &[&str]) -> Text {
        let mut output = Output::default();
        parts.iter().for_each(|part| output.take(part.as_bytes()));
        output.into_text()
    }

    #[test]
    fn output_is_whole_up_to_the_limit_and_then_says_what_it_lacks() {
        for (n_more, note) in [(0, None), (1, Some("... 1 bytes dropped ...")), (9, Some("... 9 bytes dropped ..."))] {
            let text = of(&["x\n", &"y".repeat(OUTPUT_BYTES_MAX - 4 + n_more), "\nz"]);
            assert_eq!((text.n_bytes, text.is_cut), ((OUTPUT_BYTES_MAX + n_more) as u64, note.is_some()), "{n_more}");
            assert_eq!(text.text.lines().find(|line| line.contains("dropped")), note);
            assert!(text.text.starts_with("x\ny") && text.text.ends_with("y\nz"));
        }
    }

    #[test]
    fn the_beginning_of_the_last_line_is_known_where_it_was_dropped() {
        let long = "y".repeat(OUTPUT_BYTES_MAX);
        let begin = |line: &str| Some(line.chars().take(LINE_BYTES_MAX).collect::<String>());
        let asked = format!("QUESTION: which? {long}");
        for (parts, expected) in [
            (&["a\nb"][..], None),
            (&["a\n", &asked], begin(&asked)),
            (&["a\n", "QUESTION: ", "which? ", &long], begin(&asked)),
            (&["a\n", &asked, "\n\n \n"], begin(&asked)),
            (&[&asked, "\nshort\n"], None),
            (&[&asked, &asked, "\n", &long], begin(&long)),
        ] {
            assert_eq!(
                of(parts).lost_last_line,
                expected,
                "{:?}",
                parts.iter().map(|part| part.len()).collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn both_outputs_are_one_text_with_errors_at_its_end() {
        for (out, err, expected) in [("a", "b", "a\nb"), ("a", "", "a"), ("", "b", "b"), ("", "", "")] {
            let written = Written { out: of(&[out]), err: of(&[err]) };
            assert_eq!((written.text(), written.n_bytes()), (expected.to_owned(), (out.len() + err.len()) as u64));
            assert!(!written.is_cut());
        }
        let cut = || Text { is_cut: true, ..of(&["a"]) };
        for (out, err) in [(cut(), of(&["b"])), (of(&["a"]), cut()), (cut(), cut())] {
            assert!(Written { out, err }.is_cut());
        }
    }

    #[test]
    fn output_that_is_not_utf_8_becomes_text() {
        let mut output = Output::default();
        output.take(b"\xff\x00ok\n\n");
        assert_eq!(output.text(), "\u{fffd}\0ok");
        assert!(!output.is_cut());
    }
}
