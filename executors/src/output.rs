//! A program's output with a size limit: if it is too long, its middle is dropped.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::oneshot;

use crate::runs::RunFile;
use crate::secrets::{Redactor, Secrets};

/// The bytes kept of a command's output, of an agent's result and of its errors: half from the beginning, half from the end.
pub const OUTPUT_BYTES_MAX: usize = 64 << 10;
/// The bytes kept in addition of what an agent prints: its result may be within one long line of JSON.
const AGENT_BYTES_MORE: usize = 8 << 20;
/// After this time without output a line that is not whole is written.
const PARTIAL_AFTER: Duration = Duration::from_secs(1);
/// A longer line is written in parts.
const LINE_BYTES_MAX: usize = 1 << 20;
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

/// A text without its middle if it is too long to record. It may have the note of an earlier cut.
pub(crate) fn shortened(text: &str) -> String {
    if text.len() <= OUTPUT_BYTES_MAX + 64 {
        return text.to_owned();
    }
    let mut output = Output::default();
    output.take(text);
    output.text(text.len() as u64).text
}

/// An output as it arrives, within the size limit.
#[derive(Debug, Default)]
struct Output {
    head: String,
    tail: VecDeque<u8>,
    n_bytes: u64,
    /// The bytes that may be kept beyond the limit.
    n_more: usize,
}

impl Output {
    fn take(&mut self, text: &str) {
        self.n_bytes += text.len() as u64;
        let half = (OUTPUT_BYTES_MAX + self.n_more) / 2;
        let room = if self.tail.is_empty() { half.saturating_sub(self.head.len()) } else { 0 };
        let (head, rest) = text.split_at(text.floor_char_boundary(room.min(text.len())));
        self.head.push_str(head);
        self.tail.extend(rest.as_bytes());
        let excess = self.tail.len().saturating_sub(half);
        self.tail.drain(..excess);
    }

    /// The text, of which this many bytes were written.
    fn text(self, n_bytes: u64) -> Text {
        let Self { head, mut tail, n_bytes: n_taken, .. } = self;
        let tail = tail.make_contiguous();
        let n_dropped = n_taken - (head.len() + tail.len()) as u64;
        let starts = tail.iter().position(|byte| byte & 0xc0 != 0x80).unwrap_or(0);
        let tail = String::from_utf8_lossy(&tail[starts..]);
        if n_dropped == 0 {
            let text = head + &tail;
            return Text { text: text.trim_end().to_owned(), n_bytes, is_cut: false, lacks_last_line: false };
        }
        let text = format!("{head}\n... {n_dropped} bytes dropped ...\n{}", tail.trim_end());
        Text { text, n_bytes, is_cut: true, lacks_last_line: !tail.trim_end().contains('\n') }
    }
}

/// Reads the outputs to their ends, or for a while after the program `is_gone`. The second is missing if they are mixed. Both
/// are written to the file as they arrive.
pub(crate) async fn collect(
    secrets: Rc<Secrets>,
    [out, err]: [Option<Receiver>; 2],
    file: Option<RunFile>,
    is_gone: oneshot::Receiver<()>,
) -> Written {
    let given_up = async {
        // Returns when the sender is dropped.
        let _ = is_gone.await;
        tokio::time::sleep(OUTPUT_GRACE).await;
    };
    let n_more = if err.is_some() { AGENT_BYTES_MORE } else { 0 };
    let file = RefCell::new(file);
    let sink = |n_more| Pipe {
        redactor: Redactor::new(Rc::clone(&secrets)),
        output: Output { n_more, ..Output::default() },
        file: &file,
        line: err.as_ref().map(|_| String::new()),
        n_bytes: 0,
    };
    let (mut first, mut second) = (sink(n_more), sink(0));
    let both = async { tokio::join!(drain(out, &mut first), drain(err, &mut second)) };
    tokio::select! {
        _ = both => {}
        () = given_up => {}
    }
    Written { out: first.end(), err: second.end() }
}

