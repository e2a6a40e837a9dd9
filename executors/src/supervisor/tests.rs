//! A real supervisor is started, ordered about and killed; the process table says what is left.

use std::io::{BufRead, Read};

use tokio::io::AsyncReadExt;

use super::*;

const GRACE_NEVER_OVER: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn exit_codes_and_signals_are_distinguished() {
    let signalled = |signal: Signal| Exit::Signal(signal.as_raw());
    for (command, expected) in [
        ("true", Exit::Code(0)),
        ("exit 1", Exit::Code(1)),
        ("exit 7", Exit::Code(7)),
        ("exit 137", Exit::Code(137)),
        ("exit 255", Exit::Code(255)),
        ("no-such-command", Exit::Code(127)),
        ("kill -9 $$", signalled(Signal::KILL)),
        ("kill -TERM $$", signalled(Signal::TERM)),
        ("echo '{\"Ended\":{\"Code\":0}}'; echo '{\"Ended\":{\"Code\":0}}' >&0; exit 3", Exit::Code(3)),
    ] {
        assert_eq!(start(&sh(command)).await.wait().await.unwrap(), expected, "{command}");
    }
}

#[tokio::test]
async fn a_command_that_cannot_start_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    for (cwd, expected) in [(folder.path().join("gone"), "No such file"), (file, "not a directory")] {
        let exit = start(&Spec { cwd: Some(cwd.clone()), ..sh("true") }).await.wait().await.unwrap();
        let Exit::NotStarted { reason } = exit else { panic!("{exit:?}") };
        assert!(reason.contains(expected) && reason.contains(cwd.to_str().unwrap()), "{reason}");
    }
    let exit = start(&sh("true\0")).await.wait().await.unwrap();
    assert!(matches!(&exit, Exit::NotStarted { reason } if reason.contains("/bin/sh")), "{exit:?}");
}

#[tokio::test]
async fn a_lock_that_cannot_be_acquired_runs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let spec = Spec { lock: Some(folder.path().join("gone/lock")), ..sh("touch ran") };
    let error = Supervised::spawn(&program(), &Spec { cwd: Some(folder.path().into()), ..spec }).await.unwrap_err();
    assert!(error.to_string().contains("cannot lock"), "{error}");
    assert!(!folder.path().join("ran").exists());
}

#[tokio::test]
async fn a_program_that_is_not_a_supervisor_is_refused() {
    let program = SupervisorProgram { path: "/bin/true".into(), args: vec![] };
    assert!(Supervised::spawn(&program, &sh("true")).await.is_err());
}

#[tokio::test]
async fn a_command_gets_its_directory_environment_and_an_empty_input() {
    let folder = tempfile::tempdir().unwrap();
    let cwd = folder.path().canonicalize().unwrap();
    let env = vec![("GREETING".to_owned(), "good day".to_owned())];
    let command = "pwd; echo $GREETING; cat; echo to-error >&2; ps -o args= -p $PPID";
    let mut supervised = start(&Spec { cwd: Some(cwd.clone()), env, ..sh(command) }).await;
    let (output, error) = read_all(&mut supervised).await;
    let lines = format!("{}\ngood day\n{PROCESS_NAME} supervise\n", cwd.display());
    assert_eq!((String::from_utf8(output).unwrap(), error), (lines, b"to-error\n".to_vec()));
}

#[tokio::test]
async fn arguments_are_passed_unchanged_without_a_shell() {
    let words = ["printf", "<%s>", "$HOME", "`id` $(id); x", "two\nlines", ""].map(str::to_owned);
    let mut supervised = start(&Spec { argv: words.into(), ..sh("") }).await;
    assert_eq!(read_all(&mut supervised).await.0, b"<$HOME><`id` $(id); x><two\nlines><>");
    let mut supervised =
        start(&Spec { argv: Spec::shell_line("echo \"$0|$1|$#\"", ["a `b`".to_owned()]), ..sh("") }).await;
    assert_eq!(read_all(&mut supervised).await.0, b"sh|a `b`|1\n");
    for (argv, expected) in
        [(vec!["no-such-program".to_owned()], "cannot start no-such-program: No such"), (vec![], "nothing to start")]
    {
        let exit = start(&Spec { argv, ..sh("") }).await.wait().await.unwrap();
        assert!(matches!(&exit, Exit::NotStarted { reason } if reason.contains(expected)), "{exit:?}");
    }
}

