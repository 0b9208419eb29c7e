use std::process::Child;

use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use wait4::Wait4 as _;

use super::git::{Git, Running};

/// A process that is reaped when this is dropped, which blocks; killed before, with its descendants, unless it is known
/// to have ended by itself.
pub(super) struct Process {
    /// None once it is reaped.
    child: Option<(Child, Running)>,
    kill: bool,
    // Dropped after the child is reaped.
    _git: Git,
    _place: OwnedSemaphorePermit,
}

impl Process {
    pub(super) fn new(child: Child, git: Git, place: OwnedSemaphorePermit) -> Self {
        let running = git.running(child.id());
        Self { child: Some((child, running)), kill: true, _git: git, _place: place }
    }

    /// Reaps it elsewhere. One that has closed its output has until `stop` to end by itself.
    pub(super) async fn reap(mut self, has_closed_output: bool, stop: &CancellationToken) {
        if let (true, Some((child, _))) = (has_closed_output, &self.child) {
            let pid = Pid::from_child(child);
            // Not reaped yet, so that what is killed here is nobody else.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let ended = spawn_blocking(move || retry_on_intr(|| waitid(WaitId::Pid(pid), options)));
            tokio::select! {
                ended = ended => self.kill = !matches!(ended, Ok(Ok(_))),
                () = stop.cancelled() => {}
            }
        }
        // A runtime that is shutting down drops what it does not run any more, which reaps as well.
        let _ = spawn_blocking(move || drop(self)).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let Some((child, running)) = self.child.take() else { return };
        if self.kill {
            if let Running::Sampled(meter) = &running {
                // What its descendants used is in nobody's wait status once it is killed.
                meter.sample();
            }
            if let Err(error) = kill_process_group(Pid::from_child(&child), Signal::KILL) {
                tracing::debug!(%error, "a process that is to be killed has ended");
            }
        }
        match (child.wait4(), running) {
            (Ok(ended), Running::Sampled(meter)) => meter.ended(ended.rusage.utime + ended.rusage.stime),
            (Ok(_), Running::InCgroup) => {}
            (Err(error), _) => {
                tracing::warn!(%error, "a process cannot be waited for: its last sample stands");
            }
        }
    }
}
