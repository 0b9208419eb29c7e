//! Git processes whose output is a response: streamed, metered, killed when nobody reads on, and always reaped.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::pin::Pin;
use std::process::{Child, Command};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Bytes;
use quota_client::{ChildMeter, Meter};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncRead;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio_stream::Stream;
use tokio_util::io::ReaderStream;
use wait4::Wait4 as _;

use crate::refusal::Refusal;

/// The most git processes at a time. Each holds a thread while it is waited for, of which Tokio has 512.
const MOST: u32 = 256;

/// How much of the output is held at a time, in bytes.
const CHUNK: usize = 64 * 1024;

/// Starts git processes, and knows how many run.
#[derive(Clone)]
pub(crate) struct Children(Arc<Semaphore>);

impl Children {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(MOST as usize)))
    }

    /// Starts a process that reads `input` and whose output, after `preamble`, is the answer.
    pub(crate) fn run(
        &self,
        mut command: Command,
        input: impl AsyncRead + Send + 'static,
        preamble: String,
        meter: Meter,
    ) -> Result<Output, Refusal> {
        let permit = Arc::clone(&self.0).try_acquire_owned().map_err(|_| Refusal::Busy)?;
        let mut child = command.process_group(0).spawn().map_err(Refusal::Broken)?;
        let child_meter = meter.child(child.id());
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let reap = Reap { child: Some((child, child_meter)), kill: true, _permit: permit };
        let mut running = Running { reap: Some(reap), feeding: None };
        // From here on a failure ends the process, by the drop of `running`.
        let stdout = ChildStdout::from_std(stdout.ok_or_else(no_pipe)?).map_err(Refusal::Broken)?;
        let stdin = ChildStdin::from_std(stdin.ok_or_else(no_pipe)?).map_err(Refusal::Broken)?;
        running.feeding = Some(tokio::spawn(feed(stdin, input)).abort_handle());
        let stdout = ReaderStream::with_capacity(stdout, CHUNK);
        Ok(Output { preamble: preamble.into(), stdout, meter, running })
    }

    /// Ends when no process runs.
    pub(crate) async fn all_reaped(&self) {
        // It fails only where the semaphore is closed, which nobody does.
        let _ = self.0.acquire_many(MOST).await;
    }
}

fn no_pipe() -> Refusal {
    Refusal::Broken(io::Error::other("git has no pipes"))
}

/// Hands on the request. A process that has heard enough closes its input, which is no failure.
async fn feed(mut stdin: ChildStdin, input: impl AsyncRead) {
    let mut input = std::pin::pin!(input);
    if let Err(error) = tokio::io::copy(&mut input, &mut stdin).await {
        tracing::debug!(%error, "the request is not handed on");
    }
}

/// The output of a process; dropped before its end, the process is killed.
pub(crate) struct Output {
    preamble: Bytes,
    stdout: ReaderStream<ChildStdout>,
    meter: Meter,
    running: Running,
}

impl Stream for Output {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let chunk = if self.preamble.is_empty() {
            ready!(Pin::new(&mut self.stdout).poll_next(cx))
        } else {
            Some(Ok(std::mem::take(&mut self.preamble)))
        };
        match &chunk {
            Some(Ok(bytes)) => self.meter.sent(bytes.len() as u64),
            Some(Err(_)) => {}
            None => self.running.ended(),
        }
        Poll::Ready(chunk)
    }
}

/// A process that runs; dropped, it is waited for elsewhere.
struct Running {
    reap: Option<Reap>,
    feeding: Option<AbortHandle>,
}

impl Running {
    /// It has closed its output.
    fn ended(&mut self) {
        if let Some(reap) = &mut self.reap {
            reap.kill = false;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(feeding) = &self.feeding {
            feeding.abort();
        }
        let reap = self.reap.take();
        // A runtime that is shutting down drops what it does not run any more, which reaps as well.
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || drop(reap))),
            Err(_) => drop(reap),
        }
    }
}

/// A process that is reaped when this is dropped, which blocks; killed before, with its descendants, where it has
/// not ended by itself.
struct Reap {
    child: Option<(Child, ChildMeter)>,
    kill: bool,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Reap {
    fn drop(&mut self) {
        let Some((child, meter)) = self.child.take() else { return };
        if self.kill {
            // What its descendants used is in nobody's wait status once it is killed.
            meter.sample();
            if let Err(error) = kill_process_group(Pid::from_child(&child), Signal::KILL) {
                tracing::debug!(%error, "a process that is to be killed has ended");
            }
        }
        match child.wait4() {
            Ok(ended) => meter.ended(ended.rusage.utime + ended.rusage.stime),
            Err(error) => tracing::warn!(%error, "a process cannot be waited for: its last sample stands"),
        }
    }
}