/// The places that an output goes to.
struct Pipe<'f> {
    redactor: Redactor,
    output: Output,
    /// Unset once it cannot be written.
    file: &'f RefCell<Option<RunFile>>,
    /// Of one of two outputs: the line that is not whole yet.
    line: Option<String>,
    n_bytes: u64,
}

impl Pipe<'_> {
    fn take(&mut self, bytes: &[u8], are_last: bool) {
        self.n_bytes += bytes.len() as u64;
        let text = self.redactor.take(bytes, are_last);
        self.output.take(&text);
        let written = match &mut self.line {
            None => text,
            Some(line) => {
                line.push_str(&text);
                let n_whole = line.rfind('\n').map_or(0, |end| end + 1);
                let rest = line.split_off(if are_last || line.len() > LINE_BYTES_MAX { line.len() } else { n_whole });
                std::mem::replace(line, rest)
            }
        };
        self.file.borrow_mut().take_if(|file| file.write(written.as_bytes()).is_err());
    }

    /// Writes the line that is not whole: the program may be waiting for an answer to it.
    fn show_line(&mut self) {
        if let Some(line) = self.line.as_mut().filter(|line| !line.is_empty()) {
            let line = std::mem::take(line);
            self.file.borrow_mut().take_if(|file| file.write(line.as_bytes()).is_err());
        }
    }

    fn end(mut self) -> Text {
        self.take(&[], true);
        self.output.text(self.n_bytes)
    }
}

