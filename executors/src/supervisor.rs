//! The small process between a worker and the command of a task, so that no death of the worker leaves a child behind.
//!
//! The worker starts its own binary again with the argument that leads to [`supervise`] and keeps one end of a socket
//! pair, the lifeline; the other end is the supervisor's standard input. Orders go down the lifeline and reports come
//! up it, one JSON line each:
//!
//! ```text
//! worker      Prepare(spec)           Go                       Stop { grace_ms }
//! supervisor                 Ready                             Ended(exit)
//! ```
//!
//! The command's standard input is `/dev/null`, or a pipe of its own with the text that it is given, and the lifeline
//! is no pipe of it, so nothing that it prints can pass for a report. Its output goes straight into the worker's pipes;
//! the supervisor never reads it. When the lifeline closes, for whatever reason, everything the command has started is
//! killed.
//!
//! The supervisor holds the task's lock shared until all of that is gone. Who can lock the file exclusively knows that
//! no child of the task is left.
//!
//! What it never does: decide whether a command runs, retry one, or look at its output.
//!
//! Limits. A process that leaves the session (`setsid`, a daemon) is not killed. On Linux the whole session is, and has
//! been waited for when the supervisor ends; elsewhere it is the process group, and the kill has been sent. If the
//! supervisor itself is killed with `SIGKILL`, its worker kills the session instead, on Linux; if both are killed at
//! once, the command goes on.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{ChildStderr, ChildStdout};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

/// How long a supervisor may take beyond the grace of a stop.
const STOP_MARGIN: Duration = Duration::from_secs(5);

/// A program to run. Travels as one JSON line, so paths and variables are UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The program and its arguments, as they are: there is no shell between, unless the program is one. A name without
    /// a slash is looked for in the `PATH`; a path that is not absolute counts from `cwd`.
    pub argv: Vec<String>,
    /// What it reads on its standard input, which is empty if absent. A program need not read it, or not to its end.
    pub input: Option<String>,
    /// Where it runs; the worker's own directory if absent.
    pub cwd: Option<PathBuf>,
    /// Variables added to the worker's environment.
    pub env: Vec<(String, String)>,
    /// A file that is locked shared, and created if missing, from before the command starts until all of its processes
    /// are gone. The worker may hold it shared as well; while anyone holds it exclusively, the start waits.
    pub lock: Option<PathBuf>,
}

impl Spec {
    /// The words that have a line run by `sh`, in which `args` are `"$1"`, `"$2"` ...
    pub fn shell_line(line: &str, args: impl IntoIterator<Item = String>) -> Vec<String> {
        let words = ["/bin/sh", "-c", line].map(str::to_owned).into_iter();
        let mut args = args.into_iter().peekable();
        // The word before them is the line's own name, `$0`.
        let name = args.peek().map(|_| "sh".to_owned());
        words.chain(name).chain(args).collect()
    }

    /// The words that run a task's command by `sh`. It stops at the first line that fails or uses an unset variable:
    /// steps after a failed build are useless.
    pub fn shell_script(command: &str) -> Vec<String> {
        let mut words = Self::shell_line(command, []);
        words.insert(1, "-eu".to_owned());
        words
    }
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    /// It exited with this code, 0 to 255.
    Code(i32),
    /// It was ended by the signal of this number.
    Signal(i32),
    /// It never ran.
    NotStarted {
        /// The reason, such as a missing working directory.
        reason: String,
    },
}

/// How to start a process that calls [`supervise`].
///
/// Arguments show in the process list: keep the program's own name out of them, so that `pkill -9 -f` by that name ends
/// workers and spares their supervisors.
#[derive(Debug, Clone)]
pub struct SupervisorProgram {
    /// The binary.
    pub path: PathBuf,
    /// The arguments with which it calls [`supervise`].
    pub args: Vec<OsString>,
}

impl SupervisorProgram {
    /// The running binary with these arguments; on Linux still the same one after its file has been replaced.
    pub fn this_binary(args: impl IntoIterator<Item: Into<OsString>>) -> io::Result<SupervisorProgram> {
        let path = if cfg!(target_os = "linux") { PathBuf::from("/proc/self/exe") } else { std::env::current_exe()? };
        Ok(SupervisorProgram { path, args: args.into_iter().map(Into::into).collect() })
    }
}

/// A running command, seen from the worker. Dropping it kills the command and everything it has started.
#[derive(Debug)]
pub struct Supervised {
    process: tokio::process::Child,
    supervisor: Option<Pid>,
    orders: OwnedWriteHalf,
    reports: Inbox,
    exit: Option<Exit>,
}

