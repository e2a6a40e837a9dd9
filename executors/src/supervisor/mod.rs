//! The small process that a worker's commands run under, so that no death of the worker leaves one behind.
//!
//! A worker starts its own binary again, once, with the argument that leads to [`supervise`]. It keeps one end of a socket
//! pair, the lifeline; the other end is the supervisor's standard input. Orders go down the lifeline and reports come up it,
//! one JSON line each:
//!
//! ```text
//! worker      Begin { lock }          Start { run, spec, .. }      Stop { run, grace_ms }
//! supervisor                 Ready                                                       Ended { run, ended }
//! ```
//!
//! A command's standard input is `/dev/null` or a pipe with its input, and its output goes into pipes of the supervisor, so
//! nothing that it prints can pass for a report. When the lifeline closes, for whatever reason, the supervisor kills
//! everything that its commands have started.
//!
//! The supervisor holds the worker's lock shared until all of that is gone. If the file can be locked exclusively, no command
//! of the worker is left.
//!
//! The supervisor never decides whether a command runs, and never retries one.
//!
//! Limits. A process that leaves the session (`setsid`, a daemon) is killed only if its [`Spec`] says so. On Linux a run ends with
//! its process group and with every process of the session that has its variable [`RUN`]; elsewhere with its process group.
//! If the supervisor is killed with `SIGKILL`, its worker kills the session instead, on Linux; if both are killed at once, the
//! commands go on.

mod leaders;
mod process;
mod protocol;
#[cfg(target_os = "linux")]
mod session;

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::output::Outputs;
use crate::secrets::Secrets;

pub use process::supervise;
pub use protocol::{Ended, Exit, RUN, Spec};
use protocol::{Inbox, News, Order, PROCESS_NAME, send};

/// The time limit of a supervisor beyond the grace of a stop.
const STOP_MARGIN: Duration = Duration::from_secs(5);
/// The time limit for a supervisor to answer after its start.
const START_MAX: Duration = Duration::from_secs(30);
/// How to start a process that calls [`supervise`].
///
/// The process list shows the arguments: keep the program's own name out of them, so that `pkill -9 -f` by that name kills
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

/// A worker's supervisor. Its process starts with the first command, and again with the next one after it was lost.
#[derive(Debug, Clone)]
pub struct Supervisor {
    program: SupervisorProgram,
    /// Locked shared, and created if missing, from before the first command starts until all processes are gone. The worker
    /// may hold it shared as well; while another process holds it exclusively, the start waits.
    lock: Option<PathBuf>,
    /// Replaced in outputs, before anything is kept of them.
    secrets: Arc<Secrets>,
    lifeline: Arc<tokio::sync::Mutex<Option<Arc<Lifeline>>>>,
}

impl Supervisor {
    /// A supervisor that holds this lock, if any.
    pub fn new(program: SupervisorProgram, lock: Option<PathBuf>) -> Self {
        Self { program, lock, secrets: Arc::default(), lifeline: Arc::default() }
    }

    /// A supervisor that keeps these secrets out of the outputs of its commands.
    #[must_use]
    pub fn hiding(self, secrets: Secrets) -> Self {
        Self { secrets: Arc::new(secrets), ..self }
    }

    /// A text of an output without the secrets.
    #[must_use]
    pub fn redacted(&self, text: &str) -> String {
        self.secrets.redacted(text)
    }

    /// Another supervisor of the same program, which holds this lock.
    #[must_use]
    pub fn holding(self, lock: PathBuf) -> Self {
        Self { lock: Some(lock), lifeline: Arc::default(), ..self }
    }

    /// Runs a command. An error means that nothing has run; a command that cannot be started ends as
    /// [`Exit::NotStarted`] instead.
    ///
    /// # Errors
    /// The supervisor could not start, or could not lock its file.
    pub async fn start(&self, spec: Spec, outputs: Outputs) -> io::Result<Supervised> {
        let mut lifeline = self.lifeline.lock().await;
        loop {
            if let Some(lifeline) = &*lifeline
                && let Some((run, ended)) = lifeline.register()
            {
                let _ = lifeline.orders.send(Order::Start { run, spec, outputs });
                return Ok(Supervised { run, lifeline: Arc::clone(lifeline), ended, known: None });
            }
            *lifeline = Some(self.connect().await?);
        }
    }

