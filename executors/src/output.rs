//! A program's output with a size limit: if it is too long, its middle is dropped.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::oneshot;

use crate::secrets::Secrets;

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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Written {
    /// Its standard output; when mixed, all output.
    pub out: Text,
    /// Its standard error; when mixed, nothing.
    pub err: Text,
}

/// The part of an output that a supervisor keeps, with enough around the cut to see each secret whole.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// Its beginning, or all of it.
    head: String,
    /// Its end, unless that is in `head`.
    tail: String,
    n_bytes: u64,
    /// The beginning of the last line that is not blank.
    last_line: String,
}

/// One output as text: invalid UTF-8 is replaced, white space at the end is dropped, and so is the middle if it is too long.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
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

impl Kept {
    /// The text with its secrets replaced, and then without its middle if it is too long.
    pub(crate) fn cut(self, secrets: &Secrets) -> Text {
        let Self { head, tail, n_bytes, last_line } = self;
        if n_bytes <= OUTPUT_BYTES_MAX as u64 {
            return Text { text: secrets.redacted(head.trim_end()), n_bytes, is_cut: false, lost_last_line: None };
        }
        let end = if tail.is_empty() { &head } else { &tail };
        let tail = secrets.tail(end, OUTPUT_BYTES_MAX / 2);
        let head = secrets.head(&head, OUTPUT_BYTES_MAX / 2);
        let n_dropped = n_bytes - OUTPUT_BYTES_MAX as u64;
        let text = format!("{head}\n... {n_dropped} bytes dropped ...\n{}", tail.trim_end());
        let is_lost = !tail.trim_end().contains('\n');
        let lost_last_line = is_lost.then(|| secrets.head(&last_line, LINE_BYTES_MAX));
        Text { text, n_bytes, is_cut: true, lost_last_line }
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
    /// The bytes kept behind each limit, so that a secret there is whole.
    window: usize,
}

impl Output {
    fn take(&mut self, bytes: &[u8]) {
        self.n_bytes += bytes.len() as u64;
        for (nth, part) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if nth > 0 {
                self.line.clear();
            }
            let room = (LINE_BYTES_MAX + self.window).saturating_sub(self.line.len()).min(part.len());
            self.line.extend_from_slice(&part[..room]);
            if !self.line.trim_ascii().is_empty() {
                self.last_line.clone_from(&self.line);
            }
        }
        let half = OUTPUT_BYTES_MAX / 2 + self.window;
        let room = half.saturating_sub(self.head.len());
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        self.tail.extend(rest);
        let excess = self.tail.len().saturating_sub(half);
        self.tail.drain(..excess);
    }

    fn kept(self) -> Kept {
        let Self { mut head, mut tail, n_bytes, last_line, .. } = self;
        if n_bytes <= (head.len() + tail.len()) as u64 {
            head.extend(tail.drain(..));
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let tail = text(tail.make_contiguous());
        Kept { head: text(&head), tail, n_bytes, last_line: text(&last_line) }
    }
}

/// Reads both to their ends, or for a while after the program `is_gone`.
pub(crate) async fn collect(
    (outputs, window): (Outputs, usize),
    mut stdout: impl AsyncRead + Unpin,
    mut stderr: impl AsyncRead + Unpin,
    is_gone: oneshot::Receiver<()>,
) -> [Kept; 2] {
    let given_up = async {
        // Returns when the sender is dropped.
        let _ = is_gone.await;
        tokio::time::sleep(OUTPUT_GRACE).await;
    };
    tokio::pin!(given_up);
    let new = || Output { window, ..Output::default() };
    let (mut first, mut second) = (new(), new());
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
    [first.kept(), second.kept()]
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
        let (n_bytes, text) = (output.n_bytes, output.kept().cut(&Secrets::default()).text);
        assert!(text.starts_with("line 0\n") && text.ends_with("line 99999"));
        assert!(text.contains("bytes dropped"));
        assert!(text.len() < OUTPUT_BYTES_MAX + 64);
        assert_eq!(n_bytes, (0..100_000).map(|n| format!("line {n}\n").len() as u64).sum::<u64>());
    }

    fn of(parts: &[&str]) -> Text {
        let mut output = Output::default();
        parts.iter().for_each(|part| output.take(part.as_bytes()));
        output.kept().cut(&Secrets::default())
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
    fn no_part_of_a_secret_is_left_at_a_cut() {
        let secrets: Secrets = serde_json::from_str(r#"{ "patterns": ["tok_[0-9a-z]{32}"] }"#).unwrap();
        let secret = "tok_0123456789abcdefghijklmnopqrstuv";
        let half = OUTPUT_BYTES_MAX / 2;
        let window = secrets.window();
        let is_part = |text: &str| (0..secret.len() - 8).any(|at| text.contains(&secret[at..at + 8]));
        for n_more in [1, half, 3 * half] {
            for shift in 0..=2 * secret.len() {
                for limit in [half, half + n_more, LINE_BYTES_MAX, half + window] {
                    let before = limit.saturating_sub(shift);
                    let long = OUTPUT_BYTES_MAX + n_more;
                    let text = format!("{}{secret}{}", "y".repeat(before), "z".repeat(long.saturating_sub(before)));
                    let mut output = Output { window, ..Output::default() };
                    text.as_bytes().chunks(1000).for_each(|chunk| output.take(chunk));
                    let cut = output.kept().cut(&secrets);
                    assert!(!is_part(&cut.text) && cut.is_cut, "{n_more} {shift} {limit}");
                    assert!(!is_part(&cut.lost_last_line.unwrap_or_default()), "{n_more} {shift} {limit}");
                }
            }
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
        let text = output.kept().cut(&Secrets::default());
        assert_eq!((&*text.text, text.is_cut), ("\u{fffd}\0ok", false));
    }
}