impl Supervised {
    /// Starts a supervisor, waits until it holds the lock, and lets the command run. An error means that nothing has
    /// run. That the command itself could not be started is not an error here: it is the [`Exit::NotStarted`] of
    /// [`wait`](Self::wait).
    pub async fn spawn(program: &SupervisorProgram, spec: &Spec) -> io::Result<Supervised> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let process = tokio::process::Command::new(&program.path)
            .arg0(PROCESS_NAME)
            .args(&program.args)
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let supervisor = process.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        let (reports, orders) = UnixStream::from_std(ours)?.into_split();
        let mut supervised = Supervised { process, supervisor, orders, reports: Inbox::new(reports), exit: None };
        send(&mut supervised.orders, &Order::Prepare(spec.clone())).await?;
        match supervised.reports.next().await? {
            Some(Report::Ready) => send(&mut supervised.orders, &Order::Go).await?,
            Some(Report::Ended(Exit::NotStarted { reason })) => return Err(io::Error::other(reason)),
            Some(Report::Ended(Exit::Code(_) | Exit::Signal(_))) | None => {
                let path = program.path.display();
                return Err(io::Error::other(format!("{path} was started as a supervisor and did not become one")));
            }
        }
        Ok(supervised)
    }

    /// The command's standard output and error, to be read while it runs. They end with [`wait`](Self::wait), unless a
    /// process that left the session holds them open: after `wait`, read what is there and no more.
    ///
    /// # Panics
    ///
    /// When called a second time.
    pub fn take_output(&mut self) -> (ChildStdout, ChildStderr) {
        let taken_once = "the output is taken once";
        (self.process.stdout.take().expect(taken_once), self.process.stderr.take().expect(taken_once))
    }

    /// Waits until the command and everything it has started are gone and the lock is free. May be dropped and called
    /// again.
    ///
    /// An [`io::ErrorKind::UnexpectedEof`] means that the supervisor was killed before it could report: the command's
    /// processes have been killed too, and how far it came is unknown.
    pub async fn wait(&mut self) -> io::Result<Exit> {
        while self.exit.is_none() {
            match self.reports.next().await? {
                Some(Report::Ready) => {}
                Some(Report::Ended(exit)) => self.exit = Some(exit),
                None => return Err(self.supervisor_lost()),
            }
        }
        self.process.wait().await?;
        Ok(self.exit.clone().expect("the loop ends when the exit is known"))
    }

    /// Asks the command to end with `SIGTERM`, has it killed after `grace`, and [waits](Self::wait). The supervisor
    /// keeps the time, so dropping the future takes nothing back.
    pub async fn stop(&mut self, grace: Duration) -> io::Result<Exit> {
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        match send(&mut self.orders, &Order::Stop { grace_ms }).await {
            Err(error) if !is_hang_up(&error) => return Err(error),
            Ok(()) | Err(_) => {}
        }
        if let Ok(exit) = tokio::time::timeout(grace + STOP_MARGIN, self.wait()).await {
            return exit;
        }
        // A supervisor that does not answer, because somebody stopped it, is as good as lost.
        self.process.start_kill()?;
        self.wait().await
    }

    fn supervisor_lost(&self) -> io::Error {
        // Nobody has waited for the supervisor yet, so the session's number cannot have gone to another.
        #[cfg(target_os = "linux")]
        self.supervisor.into_iter().for_each(session::end);
        io::Error::new(io::ErrorKind::UnexpectedEof, "the supervisor was killed before it could report")
    }
}

/// The body of the hidden subcommand: follows the orders on standard input until the command and everything it has
/// started are gone.
///
/// Blocks; to be called from `main` before any thread or runtime is started.
pub fn supervise() -> ExitCode {
    match become_supervisor().and_then(|runtime| runtime.block_on(follow_orders())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!(
                "{PROCESS_NAME}: {error}; this subcommand is for workers, which give it a socket as standard input"
            );
            ExitCode::FAILURE
        }
    }
}

/// The name in the process list, free of the program's own.
const PROCESS_NAME: &str = "task-supervisor";

#[derive(Debug, Serialize, Deserialize)]
enum Order {
    Prepare(Spec),
    Go,
    Stop { grace_ms: u64 },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Report {
    Ready,
    Ended(Exit),
}

/// The reading half of a lifeline.
#[derive(Debug)]
struct Inbox(Lines<BufReader<OwnedReadHalf>>);

impl Inbox {
    fn new(half: OwnedReadHalf) -> Inbox {
        Inbox(BufReader::new(half).lines())
    }