    /// Runs one command to its end, and returns its standard output. After the limit it is killed, with all that it has
    /// started if its [`Spec`] says so.
    ///
    /// # Errors
    /// Why there is no output, in words: the command has failed, or took too long.
    pub async fn output(self, spec: Spec, limit: Duration) -> Result<String, String> {
        // Without its supervisor the command ends, so the supervisor is dropped with the limit.
        let ran = async move { self.start(spec, Outputs::Apart).await?.wait().await };
        let ran = tokio::time::timeout(limit, ran).await.map_err(|_| format!("killed after {} s", limit.as_secs()))?;
        let ended = ran.map_err(|error| format!("it could not be run: {error}"))?;
        let (out, err) = (ended.written.out.text, ended.written.err.text);
        match ended.exit {
            Exit::Code(0) => Ok(out),
            Exit::Code(code) => Err(format!("exit code {code} {err} {out}")),
            Exit::Signal(signal) => Err(format!("ended by signal {signal}")),
            Exit::NotStarted { reason } | Exit::Lost { reason } => Err(reason),
        }
    }

    async fn connect(&self) -> io::Result<Arc<Lifeline>> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let mut process = tokio::process::Command::new(&self.program.path)
            .arg0(PROCESS_NAME)
            .args(&self.program.args)
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .spawn()?;
        let pid = process.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        let pid = pid.ok_or_else(|| io::Error::other("the supervisor has exited"))?;
        let (reports, mut writer) = UnixStream::from_std(ours)?.into_split();
        let mut reports = Inbox::new(reports);
        let secrets = self.secrets.texts();
        send(&mut writer, &Order::Begin { lock: self.lock.clone(), secrets }).await?;
        let Ok(first) = tokio::time::timeout(START_MAX, reports.next()).await else {
            // It may be stopped, and not see that its lifeline is closed.
            let _ = process.start_kill();
            let says = format!("its supervisor did not answer within {} s", START_MAX.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, says));
        };
        match first? {
            Some(News::Ready) => {}
            Some(News::Refused { reason }) => return Err(io::Error::other(reason)),
            Some(News::Ended { .. }) | None => {
                let path = self.program.path.display();
                return Err(io::Error::other(format!("{path} did not start as a supervisor")));
            }
        }
        let (orders, mut queue) = mpsc::unbounded_channel();
        let runs = Arc::new(Mutex::new(Some(Runs::default())));
        let reading = read_reports(reports, process, Arc::clone(&runs));
        let serving = tokio::spawn(async move {
            let writing = async {
                while let Some(order) = queue.recv().await {
                    if send(&mut writer, &order).await.is_err() {
                        break;
                    }
                }
                // The last handle is gone, or the supervisor is: this closes the lifeline.
                drop(writer);
            };
            tokio::join!(reading, writing);
        });
        Ok(Arc::new(Lifeline { pid, orders, runs, serving }))
    }

    /// Ends the supervisor, with every command that still runs, and waits until its lock is free.
    pub async fn close(&self) {
        let Some(lifeline) = self.lifeline.lock().await.take().and_then(Arc::into_inner) else { return };
        drop(lifeline.orders);
        let _ = lifeline.serving.await;
    }
}

/// The worker's end of a connection to a supervisor. Dropping it ends the supervisor.
#[derive(Debug)]
struct Lifeline {
    pid: Pid,
    orders: mpsc::UnboundedSender<Order>,
    /// Unset once the supervisor is gone.
    runs: SharedRuns,
    serving: JoinHandle<()>,
}

type SharedRuns = Arc<Mutex<Option<Runs>>>;

