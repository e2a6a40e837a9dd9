//! A program's output with a size limit: if it is too long, its middle is dropped.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::oneshot;

use crate::secrets::Secrets;

/// The bytes kept of a command's output, of an agent's result and of its errors: half from the beginning, half from the end.
pub const OUTPUT_BYTES_MAX: usize = 64 << 10;
/// The bytes kept in addition of what an agent prints: its result may be within one long line of JSON.
const AGENT_BYTES_MORE: usize = 8 << 20;
/// How long to read output after the program has exited: a process that left its session may hold the pipes open forever.
const OUTPUT_GRACE: Duration = Duration::from_secs(1);

/// The form in which the two outputs of a program are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outputs {
    /// One text: standard output and standard error are one pipe.
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
    /// The bytes that may be kept beyond the limit.
    n_more: usize,
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
    /// True if the beginning of the last line was dropped.
    pub lacks_last_line: bool,
}

impl Written {
    /// Everything that is recorded. Standard error comes last: a shortened error keeps its end.
    pub(crate) fn text(&self) -> String {
        let texts = [shortened(&self.out.text), shortened(&self.err.text)];
        texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
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
        let Self { head, tail, n_bytes, n_more } = self;
        let bytes_max = OUTPUT_BYTES_MAX + n_more;
        if n_bytes <= bytes_max as u64 {
            return Text { text: secrets.redacted(head.trim_end()), n_bytes, is_cut: false, lacks_last_line: false };
        }
        let end = if tail.is_empty() { &head } else { &tail };
        let tail = secrets.tail(end, bytes_max / 2);
        let head = secrets.head(&head, bytes_max / 2);
        let n_dropped = n_bytes - bytes_max as u64;
        let text = format!("{head}\n... {n_dropped} bytes dropped ...\n{}", tail.trim_end());
        let lacks_last_line = !tail.trim_end().contains('\n');
        Text { text, n_bytes, is_cut: true, lacks_last_line }
    }
}

/// A text without its middle if it is too long to record. It may have the note of an earlier cut.
pub(crate) fn shortened(text: &str) -> String {
    if text.len() <= OUTPUT_BYTES_MAX + 64 {
        return text.to_owned();
    }
    let mut output = Output::default();
    output.take(text.as_bytes());
    output.kept().cut(&Secrets::default()).text
}

/// An output as it arrives, within the size limit.
#[derive(Debug, Default)]
struct Output {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    n_bytes: u64,
    /// The bytes kept behind each limit, so that a secret there is whole.
    window: usize,
    n_more: usize,
}

impl Output {
    fn take(&mut self, bytes: &[u8]) {
        self.n_bytes += bytes.len() as u64;
        let half = (OUTPUT_BYTES_MAX + self.n_more) / 2 + self.window;
        let room = half.saturating_sub(self.head.len());
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        self.tail.extend(rest);
        let excess = self.tail.len().saturating_sub(half);
        self.tail.drain(..excess);
    }

    fn kept(self) -> Kept {
        let Self { mut head, mut tail, n_bytes, n_more, .. } = self;
        if n_bytes <= (head.len() + tail.len()) as u64 {
            head.extend(tail.drain(..));
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let tail = text(tail.make_contiguous());
        Kept { head: text(&head), tail, n_bytes, n_more }
    }
}

/// Reads the outputs to their ends, or for a while after the program `is_gone`. The second is missing if they are mixed.
pub(crate) async fn collect(
    window: usize,
    [out, err]: [Option<Receiver>; 2],
    is_gone: oneshot::Receiver<()>,
) -> [Kept; 2] {
    let given_up = async {
        // Returns when the sender is dropped.
        let _ = is_gone.await;
        tokio::time::sleep(OUTPUT_GRACE).await;
    };
    let n_more = if err.is_some() { AGENT_BYTES_MORE } else { 0 };
    let mut first = Output { n_more, window, ..Output::default() };
    let mut second = Output { window, ..Output::default() };
    let both = async { tokio::join!(drain(out, &mut first), drain(err, &mut second)) };
    tokio::select! {
        _ = both => {}
        () = given_up => {}
    }
    [first.kept(), second.kept()]
}

async fn drain(from: Option<Receiver>, to: &mut Output) {
    let (Some(mut from), mut bytes) = (from, [0; 8192]) else { return };
    while let Ok(n_read @ 1..) = from.read(&mut bytes).await {
        to.take(&bytes[..n_read]);
    }
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
    fn a_last_line_whose_beginning_was_dropped_is_known_as_such() {
        let long = "y".repeat(OUTPUT_BYTES_MAX);
        for (parts, expected) in [
            (&["a\nb"][..], false),
            (&["a\n", &long], true),
            (&["a\n", &long, "\n\n \n"], true),
            (&[&long, "\nshort\n"], false),
            (&[&long, "\n", &long], true),
        ] {
            let n_bytes: Vec<_> = parts.iter().map(|part| part.len()).collect();
            assert_eq!(of(parts).lacks_last_line, expected, "{n_bytes:?}");
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
                for limit in [half, half + n_more, half + window] {
                    let before = limit.saturating_sub(shift);
                    let long = OUTPUT_BYTES_MAX + n_more;
                    let text = format!("{}{secret}{}", "y".repeat(before), "z".repeat(long.saturating_sub(before)));
                    let mut output = Output { window, ..Output::default() };
                    text.as_bytes().chunks(1000).for_each(|chunk| output.take(chunk));
                    let cut = output.kept().cut(&secrets);
                    assert!(!is_part(&cut.text) && cut.is_cut, "{n_more} {shift} {limit}");
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
