use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process_group};
use wait4::Wait4 as _;

use super::*;

/// A shell in a process group of its own, which is killed in the end, whatever becomes of the test.
pub(super) struct Shell {
    child: Option<Child>,
    group: Pid,
    output: BufReader<ChildStdout>,
}

impl Shell {
    pub(super) fn run(script: &str) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Self::start(command)
    }

    pub(super) fn start(mut command: Command) -> Self {
        let mut child = command.process_group(0).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { group: Pid::from_child(&child), child: Some(child), output }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// The next line that it writes.
    pub(super) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub(super) fn signal(&self, signal: Signal) {
        kill_process_group(self.group, signal).unwrap();
    }

    /// Kills the group, and tells the CPU time of the shell's wait status.
    pub(super) fn kill(&mut self) -> Option<Duration> {
        let is_there = self.child.is_some();
        // One that has ended may have left none to be killed.
        let killed = kill_process_group(self.group, Signal::KILL);
        assert!(!is_there || killed.is_ok());
        self.wait()
    }

    /// Waits for its end, and tells the CPU time of its wait status.
    pub(super) fn wait(&mut self) -> Option<Duration> {
        let usage = self.child.take()?.wait4().unwrap().rusage;
        Some(usage.utime + usage.stime)
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(super) const BURN: &str = "while :; do :; done";

/// What was charged, in all.
pub(super) fn cpu(heard: &fake::Heard) -> Duration {
    Duration::from_micros(fake::costs(heard).map(|(_, cost)| cost.cpu_micros).sum())
}

#[tokio::test]
async fn a_child_is_charged_while_it_runs_and_in_the_end_exactly_once() {
    let fake = Fake::start().await;
    let client = builder([&fake]).build().unwrap();
    let mut shell = Shell::run(BURN);
    let child = client.meter(&fetch()).child(shell.pid());
    fake.hears(|heard| cpu(heard) >= Duration::from_millis(50)).await;
    let exact = shell.kill().unwrap();
    child.ended(exact);
    assert!(client.shutdown(LONG).await);
    assert_eq!(cpu(&fake.heard()).as_micros(), exact.as_micros());
}

#[tokio::test]
async fn descendants_count_while_they_live_and_stay_counted() {
    let fake = Fake::start().await;
    let client = builder([&fake]).build().unwrap();
    let mut shell = Shell::run(&format!("({BURN}) & wait"));
    let child = client.meter(&fetch()).child(shell.pid());
    fake.hears(|heard| cpu(heard) >= Duration::from_millis(100)).await;
    let without_descendants = shell.kill().unwrap();
    assert!(without_descendants < Duration::from_millis(100), "the shell did not wait for it");
    child.ended(without_descendants);
    assert!(client.shutdown(LONG).await);
    assert!(cpu(&fake.heard()) >= Duration::from_millis(100));
}

#[tokio::test]
async fn the_last_sample_stands_for_a_child_that_is_let_go() {
    let fake = Fake::start().await;
    let client = builder([&fake]).report_interval(LONG).build().unwrap();
    let shell = Shell::run(BURN);
    let child = client.meter(&fetch()).child(shell.pid());
    let burnt = || process_cpu(shell.pid());
    tokio::time::timeout(LONG, async {
        while burnt() < Duration::from_millis(50) {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    child.sample();
    drop(child);
    assert!(client.shutdown(LONG).await);
    let charged = cpu(&fake.heard());
    assert!(Duration::from_millis(50) <= charged && charged <= burnt(), "{charged:?}");
}

pub(super) fn process_cpu(pid: u32) -> Duration {
    let process = crate::process::Process::of(pid).unwrap();
    crate::process::Family::read().usage(process).unwrap().cpu
}

#[tokio::test]
async fn a_child_without_samples_is_charged_when_it_has_ended() {
    let fake = Fake::start().await;
    let client = builder([&fake]).build().unwrap();
    let nobody = client.meter(&fetch()).child(u32::MAX);
    nobody.sample();
    // So long it can have run, on any machine.
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(7) {
        std::thread::yield_now();
    }
    nobody.ended(Duration::from_millis(7));
    assert!(client.shutdown(LONG).await);
    assert_eq!(cpu(&fake.heard()), Duration::from_millis(7));
}
