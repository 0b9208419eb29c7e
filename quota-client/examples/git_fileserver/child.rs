//! Git processes whose output is a response: streamed, metered, killed when their client is gone or idle or the server
//! stops, and always reaped.

mod git;
mod process;
#[cfg(test)]
mod tests;

use std::future::pending;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::pin::pin;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt as _};
use tokio_util::io::ReaderStream;
use tokio_util::sync::CancellationToken;

use crate::refusal::Refusal;
pub(crate) use git::Git;
use process::Process;

/// The most git processes at a time. Each holds a thread while it is waited for, of which Tokio has 512.
const MOST: u32 = 256;

/// How much of the input, and of the output, is held at a time, in bytes.
const CHUNK: usize = 64 * 1024;

/// A client for which git waits, and which neither sends nor takes anything for so long, is given up.
pub(crate) const IDLE: Duration = Duration::from_secs(60);

/// Starts git processes, and knows how many run.
#[derive(Clone)]
pub(crate) struct Children {
    permits: Arc<Semaphore>,
    stop: CancellationToken,
    idle: Duration,
}

impl Children {
    /// Gives up clients that are `idle` for so long.
    pub(crate) fn new(idle: Duration) -> Self {
        Self { permits: Arc::new(Semaphore::new(MOST as usize)), stop: CancellationToken::new(), idle }
    }

    /// Starts a process that reads `input` and whose output, after `preamble`, is the answer. Dropped before its end,
    /// the process is killed; and where the machine is overloaded and this is among what harms it most.
    pub(crate) fn run<I: AsyncRead + Send + 'static>(
        &self,
        git: Git,
        mut command: Command,
        input: I,
        preamble: String,
    ) -> Result<impl Stream<Item = io::Result<Bytes>> + Send + use<I>, Refusal> {
        let permit = Arc::clone(&self.permits).try_acquire_owned().map_err(|_| Refusal::Busy)?;
        let mut child = command.process_group(0).spawn().map_err(Refusal::Broken)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        // From here on a failure ends the process, by the drop of `process`.
        let (meter, ended) = (git.meter(), git.meter());
        let process = Process::new(child, git, permit);
        let stdout = ChildStdout::from_std(stdout.ok_or_else(no_pipe)?).map_err(Refusal::Broken)?;
        let stdin = ChildStdin::from_std(stdin.ok_or_else(no_pipe)?).map_err(Refusal::Broken)?;
        // One to hand on, and a place for the last word.
        let (chunks, output) = mpsc::channel(2);
        let last_word = chunks.clone().try_reserve_owned();
        let Self { stop, idle, .. } = self.clone();
        tokio::spawn(async move {
            let cut_off = tokio::select! {
                has_ended = hand_out(preamble.into(), stdout, &chunks, idle) => (!has_ended).then(before_its_time),
                () = starved(stdin, input, idle) => Some(before_its_time()),
                () = stop.cancelled() => Some(before_its_time()),
                denial = ended.is_shed() => Some(io::Error::other(denial)),
            };
            drop(ended);
            let has_ended = cut_off.is_none();
            if let (Some(why), Ok(last_word)) = (cut_off, last_word) {
                // Without it, what is cut off would look whole.
                last_word.send(Err(why));
            }
            drop(chunks);
            process.reap(has_ended, &stop).await;
        });
        Ok(ReceiverStream::new(output)
            .map(move |chunk| chunk.inspect(|bytes: &Bytes| meter.sent(bytes.len() as u64))))
    }

    /// Ends all processes that run, and those that are started from now on.
    pub(crate) fn end_all(&self) {
        self.stop.cancel();
    }

    /// Ends when no process runs.
    pub(crate) async fn all_reaped(&self) {
        // It fails only where the semaphore is closed, which nobody does.
        let _ = self.permits.acquire_many(MOST).await;
    }
}

fn before_its_time() -> io::Error {
    io::Error::other("git is ended before its time")
}

fn no_pipe() -> Refusal {
    Refusal::Broken(io::Error::other("git has no pipes"))
}

/// Hands out the output. Returns whether the process has closed it, rather than the client taken no more.
async fn hand_out(
    preamble: Bytes,
    stdout: ChildStdout,
    chunks: &mpsc::Sender<io::Result<Bytes>>,
    idle: Duration,
) -> bool {
    let preamble = (!preamble.is_empty()).then_some(Ok(preamble));
    let mut output = tokio_stream::iter(preamble).chain(ReaderStream::with_capacity(stdout, CHUNK));
    loop {
        let chunk = tokio::select! {
            chunk = output.next() => chunk,
            () = chunks.closed() => return false,
        };
        let Some(chunk) = chunk else { return true };
        if chunk.is_err() || chunks.send_timeout(chunk, idle).await.is_err() {
            return false;
        }
    }
}

/// Hands on the request, and ends only where the client is idle. A process that has heard enough closes its input,
/// which is no failure.
async fn starved(mut stdin: ChildStdin, input: impl AsyncRead, idle: Duration) {
    let mut input = pin!(input);
    let mut buffer = Vec::with_capacity(CHUNK);
    loop {
        buffer.clear();
        match timeout(idle, input.read_buf(&mut buffer)).await {
            Ok(Ok(1..)) if stdin.write_all(&buffer).await.is_ok() => {}
            Ok(_) => break,
            Err(_) => return,
        }
    }
    drop(stdin);
    pending::<()>().await;
}
