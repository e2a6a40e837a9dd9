//! Whether what a task reads is there before it begins. What is not there is asked for; nothing is made here, and of a
//! link to another machine no more is fetched than whether it answers, and that only where it is wanted.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use crewlog_planner::event::Parameters;
use crewlog_planner::plan::AttachmentKind;

use crate::links::Links;

/// The answer with which a task goes on without what it was asked for.
pub const GO_ON: &str = "go on";

/// What a task is told as its executor gets it: looked through where nothing else waits for that. Links must answer
/// where there is something to ask them with.
///
/// # Errors
/// The question to ask, when something is not there.
pub(crate) async fn prepared(parameters: &Parameters, links: Option<Links>) -> Result<Cow<'_, Parameters>, String> {
    if parameters.needs.is_empty() {
        return Ok(Cow::Borrowed(parameters));
    }
    let told = parameters.clone();
    // A file may be on another machine, which takes its time.
    let checked = move || match links {
        Some(links) => check_with_links(&told, &links),
        None => check(&told),
    };
    match tokio::task::spawn_blocking(checked).await {
        Ok(checked) => Ok(Cow::Owned(checked?)),
        Err(error) => {
            tracing::warn!(%error, "what a task reads could not be looked at");
            Ok(Cow::Borrowed(parameters))
        }
    }
}

/// What a task is told, with what people gave in place of what was not there. Links are looked at by their form alone.
///
/// # Errors
/// The question to ask, when something is not there.
pub fn check(parameters: &Parameters) -> Result<Parameters, String> {
    check_by(parameters, &|_link| Ok(()))
}

/// The same, where links must answer too. It waits for them, so it is called where waiting blocks nobody.
///
/// # Errors
/// The question to ask, when something is not there.
pub fn check_with_links(parameters: &Parameters, links: &Links) -> Result<Parameters, String> {
    let looking = links.begin();
    check_by(parameters, &|link| looking.look(link))
}

fn check_by(parameters: &Parameters, reach: &dyn Fn(&str) -> Result<(), String>) -> Result<Parameters, String> {
    let mut parameters = parameters.clone();
    for needed in parameters.needs.clone() {
        let mut given = needed.clone();
        let mut seen = vec![needed.clone()];
        // An answer that names nothing that is there was asked about again, by its own name.
        while let Err(reason) = look(&given, parameters.folder.as_deref(), reach) {
            let question = question(&given, &reason);
            let answered = parameters.answers.iter().rev().find(|answered| answered.question == question);
            match answered.map(|answered| answered.answer.trim()) {
                Some(answer) if says_go_on(answer) => break,
                Some(answer) if !seen.iter().any(|known| known == answer) => {
                    given = answer.to_owned();
                    seen.push(given.clone());
                }
                Some(_) | None => return Err(question),
            }
        }
        if given != needed {
            replace(&mut parameters, &needed, &given);
        }
    }
    Ok(parameters)
}

/// True of an answer that begins with those words, whatever a person adds to them.
fn says_go_on(answer: &str) -> bool {
    let begins = answer.get(..GO_ON.len()).is_some_and(|begins| begins.eq_ignore_ascii_case(GO_ON));
    begins && !answer[GO_ON.len()..].starts_with(char::is_alphanumeric)
}

fn question(reference: &str, reason: &str) -> String {
    format!("{reference} {reason}. Put it there and give its path, name another path or link, or say \"{GO_ON}\".")
}

/// Why a path or a link cannot be read, if it cannot.
fn look(reference: &str, folder: Option<&str>, reach: &dyn Fn(&str) -> Result<(), String>) -> Result<(), String> {
    if let Some(rest) = ["https://", "http://"].iter().find_map(|scheme| reference.strip_prefix(scheme)) {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let is_link = !host.is_empty() && !host.starts_with(':') && !reference.contains(char::is_whitespace);
        return if is_link { reach(reference) } else { Err("is no link".to_owned()) };
    }
    let path = reference.strip_prefix("file://").or_else(|| reference.strip_prefix("file:")).unwrap_or(reference);
    let path = path.strip_prefix("localhost/").map_or_else(|| PathBuf::from(path), |path| Path::new("/").join(path));
    let path = folder.map_or_else(|| path.clone(), |folder| Path::new(folder).join(&path));
    let read = path.metadata().and_then(|found| match found.is_dir() {
        true => path.read_dir().map(drop),
        // A pipe would be waited for.
        false if found.is_file() => std::fs::File::open(&path).map(drop),
        false => Ok(()),
    });
    read.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "is not there".to_owned(),
        _other => format!("cannot be read ({error})"),
    })
}

fn replace(parameters: &mut Parameters, needed: &str, given: &str) {
    for attachment in &mut parameters.attachments {
        let (AttachmentKind::Link(reference)
        | AttachmentKind::ImageRef(reference)
        | AttachmentKind::FileRef(reference)
        | AttachmentKind::EmbeddingRef(reference)
        | AttachmentKind::ScreenshotRef(reference)) = &mut attachment.kind;
        if reference == needed {
            given.clone_into(reference);
        }
    }
    for file in parameters.files.iter_mut().filter(|file| *file == needed) {
        given.clone_into(file);
    }
    let note = format!("In place of {needed} there is {given}.");
    parameters.notes.push(note);
}