async fn drain(from: Option<Receiver>, to: &mut Pipe<'_>) {
    let (Some(mut from), mut bytes) = (from, [0; 8192]) else { return };
    loop {
        let read = from.read(&mut bytes);
        // Of a single output nothing waits for the end of its line.
        let read = if to.line.is_some() { tokio::time::timeout(PARTIAL_AFTER, read).await } else { Ok(read.await) };
        match read {
            Ok(Ok(n_read @ 1..)) => to.take(&bytes[..n_read], false),
            Ok(Ok(_) | Err(_)) => return,
            Err(_it_waits) => to.show_line(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of a command's output that arrives in pieces.
    fn of(parts: &[&[u8]], secrets: &str) -> Text {
        let secrets = Rc::new(serde_json::from_str(secrets).unwrap());
        let file = RefCell::new(None);
        let (redactor, output) = (Redactor::new(secrets), Output::default());
        let mut sink = Pipe { redactor, output, file: &file, line: None, n_bytes: 0 };
        parts.iter().for_each(|part| sink.take(part, false));
        sink.end()
    }

    fn plain(parts: &[&str]) -> Text {
        of(&parts.iter().map(|part| part.as_bytes()).collect::<Vec<_>>(), "{}")
    }

    #[test]
    fn excess_output_loses_its_middle_with_a_note() {
        let lines = (0..100_000).map(|n| format!("line {n}\n")).collect::<Vec<_>>();
        let Text { text, n_bytes, .. } = plain(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(text.starts_with("line 0\n") && text.ends_with("line 99999"));
        assert!(text.contains("bytes dropped"));
        assert!(text.len() < OUTPUT_BYTES_MAX + 64);
        assert_eq!(n_bytes, lines.concat().len() as u64);
    }

    #[test]
    fn output_is_whole_up_to_the_limit_and_then_says_what_it_lacks() {
        for (n_more, note) in [(0, None), (1, Some("... 1 bytes dropped ...")), (9, Some("... 9 bytes dropped ..."))] {
            let text = plain(&["x\n", &"y".repeat(OUTPUT_BYTES_MAX - 4 + n_more), "\nz"]);
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
            assert_eq!(plain(parts).lacks_last_line, expected, "{n_bytes:?}");
        }
    }

    #[test]
    fn no_part_of_a_secret_is_left_at_a_cut_or_between_pieces() {
        let secret = "tok_0123456789abcdefghijklmnopqrstuv";
        let half = OUTPUT_BYTES_MAX / 2;
        let is_part = |text: &str| (0..secret.len() - 8).any(|at| text.contains(&secret[at..at + 8]));
        for secrets in [r#"{ "patterns": ["tok_[0-9a-z]{32}"] }"#, r#"{ "patterns": ["tok_[^-]{32}"] }"#] {
            for n_more in [1, half, 3 * half] {
                for before in (0..=2 * secret.len()).map(|shift| half.saturating_sub(shift)) {
                    let after = (OUTPUT_BYTES_MAX + n_more).saturating_sub(before);
                    let text = format!("{}{secret}-{}", "y".repeat(before), "z".repeat(after));
                    let pieces = text.as_bytes().chunks(1000).collect::<Vec<_>>();
                    let cut = of(&pieces, secrets);
                    assert!(!is_part(&cut.text) && cut.is_cut, "{n_more} {before}");
                }
            }
        }
    }

    #[test]
    fn a_secret_is_found_over_lines_and_within_the_escapes_of_json() {
        let key = "-----BEGIN KEY-----\nAAAA\nBBBB\n-----END KEY-----";
        let within = serde_json::json!({ "type": "text", "deep": [{ "text": format!("it is {key}") }], "n": 1 });
        for (pattern, text, expected) in [
            ("-----BEGIN KEY-----[A-Z[:space:]]+-----END KEY-----", format!("a\n{key}\nb\n"), "a\n[redacted]\nb"),
            (r"-----BEGIN KEY-----[A-Z\p{Cc}]+-----END KEY-----", format!("a\n{key}\nb\n"), "a\n[redacted]\nb"),
            (r"-----BEGIN KEY-----[A-Z\n]+-----END KEY-----", format!("{within}\nb\n"), "[redacted]"),
            ("tok_\"[a-z]{4}", r#"{"text":"tok_\"abcd"}"#.to_owned() + "\n", "[redacted]"),
        ] {
            let secrets = serde_json::json!({ "patterns": [pattern] }).to_string();
            for size in [1, 7, 4096] {
                let found = of(&text.as_bytes().chunks(size).collect::<Vec<_>>(), &secrets);
                assert!(found.text.contains(expected), "{pattern} by {size}: {}", found.text);
                assert!(!found.text.contains("AAAA") && !found.text.contains("abcd"), "{pattern}: {}", found.text);
            }
        }
    }

    #[test]
    fn both_outputs_are_one_text_with_errors_at_its_end() {
        for (out, err, expected) in [("a", "b", "a\nb"), ("a", "", "a"), ("", "b", "b"), ("", "", "")] {
            let written = Written { out: plain(&[out]), err: plain(&[err]) };
            assert_eq!((written.text(), written.n_bytes()), (expected.to_owned(), (out.len() + err.len()) as u64));
            assert!(!written.is_cut());
        }
        let cut = || Text { is_cut: true, ..plain(&["a"]) };
        for (out, err) in [(cut(), plain(&["b"])), (plain(&["a"]), cut()), (cut(), cut())] {
            assert!(Written { out, err }.is_cut());
        }
    }

    #[test]
    fn output_that_is_not_utf_8_becomes_text() {
        for (parts, expected) in [
            (&[&b"\xff\x00ok\n\n"[..]][..], "\u{fffd}\0ok"),
            (&[b"a\xe2", b"\x82", b"\xac b"], "a\u{20ac} b"),
            (&[b"a\xe2\x82", b"b"], "a\u{fffd}b"),
            (&[b"\x80\x80\x80\x80"], "\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
            (&[b"end \xf0\x9f"], "end \u{fffd}"),
        ] {
            let text = of(parts, "{}");
            assert_eq!((&*text.text, text.is_cut), (expected, false));
        }
    }
}
