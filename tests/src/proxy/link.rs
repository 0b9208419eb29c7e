use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::{Fault, Rules, State};

/// Reads that are held at most in each direction; the sender is then left to wait, as by TCP.
const HELD: usize = 256;

/// The most bytes of a read.
const PIECE: usize = 16 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Requests,
    Replies,
}

/// One connection, from a client through the proxy to the server.
pub(super) struct Link<'a> {
    number: u32,
    state: &'a State,
    /// Its next reply is dropped, and the connection with it.
    is_doomed: AtomicBool,
}

/// What was read, and when.
type Piece = (Instant, Vec<u8>);

impl<'a> Link<'a> {
    pub(super) fn new(number: u32, state: &'a State) -> Self {
        Self { number, state, is_doomed: AtomicBool::new(false) }
    }

    /// Forwards both ways until one side has closed, or the connection is cut.
    pub(super) async fn run(&self, client: TcpStream, server: TcpStream) {
        for side in [&client, &server] {
            side.set_nodelay(true).expect("an option of every TCP socket");
        }
        let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
        let mut rules = self.state.rules.subscribe();
        tokio::select! {
            () = self.forward(Direction::Requests, from_client, to_server) => {}
            () = self.forward(Direction::Replies, from_server, to_client) => {}
            _ = rules.wait_for(|rules| self.number < rules.cut_before) => {}
        }
    }

    async fn forward(&self, direction: Direction, from: OwnedReadHalf, to: OwnedWriteHalf) {
        let (taken, held) = mpsc::channel(HELD);
        let reading = async {
            read(from, taken).await;
            // What is held is still to be delivered.
            pending::<()>().await;
        };
        tokio::select! {
            () = reading => {}
            () = self.deliver(direction, held, to) => {}
        }
    }

    /// Delivers, late, or not, as the rules say when it is due.
    async fn deliver(&self, direction: Direction, mut held: mpsc::Receiver<Piece>, mut to: OwnedWriteHalf) {
        let mut rules = self.state.rules.subscribe();
        let mut seen = Vec::new();
        while let Some((read_at, mut bytes)) = held.recv().await {
            let delay = rules.borrow().fault.delay();
            sleep_until(read_at + delay).await;
            let Some(now) = changed_to(&mut rules, |rules| !rules.holds(self.number)).await else { return };
            if now.fault.drops(direction) {
                changed_to(&mut rules, |rules| !rules.fault.drops(direction)).await;
                return;
            }
            match direction {
                Direction::Requests => self.look_for(now.doomed, &mut seen, &bytes),
                Direction::Replies if self.is_doomed.load(Ordering::SeqCst) => {
                    self.state.dropped.fetch_add(1, Ordering::SeqCst);
                    return;
                }
                Direction::Replies if now.fault == Fault::GarbleReplies => bytes.reverse(),
                Direction::Replies if now.fault == Fault::TruncateReplies => {
                    let _ = to.write_all(&bytes[..bytes.len() / 2]).await;
                    return;
                }
                Direction::Replies => {}
            }
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    }

    /// Dooms this connection if the request that is looked for is in what it sends; it may come in two pieces.
    fn look_for(&self, doomed: Option<&'static str>, seen: &mut Vec<u8>, bytes: &[u8]) {
        let Some(text) = doomed else {
            seen.clear();
            return;
        };
        seen.extend_from_slice(bytes);
        if seen.windows(text.len()).any(|word| word == text.as_bytes()) {
            // Another connection may have had one first.
            let first = self.state.rules.send_if_modified(|rules| rules.doomed.take().is_some());
            self.is_doomed.fetch_or(first, Ordering::SeqCst);
        }
        seen.drain(..seen.len().saturating_sub(text.len() - 1));
    }
}

impl Rules {
    fn holds(&self, number: u32) -> bool {
        self.fault == Fault::Freeze || number < self.stranded_before
    }
}

async fn read(mut from: OwnedReadHalf, taken: mpsc::Sender<Piece>) {
    let mut buffer = vec![0; PIECE];
    loop {
        let Ok(count @ 1..) = from.read(&mut buffer).await else { return };
        if taken.send((Instant::now(), buffer[..count].to_vec())).await.is_err() {
            return;
        }
    }
}

/// The rules as soon as they are so; none when the proxy is gone.
async fn changed_to(
    rules: &mut watch::Receiver<Rules>,
    condition: impl FnMut(&Rules) -> bool,
) -> Option<Rules> {
    rules.wait_for(condition).await.ok().map(|rules| *rules)
}
