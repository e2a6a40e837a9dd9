//! The supervisor's own process: follows the orders on standard input, and ends every command when they end.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::rc::Rc;
use std::time::Duration;

use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::Instant;

use super::leaders::Leaders;
use super::protocol::{Ended, Exit, Inbox, News, Order, PROCESS_NAME, RUN, Spec, is_hang_up, mark_of_all, send};
use crate::output::{Outputs, Written, collect};
use crate::runs::RunFile;
use crate::secrets::Secrets;

/// The most threads that wait for commands; more commands queue for one.
const THREADS_MAX: usize = 1100;

/// The body of the hidden subcommand: follows the orders on standard input until they end and every command is gone.
///
/// Blocks; call it from `main` before any thread or runtime is started.
pub fn supervise() -> ExitCode {
    match become_supervisor().and_then(|runtime| LocalSet::new().block_on(&runtime, follow_orders())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!(
                "{PROCESS_NAME}: {error}; this subcommand is for workers, which give it a socket as standard input"
            );
            ExitCode::FAILURE
        }
    }
}

/// Leaves the terminal's session, so that its Ctrl-C reaches the worker alone.
fn become_supervisor() -> io::Result<tokio::runtime::Runtime> {
    rustix::process::setsid()?;
    #[cfg(target_os = "linux")]
    {
        rustix::thread::set_name(c"task-supervisor")?;
        // Orphans of the commands become children of the supervisor, which can then wait for them.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    }
    tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(THREADS_MAX).build()
}

async fn follow_orders() -> io::Result<()> {
    let lifeline = StdUnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    lifeline.set_nonblocking(true)?;
    let (orders, mut reports) = UnixStream::from_std(lifeline)?.into_split();
    let mut orders = Inbox::new(orders);
    // Only the end of the lifeline ends a supervisor, so that no command can end those of others. SIGCHLD may be ignored by a
    // parent, and commands could not be waited for.
    let ignored = [SignalKind::terminate(), SignalKind::hangup(), SignalKind::interrupt(), SignalKind::child()];
    let _ignored = ignored.into_iter().map(signal).collect::<io::Result<Vec<_>>>()?;

    let Some(Order::Begin { lock, secrets }) = orders.next().await? else { return Ok(()) };
    let secrets = Rc::new(Secrets::from(secrets));
    let lock = match lock.as_deref().map(lock_shared).transpose() {
        Ok(lock) => lock,
        Err(reason) => return send(&mut reports, &News::Refused { reason }).await,
    };
    send(&mut reports, &News::Ready).await?;
    let leaders = Leaders::default();
    // Dropped stops kill their commands.
    let mut stops = HashMap::new();
    let mut running = JoinSet::new();
    let mut is_alive = true;
    while is_alive || !running.is_empty() {
        tokio::select! {
            order = orders.next(), if is_alive => match order {
                Ok(Some(Order::Start { run, spec, outputs })) => {
                    let (stop, stopped) = mpsc::unbounded_channel();
                    stops.insert(run, stop);
                    running.spawn_local(carry_out(run, spec, (outputs, Rc::clone(&secrets)), stopped, leaders.clone()));
                }
                Ok(Some(Order::Stop { run, grace_ms })) => _ = stops.get(&run).map(|stop| stop.send(grace_ms)),
                Ok(Some(Order::Begin { .. }) | None) | Err(_) => is_alive = false,
            },
            Some(ended) = running.join_next() => {
                let (run, ended) = ended?;
                stops.remove(&run);
                let lost = |error: io::Error| (Exit::Lost { reason: error.to_string() }, Written::default());
                let (exit, written) = ended.unwrap_or_else(lost);
                match send(&mut reports, &News::Ended { run, ended: Ended { exit, written } }).await {
                    Err(error) if !is_hang_up(&error) => return Err(error),
                    Ok(()) | Err(_) => {}
                }
            }
        }
        if !is_alive {
            stops.clear();
        }
    }
    // A process that has left its group and cleared its environment belongs to no run.
    #[cfg(target_os = "linux")]
    super::session::end_strays(None, &leaders, false);
    drop(lock);
    Ok(())
}

pub(super) fn lock_shared(path: &Path) -> Result<File, String> {
    let file = File::options().read(true).append(true).create(true).open(path);
    file.and_then(|file| file.lock_shared().map(|()| file))
        .map_err(|error| format!("cannot lock {}: {error}", path.display()))
}

/// Runs a command until its first process ends by itself or by an order; then ends the rest.
async fn carry_out(
    run: u64,
    mut spec: Spec,
    (outputs, secrets): (Outputs, Rc<Secrets>),
    mut stops: mpsc::UnboundedReceiver<u64>,
    leaders: Leaders,
) -> (u64, io::Result<(Exit, Written)>) {
    let own = std::process::id();
    let mark = if spec.ends_all { mark_of_all(own.cast_signed()) + &run.to_string() } else { format!("{own}-{run}") };
    let file = spec.output.take().map(RunFile::new);
    let ended = match start(&spec, outputs, &mark, &leaders) {
        Ok((leader, out)) => supervised(leader, (secrets, out, file), &mut stops, (mark, spec.ends_all), leaders).await,
        Err(reason) => Ok((Exit::NotStarted { reason }, Written::default())),
    };
    (run, ended)
}

async fn supervised(
    leader: Pid,
    (secrets, outputs, file): (Rc<Secrets>, [Option<Receiver>; 2], Option<RunFile>),
    stops: &mut mpsc::UnboundedReceiver<u64>,
    (mark, ends_all): (String, bool),
    leaders: Leaders,
) -> io::Result<(Exit, Written)> {
    let (gone, is_gone) = oneshot::channel::<()>();
    let written = tokio::task::spawn_local(collect(secrets, outputs, file, is_gone));
    let mut ended = tokio::task::spawn_blocking(move || wait_unreaped(leader));
    let mut kill_at = None;
    loop {
        let due = kill_at.unwrap_or_else(Instant::now);
        tokio::select! {
            ended = &mut ended => break ended??,
            grace_ms = stops.recv() => match grace_ms {
                Some(grace_ms) if grace_ms > 0 => {
                    signal_group(leader, Signal::TERM);
                    #[cfg(target_os = "linux")]
                    super::session::signal_descendants(leader, Signal::TERM, ends_all);
                    kill_at = Instant::now().checked_add(Duration::from_millis(grace_ms)).into_iter().chain(kill_at).min();
                    continue;
                }
                Some(_) | None => {}
            },
            () = tokio::time::sleep_until(due), if kill_at.is_some() => {}
        }
        signal_group(leader, Signal::KILL);
        // It may have left its group. Nobody has waited for it, so its number is its own.
        let _ = rustix::process::kill_process(leader, Signal::KILL);
        ended.await??;
        break;
    }
    // On a thread of its own: a process that cannot be killed delays no other run.
    let ending = tokio::task::spawn_blocking(move || {
        let exit = end_group(leader);
        leaders.lock().remove(&leader);
        #[cfg(target_os = "linux")]
        super::session::end_strays(Some(&mark), &leaders, ends_all);
        exit
    });
    let exit = ending.await??;
    drop(gone);
    Ok((exit, written.await?))
}

/// Starts the command as the leader of a process group of its own. Mixed, both of its outputs are the first pipe.
fn start(spec: &Spec, outputs: Outputs, mark: &str, leaders: &Leaders) -> Result<(Pid, [Option<Receiver>; 2]), String> {
    let (program, args) = spec.argv.split_first().ok_or("the command is empty")?;
    let mut command = Command::new(program);
    if let Some(names) = &spec.passes {
        command.env_clear();
        command.envs(std::env::vars_os().filter(|(name, _)| names.iter().any(|passed| **passed == **name)));
    }
    command.args(args).envs(spec.env.iter().map(|(name, value)| (name, value))).env(RUN, marked(mark)).process_group(0);
    let input = spec.input.clone().map_or_else(|| Ok(Stdio::null()), pipe_of);
    command.stdin(input.map_err(|error| format!("cannot give {program} its input: {error}"))?);
    let no_pipe = |error: io::Error| format!("cannot read from {program}: {error}");
    let pipe = || io::pipe().and_then(|(from, to)| Ok((Receiver::from_owned_fd(from.into())?, to))).map_err(no_pipe);
    let (out, to_out) = pipe()?;
    let (err, to_err) = match outputs {
        Outputs::Mixed => (None, to_out.try_clone().map_err(no_pipe)?),
        Outputs::Apart => pipe().map(|(err, to_err)| (Some(err), to_err))?,
    };
    command.stdout(to_out).stderr(to_err);
    if let Some(cwd) = &spec.cwd {
        command.current_dir(directory(cwd).map_err(|error| format!("cannot work in {}: {error}", cwd.display()))?);
    }
    // Locked, so that nobody takes the new process for a stray.
    let mut leaders = leaders.lock();
    let child = command.spawn().map_err(|error| format!("cannot start {program}: {error}"))?;
    let leader = Pid::from_child(&child);
    leaders.insert(leader);
    Ok((leader, [Some(out), err]))
}

/// The mark of a run within those of the runs that this process belongs to.
fn marked(mark: &str) -> String {
    std::env::var(RUN).map_or_else(|_| mark.to_owned(), |outer| format!("{outer},{mark}"))
}

/// A standard input with this text. The writing thread ends by itself: when all is read, when the reader is gone, which
/// Rust reports as an error rather than a signal, or with the process.
fn pipe_of(text: String) -> io::Result<Stdio> {
    let (reader, mut writer) = io::pipe()?;
    std::thread::Builder::new().spawn(move || writer.write_all(text.as_bytes()))?;
    Ok(reader.into())
}

/// Distinguishes a missing directory from a missing program, which `spawn` does not.
fn directory(path: &Path) -> io::Result<&Path> {
    if std::fs::metadata(path)?.is_dir() { Ok(path) } else { Err(io::ErrorKind::NotADirectory.into()) }
}

/// Blocks until the process has ended, and leaves it unreaped: until then its number, and its group's, cannot go to
/// another.
fn wait_unreaped(leader: Pid) -> io::Result<()> {
    retry_on_intr(|| rustix::process::waitid(WaitId::Pid(leader), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT))?;
    Ok(())
}

/// Kills the rest of an ended leader's group, and waits until it is gone.
fn end_group(leader: Pid) -> io::Result<Exit> {
    signal_group(leader, Signal::KILL);
    let mut exit = None;
    loop {
        match retry_on_intr(|| rustix::process::waitpgid(leader, WaitOptions::empty())) {
            Ok(Some((pid, status))) if pid == leader => exit = exit_of(status),
            Ok(_) => {}
            Err(Errno::CHILD) => break,
            Err(error) => return Err(error.into()),
        }
    }
    if exit.is_none() {
        // It has left its group.
        exit = retry_on_intr(|| rustix::process::waitpid(Some(leader), WaitOptions::empty()))?
            .and_then(|(_, status)| exit_of(status));
    }
    exit.ok_or_else(|| io::Error::other("the command ended without a status"))
}

fn exit_of(status: WaitStatus) -> Option<Exit> {
    status.exit_status().map(Exit::Code).or_else(|| status.terminating_signal().map(Exit::Signal))
}

/// An error means that the group is already gone.
fn signal_group(leader: Pid, signal: Signal) {
    let _ = rustix::process::kill_process_group(leader, signal);
}