#[tokio::test]
async fn an_input_arrives_completely_but_may_be_ignored() {
    let input = "äöü\0\n".repeat(500_000);
    let with_input = |command| Spec { input: Some(input.clone()), ..sh(command) };
    let mut supervised = start(&with_input("cat; echo end >&2")).await;
    let (output, error) = read_all(&mut supervised).await;
    assert!(output == input.as_bytes(), "{} bytes of {} arrived", output.len(), input.len());
    assert_eq!((error.as_slice(), supervised.wait().await.unwrap()), (b"end\n".as_slice(), Exit::Code(0)));
    for (command, expected) in [("exit 3", 3), ("head -c 10 > /dev/null; exit 4", 4), ("exec <&-; exit 5", 5)] {
        assert_eq!(start(&with_input(command)).await.wait().await.unwrap(), Exit::Code(expected), "{command}");
    }
    let mut supervised = start(&Spec { input: Some(String::new()), ..sh("cat; echo end") }).await;
    assert_eq!(read_all(&mut supervised).await.0, b"end\n");
}

#[test]
fn a_worker_killed_while_an_input_is_written_leaves_no_child() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("input");
    let spec = Spec { input: Some("x".repeat(100_000)), lock: Some(path.clone()), ..sh("echo $$ $PPID; sleep 1000") };
    let (mut worker, pids) = worker(&spec);
    worker.kill().unwrap();
    worker.wait().unwrap();
    File::open(path).unwrap().lock().unwrap();
    assert_gone(pids.split_once(' ').unwrap().0);
}

#[tokio::test]
async fn output_arrives_completely_even_if_long_or_binary() {
    let mut supervised =
        start(&sh("head -c 3000000 /dev/zero; printf '\\377'; exec >&-; printf end >&2; exit 4")).await;
    let (output, error) = read_all(&mut supervised).await;
    assert_eq!((output.len(), output.last(), error), (3_000_001, Some(&0xff), b"end".to_vec()));
    assert_eq!(supervised.wait().await.unwrap(), Exit::Code(4));
    assert_eq!(supervised.wait().await.unwrap(), Exit::Code(4), "a second wait has the same answer");
    assert_eq!(supervised.stop(Duration::ZERO).await.unwrap(), Exit::Code(4), "so has a late stop");
}

#[tokio::test]
async fn background_processes_end_with_the_command() {
    let mut supervised = start(&sh("sleep 1000 & echo $!; exit 5")).await;
    let (output, _) = read_all(&mut supervised).await;
    assert_eq!(supervised.wait().await.unwrap(), Exit::Code(5));
    assert_gone(std::str::from_utf8(&output).unwrap());
}

#[tokio::test]
async fn a_stopped_command_may_clean_up() {
    let mut supervised = start(&sh("trap 'exit 3' TERM; echo up; sleep 1000 & wait")).await;
    assert_eq!(first_line(&mut supervised).await, "up");
    assert_eq!(supervised.stop(GRACE_NEVER_OVER).await.unwrap(), Exit::Code(3));
}

#[tokio::test]
async fn a_command_that_ignores_a_stop_is_killed_after_the_grace_period() {
    let mut supervised = start(&sh("trap '' TERM; echo up; while :; do sleep 1000; done")).await;
    assert_eq!(first_line(&mut supervised).await, "up");
    let exit = supervised.stop(Duration::from_millis(20)).await.unwrap();
    assert_eq!(exit, Exit::Signal(Signal::KILL.as_raw()));
}

#[tokio::test]
async fn a_second_stop_can_only_shorten_the_grace_period() {
    let mut supervised = start(&sh("trap '' TERM; echo up; while :; do sleep 1000; done")).await;
    assert_eq!(first_line(&mut supervised).await, "up");
    send(&mut supervised.orders, &Order::Stop { grace_ms: u64::MAX }).await.unwrap();
    send(&mut supervised.orders, &Order::Stop { grace_ms: 20 }).await.unwrap();
    let exit = supervised.stop(GRACE_NEVER_OVER).await.unwrap();
    assert_eq!(exit, Exit::Signal(Signal::KILL.as_raw()));
}

#[tokio::test]
async fn a_terminated_supervisor_ends_its_command_and_reports() {
    let mut supervised = start(&sh("trap '' TERM; echo up; while :; do sleep 1000; done")).await;
    assert_eq!(first_line(&mut supervised).await, "up");
    rustix::process::kill_process(supervised.supervisor.unwrap(), Signal::TERM).unwrap();
    assert_eq!(supervised.wait().await.unwrap(), Exit::Signal(Signal::KILL.as_raw()));
}

