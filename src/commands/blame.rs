//! `blame`: shows for each line of a file the commit and the agent that wrote it, with its task and lease.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use crewlog_executors::crew::worktree::Worktree;
use crewlog_mq::Timestamp;
use crewlog_planner::crew::target::Target;
use serde::Serialize;
use serde_json::json;

use crate::context::Session;
use crate::ui::failure::{Code, Failure};
use crate::ui::text::{one_line, rfc3339, visible};
use crate::views::history::{FileHistory, PastCommit, PastLease};
use crate::views::views;

/// The most characters of a line of the file.
const LINE_CHARS_MAX: usize = 400;
/// The characters of a commit's id in the text.
const ID_CHARS: usize = 10;

#[derive(Debug, Args)]
pub struct Blame {
    /// A file, or one line of it
    #[arg(value_name = "FILE[:LINE]")]
    pub file: String,
}

/// A line of a file, and its author.
#[derive(Debug, Clone, Serialize)]
struct BlamedLine {
    line: usize,
    text: String,
    /// Null for a line that is not committed.
    commit: Option<String>,
    /// The author according to git.
    author: String,
    at: Option<String>,
    agent: Option<String>,
    task: Option<String>,
    lease: Option<u64>,
    /// How the agent is known: `commit` if its commit is in the log, `lease` if it leased the file at that time.
    by: Option<&'static str>,
}

/// A line of git's porcelain output.
struct GitLine {
    commit: String,
    author: String,
    seconds: i64,
    line: usize,
    text: String,
}

pub async fn blame(session: &Session, typed: &str) -> Result<Code, Failure> {
    let (file, line) = parts(&session.folder, typed);
    let worktree = Worktree::around(&session.folder);
    let written = file.to_string_lossy();
    let path = worktree.below_root(&session.folder, &written).map_err(|error| Failure::user(error.to_string()))?;
    let content = std::fs::read(session.folder.join(&file)).map_err(|error| {
        let missing = Failure::new(Code::Nothing, format!("{written} cannot be read: {error}"));
        missing.hint("`crewlog blame FILE` or `crewlog blame FILE:LINE`, with a path from here")
    })?;
    if content.contains(&0) {
        let binary = Failure::user(format!("{written} is a binary file, which has no lines"));
        return Err(binary.hint(session.command(&format!("why {written}"))));
    }
    let n_lines = String::from_utf8_lossy(&content).lines().count();
    if let Some(line) = line.filter(|line| *line == 0 || *line > n_lines) {
        return Err(Failure::user(format!("{written} has lines 1 to {n_lines}, and no line {line}")));
    }
    let lines = if n_lines == 0 { Vec::new() } else { blamed_by_git(session, &worktree.root, &path, line)? };
    let target = Target::literal(&path).map_err(|error| Failure::user(error.to_string()))?;
    let as_of = views(session).await?.as_of(None).await?;
    let history = as_of.history(&target).await?;
    let lines: Vec<_> = lines.into_iter().map(|line| joined(line, &history, &worktree.name)).collect();
    session.print_list(
        "lines",
        json!({ "at": as_of.at, "path": path }),
        &lines,
        |line| line,
        |to, line| {
            let commit = line.commit.as_deref().map_or("not committed", |id| id.get(..ID_CHARS).unwrap_or(id));
            let who = line.agent.as_deref().unwrap_or(&line.author);
            let task = line.task.as_deref().unwrap_or("-");
            let at = line.at.as_deref().and_then(|at| at.get(..10)).unwrap_or("-");
            let BlamedLine { line: number, text, .. } = line;
            writeln!(to, "{}", visible(&format!("{commit:<13}  {who:<12}  {task:<12}  {at}  {number:>5}  {text}")))
        },
    )
}

/// The file and the line that were typed. A file may end with a colon and digits itself.
fn parts(folder: &Path, typed: &str) -> (PathBuf, Option<usize>) {
    let split = typed.rsplit_once(':').filter(|_| !folder.join(typed).exists());
    match split.and_then(|(file, line)| Some((file, line.parse().ok()?))) {
        Some((file, line)) => (PathBuf::from(file), Some(line)),
        None => (PathBuf::from(typed), None),
    }
}

fn blamed_by_git(session: &Session, root: &Path, path: &str, line: Option<usize>) -> Result<Vec<GitLine>, Failure> {
    let mut git = Command::new("git");
    git.args(["blame", "--line-porcelain"]).args(line.map(|line| format!("-L{line},{line}")));
    let ran = git.args(["--", path]).current_dir(root).output();
    let ran = ran.map_err(|error| Failure::user(format!("git cannot be run: {error}")))?;
    if !ran.status.success() {
        let says = one_line(&String::from_utf8_lossy(&ran.stderr), LINE_CHARS_MAX);
        let unknown = Failure::user(format!("git knows no lines of {path}: {says}"));
        return Err(unknown.hint(session.command(&format!("why {path}"))));
    }
    Ok(parsed(&String::from_utf8_lossy(&ran.stdout)))
}

/// Parses `git blame --line-porcelain`: headers with one fact each, then the text after a tab.
fn parsed(output: &str) -> Vec<GitLine> {
    let (mut lines, mut headers) = (Vec::new(), Vec::new());
    for line in output.lines() {
        let Some(text) = line.strip_prefix('\t') else {
            headers.push(line);
            continue;
        };
        let value = |key: &str| headers.iter().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
        let mut first = headers.first().map_or("", |line| line).split(' ');
        lines.push(GitLine {
            commit: first.next().unwrap_or_default().to_owned(),
            line: first.nth(1).and_then(|number| number.parse().ok()).unwrap_or_default(),
            author: value("author").unwrap_or_default().to_owned(),
            seconds: value("committer-time").and_then(|seconds| seconds.parse().ok()).unwrap_or_default(),
            text: text.to_owned(),
        });
        headers.clear();
    }
    lines
}

/// Joins a line with the log: by its commit, else by the lease at that time. A line that is not committed is by the holder, or by
/// the last one.
fn joined(
    GitLine { commit, author, seconds, line, text }: GitLine,
    history: &FileHistory,
    worktree: &str,
) -> BlamedLine {
    let is_committed = commit.chars().any(|digit| digit != '0');
    let at = Timestamp(seconds.saturating_mul(1_000_000));
    let known = history.commit(&commit).filter(|past| past.commit.agent.is_some());
    let held = match is_committed {
        true => history.held_at(at),
        false => history.held_last(worktree),
    };
    let of_lease = |PastLease { lease, agent, task, .. }: &PastLease| {
        (Some(agent.clone()), task.clone(), Some(*lease), Some("lease"))
    };
    let of_commit = |PastCommit { commit, lease, .. }: &PastCommit| {
        let task = commit.task.clone().or_else(|| lease.as_ref()?.task.clone());
        (commit.agent.clone(), task, lease.as_ref().map(|lease| lease.lease), Some("commit"))
    };
    let known = known.map(of_commit).or_else(|| held.map(of_lease));
    let (agent, task, lease, by) = known.unwrap_or_default();
    let text = one_line(&text, LINE_CHARS_MAX);
    let (commit, at) = (is_committed.then_some(commit), is_committed.then(|| rfc3339(at)));
    BlamedLine { line, text, commit, author, at, agent, task, lease, by }
}
