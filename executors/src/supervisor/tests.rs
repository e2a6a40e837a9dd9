//! Starts, controls and kills a real supervisor; the process table shows the remaining processes.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::Command;

use rustix::io::Errno;

use super::process::lock_shared;
use super::*;
use crate::output::OUTPUT_BYTES_MAX;
use crate::output::Written;

const GRACE_NEVER_OVER: Duration = Duration::from_secs(3600);

#[tokio::test(flavor = "multi_thread")]
async fn exit_codes_and_signals_are_distinguished() {
    let signalled = |signal: Signal| Exit::Signal(signal.as_raw());
    let supervisor = supervisor();
    for (command, expected) in [
        ("true", Exit::Code(0)),
        ("exit 1", Exit::Code(1)),
        ("exit 137", Exit::Code(137)),
        ("exit 255", Exit::Code(255)),
        ("no-such-command", Exit::Code(127)),
        ("kill -9 $$", signalled(Signal::KILL)),
        ("kill -TERM $$", signalled(Signal::TERM)),
        ("echo '{\"Ended\":{\"run\":1}}'; echo '{\"Ended\":{\"run\":1}}' >&0; exit 3", Exit::Code(3)),
    ] {
        assert_eq!(run(&supervisor, sh(command)).await.exit, expected, "{command}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_run_side_by_side_under_one_supervisor() {
    let supervisor = supervisor();
    let (first, second) = (Pipe::new(), Pipe::new());
    // Each waits for the other.
    let one = sh(&format!("echo $PPID; echo a > {first}; cat {second}"));
    let other = sh(&format!("echo $PPID; cat {first}; echo b > {second}"));
    let (one, other) = tokio::join!(run(&supervisor, one), run(&supervisor, other));
    let parent = one.written.out.text.strip_suffix("\nb").unwrap();
    assert_eq!(other.written.out.text, format!("{parent}\na"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_cannot_start_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let supervisor = supervisor();
    let in_folder = |cwd: &Path| Spec { cwd: Some(cwd.to_owned()), ..sh("true") };
    let with_argv = |argv: &[&str]| Spec { argv: argv.iter().map(|word| (*word).to_owned()).collect(), ..sh("") };
    for (spec, expected) in [
        (in_folder(&folder.path().join("gone")), "gone: No such file"),
        (in_folder(&file), "file: not a directory"),
        (sh("true\0"), "/bin/sh"),
        (with_argv(&["no-such-program"]), "cannot start no-such-program: No such"),
        (with_argv(&[]), "the command is empty"),
    ] {
        let exit = run(&supervisor, spec).await.exit;
        assert!(matches!(&exit, Exit::NotStarted { reason } if reason.contains(expected)), "{expected}: {exit:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_supervisor_that_does_not_answer_is_not_waited_for_without_end() {
    let program = SupervisorProgram { path: "/bin/sleep".into(), args: vec!["1000".into()] };
    let error = Supervisor::new(program, None).start(sh("true"), Outputs::Mixed).await.expect_err("it only sleeps");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_cannot_be_acquired_runs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let supervisor = supervisor().holding(folder.path().join("gone/lock"));
    let spec = Spec { cwd: Some(folder.path().into()), ..sh("touch ran") };
    let error = supervisor.start(spec, Outputs::Mixed).await.unwrap_err();
    assert!(error.to_string().contains("cannot lock"), "{error}");
    assert!(!folder.path().join("ran").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_not_a_supervisor_is_refused() {
    let program = SupervisorProgram { path: "/bin/true".into(), args: vec![] };
    assert!(Supervisor::new(program, None).start(sh("true"), Outputs::Mixed).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_gets_its_directory_environment_and_an_empty_input() {
    let folder = tempfile::tempdir().unwrap();
    let cwd = folder.path().canonicalize().unwrap();
    let env = vec![("GREETING".to_owned(), "good day".to_owned())];
    let command = "pwd; echo $GREETING; cat; echo to-error >&2; ps -o args= -p $PPID";
    let written = run(&supervisor(), Spec { cwd: Some(cwd.clone()), env, ..sh(command) }).await.written;
    let lines = format!("{}\ngood day\n{PROCESS_NAME} supervise", cwd.display());
    assert_eq!((written.out.text, &*written.err.text), (lines, "to-error"));
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_are_passed_unchanged_without_a_shell() {
    let words = ["printf", "<%s>", "$HOME", "`id` $(id); x", "two\nlines", ""].map(str::to_owned);
    let line = Spec::shell_line("echo \"$0|$1|$#\"", ["a `b`".to_owned()]);
    for (argv, expected) in [(words.into(), "<$HOME><`id` $(id); x><two\nlines><>"), (line, "sh|a `b`|1")] {
        assert_eq!(run(&supervisor(), Spec { argv, ..sh("") }).await.written.out.text, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_arrives_completely_but_may_be_ignored() {
    let supervisor = supervisor();
    let input = "äöü\0\n".repeat(500_000);
    let with_input = |command| Spec { input: Some(input.clone()), ..sh(command) };
    let ended = run(&supervisor, with_input("wc -c; echo end >&2; exit 1")).await;
    assert_eq!((ended.written.out.text.trim(), ended.exit), ("4000000", Exit::Code(1)));
    for (command, expected) in [("exit 3", 3), ("head -c 10 > /dev/null; exit 4", 4), ("exec <&-; exit 5", 5)] {
        assert_eq!(run(&supervisor, with_input(command)).await.exit, Exit::Code(expected), "{command}");
    }
    let empty = Spec { input: Some(String::new()), ..sh("cat; echo end") };
    assert_eq!(run(&supervisor, empty).await.written.out.text, "end");
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_bounded_and_may_be_binary() {
    let line = |n_bytes| format!("head -c {n_bytes} /dev/zero; printf '\\377'; exec >&-; printf end >&2; exit 4");
    for (n_bytes, is_cut, bytes_max) in [(3_000_000, false, 3_000_010), (20_000_000, true, 9_000_000)] {
        let ended = run(&supervisor(), sh(&line(n_bytes))).await;
        let Written { out, err } = ended.written;
        assert_eq!((out.n_bytes, out.is_cut, &*err.text, ended.exit), (n_bytes + 1, is_cut, "end", Exit::Code(4)));
        assert!(out.text.ends_with("\0\u{fffd}") && out.text.len() < bytes_max);
    }
    // A command's outputs are one text, of 64 KiB.
    let ended = start_mixed(&supervisor(), sh(&line(3_000_000))).await;
    let Written { out, err } = ended.written;
    assert!(out.is_cut && out.text.ends_with("\0\u{fffd}end") && out.text.len() < OUTPUT_BYTES_MAX + 64);
    assert_eq!((out.n_bytes, err.n_bytes), (3_000_004, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_wait_and_a_late_stop_have_the_same_answer() {
    let mut supervised = start(&supervisor(), sh("exit 4")).await;
    for _ in 0..2 {
        assert_eq!(soon(supervised.wait()).await.unwrap().exit, Exit::Code(4));
    }
    assert_eq!(soon(supervised.stop(Duration::ZERO)).await.unwrap().exit, Exit::Code(4));
}

#[tokio::test(flavor = "multi_thread")]
async fn background_processes_end_with_the_command() {
    let ended = run(&supervisor(), sh("sleep 1000 & echo $!; exit 5")).await;
    assert_eq!(ended.exit, Exit::Code(5));
    assert_gone(&ended.written.out.text);
}

/// `timeout` puts itself and its command into another process group of the same session.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_left_its_group_ends_with_its_own_run_alone() {
    let supervisor = supervisor();
    let (up, go_on) = (Pipe::new(), Pipe::new());
    let stray = |rest: &str| format!("timeout 1000 sh -c 'echo $$ > {up}; trap \"\" TERM HUP; sleep 1000' & {rest}");
    let mut other = start(&supervisor, sh(&stray(&format!("read x < {go_on}")))).await;
    let of_other = up.read();
    let ended = run(&supervisor, sh(&stray(&format!("read pid < {up}; echo $pid")))).await;
    assert_gone(&ended.written.out.text);
    assert!(rustix::process::test_kill_process(pid(&of_other)).is_ok(), "the other run goes on");
    std::fs::write(&go_on.path, "\n").unwrap();
    assert_eq!(soon(other.wait()).await.unwrap().exit, Exit::Code(0));
    assert_gone(&of_other);
}

/// Processes that leave the session, as the tools of coding agents do: at once, twice, below another one, by Python; one below a
/// process whose memory takes long to free, and one that always loads a program. Each writes its number into the pipe NUMBER.
const DETACHED: [&str; 6] = [
    "setsid sh -c 'echo $$ > NUMBER; trap \"\" TERM HUP; sleep 1000' &",
    "setsid setsid sh -c 'echo $$ > NUMBER; trap \"\" TERM HUP; sleep 1000' &",
    "setsid sh -c 'setsid sh -c \"echo \\$\\$ > NUMBER; sleep 1000\" & trap \"\" TERM; sleep 1000' &",
    "python3 -c 'import subprocess as s; s.Popen([\"sh\", \"-c\", \"echo $$ > NUMBER; sleep 1000\"], start_new_session=True, close_fds=False)' &",
    "setsid python3 -c 'import os, subprocess as s; x = b\"x\" * (400 << 20); s.Popen([\"sleep\", \"1000\"], start_new_session=True, close_fds=False); os.write(os.open(\"NUMBER\", os.O_WRONLY), b\"1\\n\"); os._exit(0)' &",
    "export LOAD='exec sh -c \"$LOAD\"'; setsid sh -c 'echo $$ > NUMBER; eval \"$LOAD\"' &",
];

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn of_a_run_that_ends_whole_no_process_of_any_session_is_left() {
    for detached in DETACHED {
        for (end, rest) in [("exit", "exit 3"), ("stop", "sleep 1000"), ("supervisor", "sleep 1000")] {
            let (supervisor, up, is_up, alive) = (supervisor(), Pipe::new(), Pipe::new(), Pipe::new());
            let detached = detached.replace("NUMBER", &up.to_string());
            let line = format!("exec 9> {alive}; {detached} read pid < {up}; echo > {is_up}; {rest}");
            let spec = Spec { ends_all: true, ..sh(&line) };
            let mut supervised = start(&supervisor, spec).await;
            let mut alive = File::open(&alive.path).unwrap();
            is_up.read();
            match end {
                "exit" => assert_eq!(soon(supervised.wait()).await.unwrap().exit, Exit::Code(3)),
                "stop" => _ = soon(supervised.stop(Duration::from_millis(20))).await.unwrap(),
                _killed => {
                    rustix::process::kill_process(supervised.lifeline.pid, Signal::KILL).unwrap();
                    soon(supervised.wait()).await.unwrap_err();
                }
            }
            let n_read = blocking(move || alive.read_to_end(&mut Vec::new())).unwrap();
            assert_eq!(n_read, 0, "it ends with the run's last process");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_command_may_clean_up() {
    let up = Pipe::new();
    let mut supervised = start(&supervisor(), sh(&format!("trap 'exit 3' TERM; echo > {up}; sleep 1000 & wait"))).await;
    up.read();
    assert_eq!(soon(supervised.stop(GRACE_NEVER_OVER)).await.unwrap().exit, Exit::Code(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_ignores_a_stop_is_killed_after_the_grace_period() {
    let killed = Exit::Signal(Signal::KILL.as_raw());
    let up = Pipe::new();
    let stubborn = sh(&format!("trap '' TERM; echo > {up}; while :; do sleep 1000; done"));
    let supervisor = supervisor();
    let mut supervised = start(&supervisor, stubborn.clone()).await;
    up.read();
    assert_eq!(soon(supervised.stop(Duration::from_millis(20))).await.unwrap().exit, killed);
    // A second stop can only shorten the grace.
    let mut supervised = start(&supervisor, stubborn).await;
    up.read();
    supervised.order_stop(Duration::MAX);
    supervised.order_stop(Duration::from_millis(20));
    assert_eq!(soon(supervised.stop(GRACE_NEVER_OVER)).await.unwrap().exit, killed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_run_is_killed_and_spares_the_others() {
    let supervisor = supervisor();
    let (up, go_on) = (Pipe::new(), Pipe::new());
    let dropped = start(&supervisor, sh(&format!("echo $$ > {up}; sleep 1000"))).await;
    let of_dropped = up.read();
    let mut other = start(&supervisor, sh(&format!("echo > {up}; read x < {go_on}"))).await;
    up.read();
    drop(dropped);
    // Its end comes before that of a run that starts later.
    assert_eq!(run(&supervisor, sh(&format!("while kill -0 {of_dropped}; do :; done"))).await.exit, Exit::Code(0));
    std::fs::write(&go_on.path, "\n").unwrap();
    assert_eq!(soon(other.wait()).await.unwrap().exit, Exit::Code(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_cannot_end_the_others_by_a_signal_to_their_supervisor() {
    let supervisor = supervisor();
    let (up, go_on) = (Pipe::new(), Pipe::new());
    let mut other = start(&supervisor, sh(&format!("echo > {up}; read x < {go_on}"))).await;
    up.read();
    assert_eq!(run(&supervisor, sh("kill -TERM $PPID; kill -HUP $PPID; kill -INT $PPID")).await.exit, Exit::Code(0));
    std::fs::write(&go_on.path, "\n").unwrap();
    assert_eq!(soon(other.wait()).await.unwrap().exit, Exit::Code(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_whose_first_process_left_its_group_can_be_stopped_and_its_end_is_known() {
    let supervisor = supervisor();
    let up = Pipe::new();
    let leaves = |then: &str| {
        let line = format!("import os,time; os.setpgid(0, os.getsid(0)); open('{up}', 'w').close(); {then}");
        Spec { argv: ["python3", "-c", &line].map(str::to_owned).into(), ..sh("") }
    };
    let mut supervised = start(&supervisor, leaves("time.sleep(1000)")).await;
    up.read();
    assert_eq!(soon(supervised.stop(Duration::ZERO)).await.unwrap().exit, Exit::Signal(Signal::KILL.as_raw()));
    let mut supervised = start(&supervisor, leaves("exit(3)")).await;
    up.read();
    assert_eq!(soon(supervised.wait()).await.unwrap().exit, Exit::Code(3));
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_supervisor_loses_its_runs_and_the_next_command_gets_a_new_one() {
    let supervisor = supervisor();
    let mut lost = Vec::new();
    for _ in 0..2 {
        let alive = Pipe::new();
        let supervised = start(&supervisor, sh(&format!("exec 9> {alive}; sleep 1000"))).await;
        // Opens when the command has opened it too.
        lost.push((supervised, File::open(&alive.path).unwrap()));
    }
    rustix::process::kill_process(lost[0].0.lifeline.pid, Signal::KILL).unwrap();
    for (supervised, alive) in &mut lost {
        assert_eq!(soon(supervised.wait()).await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(alive.read_to_end(&mut Vec::new()).unwrap(), 0, "it ends with the command's last process");
    }
    assert_eq!(run(&supervisor, sh("exit 3")).await.exit, Exit::Code(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_supervisor_has_ended_its_commands_and_freed_its_lock() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    let supervisor = supervisor().holding(path.clone());
    let up = Pipe::new();
    let running = start(&supervisor, sh(&format!("trap '' TERM; echo $$ > {up}; sleep 1000"))).await;
    let pid = up.read();
    drop(running);
    soon(supervisor.close()).await;
    assert_gone(&pid);
    File::open(path).unwrap().try_lock().unwrap();
}

#[test]
fn a_worker_killed_with_9_leaves_no_child() {
    for (input, command) in [
        (None, "trap '' TERM HUP; sleep 1000 & echo $$ $! > NUMBER; wait"),
        (None, "timeout 1000 sh -c 'echo $$ > NUMBER; trap \"\" TERM HUP; sleep 1000' & wait"),
        (None, "env -i timeout 1000 sh -c 'echo $$ > NUMBER; trap \"\" TERM HUP; sleep 1000' & wait"),
        (Some("x".repeat(100_000)), "echo $$ > NUMBER; sleep 1000"),
        (None, "setsid sh -c 'echo $$ > NUMBER; trap \"\" TERM HUP; sleep 1000' & sleep 1000"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let lock = lock_shared(&path).unwrap();
        lock.unlock().unwrap();
        let up = Pipe::new();
        let spec = Spec { input, ends_all: true, ..sh(&command.replace("NUMBER", &up.to_string())) };
        let mut worker = Command::new(program().path)
            .args(["work", &serde_json::to_string(&spec).unwrap(), path.to_str().unwrap()])
            .spawn()
            .unwrap();
        let pids = up.read();
        assert!(matches!(lock.try_lock(), Err(std::fs::TryLockError::WouldBlock)), "the supervisor holds the lock");
        worker.kill().unwrap();
        worker.wait().unwrap();
        blocking(move || lock.lock()).unwrap();
        assert_gone(&pids);
    }
}

/// Far more than anything takes, so only a hang reaches it.
const PATIENCE: Duration = Duration::from_secs(60);

/// The output of a future, which must not hang.
async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it hangs")
}

/// The result of work that may block; if it hangs, it blocks only its own thread.
fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, done) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(work()));
    done.recv_timeout(PATIENCE).expect("it hangs")
}

fn sh(command: &str) -> Spec {
    Spec {
        argv: Spec::shell_line(command, []),
        input: None,
        cwd: None,
        env: vec![],
        passes: None,
        ends_all: false,
        output: None,
    }
}

/// The example built with this test binary: a test binary's own `main` cannot become a supervisor.
fn program() -> SupervisorProgram {
    let target = std::env::current_exe().unwrap().parent().unwrap().with_file_name("examples");
    SupervisorProgram { path: target.join("supervise"), args: vec!["supervise".into()] }
}

fn supervisor() -> Supervisor {
    Supervisor::new(program(), None)
}

async fn start(supervisor: &Supervisor, spec: Spec) -> Supervised {
    soon(supervisor.start(spec, Outputs::Apart)).await.unwrap()
}

async fn start_mixed(supervisor: &Supervisor, spec: Spec) -> Ended {
    soon(soon(supervisor.start(spec, Outputs::Mixed)).await.unwrap().wait()).await.unwrap()
}

async fn run(supervisor: &Supervisor, spec: Spec) -> Ended {
    soon(start(supervisor, spec).await.wait()).await.unwrap()
}

/// A named pipe, by which a command shows that it runs.
struct Pipe {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Pipe {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        Self { _folder: folder, path }
    }

    /// Blocks until a command has written.
    fn read(&self) -> String {
        let path = self.path.clone();
        let line = blocking(move || std::fs::read_to_string(path)).unwrap();
        line.trim_end().to_owned()
    }
}

impl std::fmt::Display for Pipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.path.display().fmt(f)
    }
}

fn pid(pid: &str) -> Pid {
    Pid::from_raw(pid.parse().unwrap()).unwrap()
}

fn assert_gone(pids: &str) {
    assert!(!pids.trim().is_empty());
    for one in pids.split_whitespace() {
        assert_eq!(rustix::process::test_kill_process(pid(one)), Err(Errno::SRCH), "process {one} is alive");
    }
}