#[tokio::test]
async fn a_killed_supervisor_gives_an_unknown_outcome_and_leaves_no_command() {
    let mut supervised = start(&sh("echo up; sleep 1000")).await;
    let (mut output, _error) = supervised.take_output();
    assert_eq!(line_of(&mut output).await, "up");
    rustix::process::kill_process(supervised.supervisor.unwrap(), Signal::KILL).unwrap();
    assert_eq!(supervised.wait().await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    assert_eq!(output.read_to_end(&mut Vec::new()).await.unwrap(), 0, "ends when the command's last process does");
}

#[test]
fn a_worker_killed_with_9_leaves_no_child() {
    let folder = tempfile::tempdir().unwrap();
    let lock = lock_shared(&folder.path().join("lock")).unwrap();
    lock.unlock().unwrap();
    let command = "trap '' TERM HUP; sleep 1000 & echo $$ $!; wait";
    let spec = Spec { lock: Some(folder.path().join("lock")), ..sh(command) };
    let (mut worker, pids) = worker(&spec);
    assert!(matches!(lock.try_lock(), Err(std::fs::TryLockError::WouldBlock)), "the supervisor holds the lock");
    worker.kill().unwrap();
    worker.wait().unwrap();
    lock.lock().unwrap();
    assert_gone(&pids);
}

/// `timeout` puts itself and what it runs into another process group of the same session.
#[cfg(target_os = "linux")]
#[test]
fn a_process_that_changed_its_process_group_is_killed_too() {
    let folder = tempfile::tempdir().unwrap();
    let command = "timeout 1000 sh -c 'echo $$; trap \"\" TERM HUP; sleep 1000' & wait";
    let spec = Spec { lock: Some(folder.path().join("lock")), ..sh(command) };
    let (mut worker, pid) = worker(&spec);
    worker.kill().unwrap();
    worker.wait().unwrap();
    File::open(folder.path().join("lock")).unwrap().lock().unwrap();
    assert_gone(&pid);
}

#[tokio::test]
async fn a_worker_that_dies_before_the_start_order_runs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = StdUnixStream::pair().unwrap();
    let program = program();
    let mut supervisor = Command::new(&program.path).args(&program.args).stdin(OwnedFd::from(theirs)).spawn().unwrap();
    ours.set_nonblocking(true).unwrap();
    let (reports, mut orders) = UnixStream::from_std(ours).unwrap().into_split();
    let spec = Spec { cwd: Some(folder.path().into()), ..sh("touch ran") };
    send(&mut orders, &Order::Prepare(spec)).await.unwrap();
    let mut reports = Inbox::new(reports);
    assert_eq!(reports.next().await.unwrap(), Some(Report::Ready));
    drop(orders);
    assert_eq!(reports.next::<Report>().await.unwrap(), None);
    assert!(supervisor.wait().unwrap().success());
    assert!(!folder.path().join("ran").exists());
}

fn sh(command: &str) -> Spec {
    Spec { argv: Spec::shell_line(command, []), input: None, cwd: None, env: vec![], lock: None }
}

/// The example built with this test binary: a test binary's own `main` cannot become a supervisor.
fn program() -> SupervisorProgram {
    let target = std::env::current_exe().unwrap().parent().unwrap().with_file_name("examples");
    SupervisorProgram { path: target.join("supervise"), args: vec!["supervise".into()] }
}

async fn start(spec: &Spec) -> Supervised {
    Supervised::spawn(&program(), spec).await.unwrap()
}

/// A worker in a process of its own, and the first line of its command.
fn worker(spec: &Spec) -> (std::process::Child, String) {
    let mut worker = Command::new(program().path)
        .args(["work", &serde_json::to_string(spec).unwrap()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufReader::new(worker.stdout.as_mut().unwrap().by_ref()).read_line(&mut line).unwrap();
    (worker, line)
}

async fn first_line(supervised: &mut Supervised) -> String {
    line_of(supervised.process.stdout.as_mut().unwrap()).await
}

async fn line_of(output: &mut ChildStdout) -> String {
    let mut line = Vec::new();
    while line.last() != Some(&b'\n') {
        line.push(output.read_u8().await.unwrap());
    }
    String::from_utf8(line).unwrap().trim_end().to_owned()
}

async fn read_all(supervised: &mut Supervised) -> (Vec<u8>, Vec<u8>) {
    let (mut stdout, mut stderr) = supervised.take_output();
    let (mut output, mut error) = (Vec::new(), Vec::new());
    tokio::try_join!(stdout.read_to_end(&mut output), stderr.read_to_end(&mut error)).unwrap();
    (output, error)
}

fn assert_gone(pids: &str) {
    assert!(!pids.trim().is_empty());
    for pid in pids.split_whitespace() {
        let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
        assert_eq!(rustix::process::test_kill_process(pid), Err(Errno::SRCH), "process {pid} is alive");
    }
}