#[derive(Debug, Default)]
struct Runs {
    last: u64,
    running: HashMap<u64, oneshot::Sender<Ended>>,
}

impl Lifeline {
    /// The number of a new run, and its end; `None` if the supervisor is gone.
    fn register(&self) -> Option<(u64, oneshot::Receiver<Ended>)> {
        self.with(|runs| {
            runs.last += 1;
            let (sender, ended) = oneshot::channel();
            runs.running.insert(runs.last, sender);
            (runs.last, ended)
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut Runs) -> T) -> Option<T> {
        lock(&self.runs).as_mut().map(act)
    }

    /// Returns when the supervisor has taken an order: that to start nothing.
    async fn answer(&self) {
        if let Some((run, ended)) = self.register() {
            let _ = self.orders.send(Order::Start { run, spec: Spec::default(), outputs: Outputs::Mixed });
            let _ = ended.await;
        }
    }

    /// Kills a supervisor that does not answer, for example because somebody stopped it.
    fn kill(&self) {
        // While `runs` is set, the process has not been waited for, so its number cannot belong to another one.
        self.with(|_| _ = rustix::process::kill_process(self.pid, Signal::KILL));
    }
}

fn lock(runs: &SharedRuns) -> MutexGuard<'_, Option<Runs>> {
    runs.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes reports on until the supervisor is gone; then ends what it left behind.
async fn read_reports(mut reports: Inbox, mut process: Child, runs: SharedRuns) {
    while let Ok(Some(News::Ended { run, ended })) = reports.next().await {
        let sender = lock(&runs).as_mut().and_then(|runs| runs.running.remove(&run));
        // Nobody waits for a run that was dropped.
        sender.map(|sender| sender.send(ended));
    }
    #[cfg(target_os = "linux")]
    process.id().and_then(|pid| Pid::from_raw(pid.cast_signed())).into_iter().for_each(session::end);
    // Without the runs nobody sends a signal to the process, so it may be waited for; the runs end as lost after that.
    let lost = lock(&runs).take();
    let _ = process.wait().await;
    drop(lost);
}

/// A running command, seen from the worker. Dropping it kills the command and everything it has started.
#[derive(Debug)]
pub struct Supervised {
    run: u64,
    lifeline: Arc<Lifeline>,
    ended: oneshot::Receiver<Ended>,
    known: Option<Ended>,
}

impl Supervised {
    /// Waits until the command and everything it has started are gone. The future may be dropped and called again.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] if the supervisor was killed before it could report: the command's processes have been
    /// killed too, and how far it came is unknown.
    pub async fn wait(&mut self) -> io::Result<Ended> {
        if self.known.is_none() {
            let lost =
                || io::Error::new(io::ErrorKind::UnexpectedEof, "the supervisor was killed before it could report");
            self.known = Some((&mut self.ended).await.map_err(|_| lost())?);
        }
        Ok(self.known.clone().expect("it was set above"))
    }

    /// Asks the command to end with `SIGTERM`, has it killed after `grace`, and [waits](Self::wait). The supervisor
    /// keeps the time, so dropping the future takes nothing back.
    ///
    /// # Errors
    /// As for [`wait`](Self::wait).
    pub async fn stop(&mut self, grace: Duration) -> io::Result<Ended> {
        self.order_stop(grace);
        if let Ok(ended) = tokio::time::timeout(grace + STOP_MARGIN, self.wait()).await {
            return ended;
        }
        if tokio::time::timeout(STOP_MARGIN, self.lifeline.answer()).await.is_err() {
            self.lifeline.kill();
            return self.wait().await;
        }
        Err(io::Error::other("its processes cannot be killed"))
    }

    fn order_stop(&self, grace: Duration) {
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        // Fails when the supervisor is gone, and the command with it.
        let _ = self.lifeline.orders.send(Order::Stop { run: self.run, grace_ms });
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        if self.known.is_none() {
            self.order_stop(Duration::ZERO);
        }
    }
}

#[cfg(test)]
mod tests;