    /// The next message, `None` when the other end is gone. Dropping the future loses nothing.
    async fn next<M: DeserializeOwned>(&mut self) -> io::Result<Option<M>> {
        match self.0.next_line().await {
            Ok(Some(line)) => Ok(Some(serde_json::from_str(&line)?)),
            Ok(None) => Ok(None),
            Err(error) if is_hang_up(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

async fn send(half: &mut OwnedWriteHalf, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    half.write_all(&line).await
}

fn is_hang_up(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// Leaves the terminal's session, so that its Ctrl-C reaches the worker alone.
fn become_supervisor() -> io::Result<tokio::runtime::Runtime> {
    rustix::process::setsid()?;
    #[cfg(target_os = "linux")]
    {
        rustix::thread::set_name(c"task-supervisor")?;
        // Orphans of the command become children of the supervisor, which can then wait for them.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    }
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

async fn follow_orders() -> io::Result<()> {
    let lifeline = StdUnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    lifeline.set_nonblocking(true)?;
    let (orders, mut reports) = UnixStream::from_std(lifeline)?.into_split();
    let mut orders = Inbox::new(orders);

    let Some(Order::Prepare(spec)) = orders.next().await? else { return Ok(()) };
    let lock = match spec.lock.as_deref().map(lock_shared).transpose() {
        Ok(lock) => lock,
        Err(reason) => return send(&mut reports, &Report::Ended(Exit::NotStarted { reason })).await,
    };
    send(&mut reports, &Report::Ready).await?;
    let Some(Order::Go) = orders.next().await? else { return Ok(()) };
    let exit = run(&spec, &mut orders).await?;
    match send(&mut reports, &Report::Ended(exit)).await {
        Err(error) if !is_hang_up(&error) => return Err(error),
        Ok(()) | Err(_) => {}
    }
    drop(lock);
    Ok(())
}

fn lock_shared(path: &Path) -> Result<File, String> {
    let file = File::options().read(true).append(true).create(true).open(path);
    file.and_then(|file| file.lock_shared().map(|()| file))
        .map_err(|error| format!("cannot lock {}: {error}", path.display()))
}

/// Runs the command until its first process ends by itself, by an order, by the closing of the lifeline or by a signal
/// to the supervisor; then ends the rest.
async fn run(spec: &Spec, orders: &mut Inbox) -> io::Result<Exit> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let leader = match start(spec) {
        Ok(leader) => leader,
        Err(reason) => return Ok(Exit::NotStarted { reason }),
    };
    let mut ended = tokio::task::spawn_blocking(move || wait_unreaped(leader));
    let mut kill_at = None;
    let mut alive = true;
    loop {
        let due = kill_at.unwrap_or_else(Instant::now);
        tokio::select! {
            result = &mut ended => break result??,
            order = orders.next(), if alive => match order {
                Ok(Some(Order::Stop { grace_ms })) => {
                    signal_all(leader, Signal::TERM);
                    kill_at = Instant::now().checked_add(Duration::from_millis(grace_ms)).into_iter().chain(kill_at).min();
                }
                Ok(Some(Order::Prepare(_) | Order::Go) | None) | Err(_) => alive = false,
            },
            () = tokio::time::sleep_until(due), if kill_at.is_some() => alive = false,
            _ = terminate.recv() => alive = false,
            _ = hang_up.recv() => alive = false,
            _ = interrupt.recv() => alive = false,
        }
        if !alive {
            kill_at = None;
            signal_all(leader, Signal::KILL);
        }
    }
    end_all(leader)
}

/// Starts the command as the leader of a process group of its own.
fn start(spec: &Spec) -> Result<Pid, String> {
    let (program, args) = spec.argv.split_first().ok_or("there is nothing to start")?;
    let mut command = Command::new(program);
    command.args(args).envs(spec.env.iter().map(|(name, value)| (name, value))).process_group(0);
    let input = spec.input.clone().map_or_else(|| Ok(Stdio::null()), pipe_of);
    command.stdin(input.map_err(|error| format!("cannot give {program} its input: {error}"))?);
    if let Some(cwd) = &spec.cwd {
        command.current_dir(directory(cwd).map_err(|error| format!("cannot work in {}: {error}", cwd.display()))?);
    }
    // Waiting is done by number, in two steps that `Child` does not offer.
    command.spawn().map(|child| Pid::from_child(&child)).map_err(|error| format!("cannot start {program}: {error}"))
}

/// A standard input on which a text comes. Nobody waits for the thread that writes it: it ends when all is read or
/// nobody is left to read, which Rust's runtime makes an error and no signal, and at the latest with the process.
fn pipe_of(text: String) -> io::Result<Stdio> {
    let (reader, mut writer) = io::pipe()?;
    std::thread::Builder::new().spawn(move || writer.write_all(text.as_bytes()))?;
    Ok(reader.into())
}

/// Tells a missing directory from a missing program, which `spawn` does not.
fn directory(path: &Path) -> io::Result<&Path> {
    if std::fs::metadata(path)?.is_dir() { Ok(path) } else { Err(io::ErrorKind::NotADirectory.into()) }
}

/// Blocks until the process has ended, and leaves it unreaped: until then its number, and its group's, cannot go to
/// another.
fn wait_unreaped(leader: Pid) -> io::Result<()> {
    retry_on_intr(|| rustix::process::waitid(WaitId::Pid(leader), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT))?;
    Ok(())
}

/// Kills what is left of an ended leader's group and session, and waits until it is gone.
fn end_all(leader: Pid) -> io::Result<Exit> {
    signal_all(leader, Signal::KILL);
    let mut exit = None;
    loop {
        match retry_on_intr(|| rustix::process::waitpgid(leader, WaitOptions::empty())) {
            Ok(Some((pid, status))) if pid == leader => exit = exit_of(status),
            Ok(_) => {}
            Err(Errno::CHILD) => break,
            Err(error) => return Err(error.into()),
        }
    }
    #[cfg(target_os = "linux")]
    session::end_strays();
    exit.ok_or_else(|| io::Error::other("the command ended without a status"))
}

fn exit_of(status: WaitStatus) -> Option<Exit> {
    status.exit_status().map(Exit::Code).or_else(|| status.terminating_signal().map(Exit::Signal))
}

/// Signals the group at once, then what has left it for another group of the session, as `timeout` does. Errors mean
/// that a process is already gone.
fn signal_all(leader: Pid, signal: Signal) {
    let _ = rustix::process::kill_process_group(leader, signal);
    #[cfg(target_os = "linux")]
    for member in session::members(rustix::process::getpid()) {
        if member.group != leader.as_raw_pid() {
            let _ = rustix::process::kill_process(member.pid, signal);
        }
    }
}

/// The processes of a supervisor's session, which Linux lists.
#[cfg(target_os = "linux")]
mod session {
    use std::collections::HashSet;

    use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};

    pub(super) struct Member {
        pub(super) pid: Pid,
        pub(super) group: i32,
        parent: i32,
    }

    /// Every member but the supervisor, the ended ones that nobody has waited for included.
    pub(super) fn members(supervisor: Pid) -> Vec<Member> {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| member(entry.file_name().to_str()?, supervisor)).collect()
    }

    /// For the supervisor: kills the members and waits for them, until none is left. A killed process hands its children
    /// to the supervisor before it can be waited for, so each round has something to wait for or is the last.
    pub(super) fn end_strays() {
        let own = getpid();
        loop {
            let members = members(own);
            for member in &members {
                let _ = kill_process(member.pid, Signal::KILL);
            }
            let mut children = members.iter().filter(|member| member.parent == own.as_raw_pid()).peekable();
            if children.peek().is_none() {
                return;
            }
            for child in children {
                let _ = waitpid(Some(child.pid), WaitOptions::empty());
            }
        }
    }

    /// For the worker, which cannot wait for them: kills the members until a round finds no new one.
    pub(super) fn end(supervisor: Pid) {
        let mut killed = HashSet::new();
        loop {
            let fresh: Vec<Member> =
                members(supervisor).into_iter().filter(|member| killed.insert(member.pid)).collect();
            if fresh.is_empty() {
                return;
            }
            for member in fresh {
                let _ = kill_process(member.pid, Signal::KILL);
            }
        }
    }

    /// Reads `/proc/<pid>/stat`: `pid (name) state parent group session ...`, where the name may hold anything.
    fn member(pid: &str, supervisor: Pid) -> Option<Member> {
        let pid = Pid::from_raw(pid.parse().ok()?)?;
        let stat = String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/stat")).ok()?).into_owned();
        let mut fields = stat.rsplit_once(") ")?.1.split(' ');
        let _state = fields.next()?;
        let mut numbers = fields.map_while(|field| field.parse::<i32>().ok());
        let (parent, group, session) = (numbers.next()?, numbers.next()?, numbers.next()?);
        (pid != supervisor && session == supervisor.as_raw_pid()).then_some(Member { pid, group, parent })
    }
}

#[cfg(test)]
mod tests;
