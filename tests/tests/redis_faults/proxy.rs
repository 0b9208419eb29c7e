//! A way to Redis that can be broken.

use std::future::pending;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What runs a script by its digest.
const CALL: &[u8] = b"EVALSHA";

/// Forwards connections to a Redis on this machine, as long as it lives.
pub(crate) struct Proxy {
    port: u16,
    state: Arc<State>,
    _serving: JoinSet<()>,
}

struct State {
    target: AtomicU16,
    drop_next_reply: AtomicBool,
    dropped: AtomicU32,
    /// Connections made before this number stay open, and nothing passes through them any more.
    frozen_before: watch::Sender<u32>,
    accepted: AtomicU32,
}

impl Proxy {
    pub(crate) async fn to(port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let state = Arc::new(State {
            target: AtomicU16::new(port),
            drop_next_reply: AtomicBool::new(false),
            dropped: AtomicU32::new(0),
            frozen_before: watch::Sender::new(0),
            accepted: AtomicU32::new(0),
        });
        let port = listener.local_addr().expect("the address just taken").port();
        let mut serving = JoinSet::new();
        serving.spawn(accept(listener, Arc::clone(&state)));
        Self { port, state, _serving: serving }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Where further connections lead.
    pub(crate) fn lead_to(&self, port: u16) {
        self.state.target.store(port, Ordering::SeqCst);
    }

    /// Forwards the next script, and closes the connection in place of its reply.
    pub(crate) fn drop_next_reply(&self) {
        self.state.drop_next_reply.store(true, Ordering::SeqCst);
    }

    /// How many replies were dropped.
    pub(crate) fn dropped(&self) -> u32 {
        self.state.dropped.load(Ordering::SeqCst)
    }

    /// How many connections were made.
    pub(crate) fn accepted(&self) -> u32 {
        self.state.accepted.load(Ordering::SeqCst)
    }

    /// The connections of now stay open, and nothing passes through them any more; others are good.
    pub(crate) fn freeze(&self) {
        self.state.frozen_before.send_replace(self.accepted());
    }
}

/// One connection.
struct Link<'a> {
    number: u32,
    state: &'a State,
    dropping: AtomicBool,
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let number = state.accepted.fetch_add(1, Ordering::SeqCst);
        let state = Arc::clone(&state);
        connections.spawn(async move {
            let port = state.target.load(Ordering::SeqCst);
            let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await else { return };
            let link = Link { number, state: &state, dropping: AtomicBool::new(false) };
            let ((from_client, to_client), (from_server, to_server)) =
                (client.into_split(), server.into_split());
            tokio::select! {
                () = link.requests(from_client, to_server) => {}
                () = link.replies(from_server, to_client) => {}
            }
        });
    }
}

impl Link<'_> {
    async fn requests(&self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
        let mut seen = Vec::new();
        while let Some(bytes) = self.read(&mut from).await {
            seen.extend_from_slice(&bytes);
            let is_call = seen.windows(CALL.len()).any(|word| word == CALL);
            if is_call && self.state.drop_next_reply.swap(false, Ordering::SeqCst) {
                self.dropping.store(true, Ordering::SeqCst);
            }
            // A call may come in two pieces.
            seen.drain(..seen.len().saturating_sub(CALL.len() - 1));
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    }

    async fn replies(&self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
        while let Some(bytes) = self.read(&mut from).await {
            if self.dropping.load(Ordering::SeqCst) {
                self.state.dropped.fetch_add(1, Ordering::SeqCst);
                return;
            }
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    }

    /// What comes next; never anything again once the connection is frozen.
    async fn read(&self, from: &mut OwnedReadHalf) -> Option<Vec<u8>> {
        let mut frozen = self.state.frozen_before.subscribe();
        let mut bytes = vec![0; 16 << 10];
        let freezing = async { drop(frozen.wait_for(|before| self.number < *before).await) };
        let read = tokio::select! {
            biased;
            () = freezing => None,
            read = from.read(&mut bytes) => Some(read),
        };
        let Some(read) = read else { return pending().await };
        bytes.truncate(read.ok()?);
        (!bytes.is_empty()).then_some(bytes)
    }
}
