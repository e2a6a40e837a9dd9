//! Checks before a task begins that the files that it reads exist. A missing one becomes a question. Links are only checked for
//! their form.

use std::path::{Path, PathBuf};

use crewlog_planner::event::TaskInput;

/// Endings of documents and data.
const DOCUMENTS: &str = "md mdx txt rst adoc pdf doc docx odt xls xlsx ppt pptx csv tsv json jsonl yaml yml toml xml html ini \
                         conf log sql db sqlite parquet zip tar gz tgz png jpg jpeg gif svg webp bmp";

/// The answer that lets a task start without the missing file.
pub const GO_ON: &str = "go on";

/// Checks a task's attachments on a blocking thread.
///
/// # Errors
/// The question to ask if something is missing.
pub(crate) async fn checked(input: &TaskInput) -> Result<(), String> {
    if input.needs.is_empty() {
        return Ok(());
    }
    let input = input.clone();
    // A file may be on a slow, remote machine.
    tokio::task::spawn_blocking(move || check(&input)).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "the attachments of a task could not be checked");
        Ok(())
    })
}

/// Checks a task's attachments, or the replacements that people named. Links are only checked for their form.
///
/// # Errors
/// The question to ask if something is missing.
pub fn check(input: &TaskInput) -> Result<(), String> {
    for needed in &input.needs {
        let mut given = needed.as_str();
        let mut seen = vec![given];
        if !given.contains("://") && !is_meant(given, input) {
            continue;
        }
        // An answer that names a missing file was asked about again, under its own name.
        while let Err(reason) = look(given, input.folder.as_deref()) {
            let question = question(given, &reason);
            let answered = input.answers.iter().rev().find(|answered| answered.question == question);
            match answered.map(|answered| answered.answer.trim()) {
                Some(answer) if says_go_on(answer) => break,
                Some(answer) if !seen.contains(&answer) => {
                    given = answer;
                    seen.push(given);
                }
                Some(_) | None => return Err(question),
            }
        }
    }
    Ok(())
}

/// True if words with a slash or a full stop are meant as a file, rather than `client/server` or `llama.cpp`: they are code, begin
/// like a path, end like a document, or their folder is there.
fn is_meant(path: &str, input: &TaskInput) -> bool {
    let texts = input.notes.iter().chain([&input.description]);
    let is_code = texts.flat_map(|text| text.split('`').skip(1).step_by(2)).any(|code| code.contains(path));
    let begins = ["/", "./", "../", "~/", "file:", "$"].iter().any(|begin| path.starts_with(begin));
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    let first = path.split_once('/').map(|(first, _)| Path::new(input.folder.as_deref().unwrap_or(".")).join(first));
    is_code || begins || DOCUMENTS.split(' ').any(|known| known == ending) || first.is_some_and(|first| first.exists())
}

/// True if an answer begins with [`GO_ON`].
fn says_go_on(answer: &str) -> bool {
    let begins = answer.get(..GO_ON.len()).is_some_and(|begins| begins.eq_ignore_ascii_case(GO_ON));
    begins && !answer[GO_ON.len()..].starts_with(char::is_alphanumeric)
}

fn question(reference: &str, reason: &str) -> String {
    format!("{reference} {reason}. Put it there and give its path, name another path or link, or say \"{GO_ON}\".")
}

/// The reason why a path or a link cannot be read, if so.
fn look(reference: &str, folder: Option<&str>) -> Result<(), String> {
    if let Some(rest) = ["https://", "http://"].iter().find_map(|scheme| reference.strip_prefix(scheme)) {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let is_link = !host.is_empty() && !host.starts_with(':') && !reference.contains(char::is_whitespace);
        return if is_link { Ok(()) } else { Err("is not a link".to_owned()) };
    }
    let path = reference.strip_prefix("file://").or_else(|| reference.strip_prefix("file:")).unwrap_or(reference);
    let path = path.strip_prefix("localhost/").map_or_else(|| PathBuf::from(path), |path| Path::new("/").join(path));
    let path = folder.map_or_else(|| path.clone(), |folder| Path::new(folder).join(&path));
    let read = path.metadata().and_then(|found| match found.is_dir() {
        true => path.read_dir().map(drop),
        // Opening a pipe would block.
        false if found.is_file() => std::fs::File::open(&path).map(drop),
        false => Ok(()),
    });
    read.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "is not there".to_owned(),
        _other => format!("cannot be read ({error})"),
    })
}
