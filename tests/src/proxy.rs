//! A way to a server of this machine that can be broken, as a network breaks: what TCP would deliver late comes late,
//! and a connection that lost bytes is never gone on with.

mod link;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use link::{Direction, Link};

/// Forwards connections to a port of this machine, as long as it lives.
pub struct Proxy {
    port: u16,
    state: Arc<State>,
    _serving: JoinSet<()>,
}

/// What happens on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: all arrives.
    #[default]
    None,
    /// All arrives so much later, each way.
    Delay(Duration),
    /// Connections stay open and are taken, and nothing passes; it arrives when the fault ends.
    Freeze,
    /// The client's bytes are lost, and the server's arrive. Connections that lost some end with the fault.
    DropRequests,
    /// The server's bytes are lost, and the client's arrive. Connections that lost some end with the fault.
    DropReplies,
    /// The server's bytes arrive in another order.
    GarbleReplies,
    /// Half of what the server sends next arrives, and the connection is closed.
    TruncateReplies,
}

struct State {
    target: AtomicU16,
    accepted: AtomicU32,
    dropped: AtomicU32,
    rules: watch::Sender<Rules>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Rules {
    fault: Fault,
    /// Through connections before this number nothing passes any more.
    stranded_before: u32,
    /// Connections before this number are closed.
    cut_before: u32,
    /// What the next request contains whose reply is dropped.
    doomed: Option<&'static str>,
}

impl Proxy {
    /// One that leads to a port.
    pub async fn to(port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let state = Arc::new(State {
            target: AtomicU16::new(port),
            accepted: AtomicU32::new(0),
            dropped: AtomicU32::new(0),
            rules: watch::Sender::default(),
        });
        let port = listener.local_addr().expect("the address just taken").port();
        let mut serving = JoinSet::new();
        serving.spawn(accept(listener, Arc::clone(&state)));
        Self { port, state, _serving: serving }
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The same, as an address.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// The address of the Redis behind it.
    pub fn redis_url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Where further connections lead. Those of now go on.
    pub fn lead_to(&self, port: u16) {
        self.state.target.store(port, Ordering::SeqCst);
    }

    /// From now on, on all connections, those of now and further ones.
    pub fn set(&self, fault: Fault) {
        self.state.rules.send_modify(|rules| rules.fault = fault);
    }

    /// Closes the connections of now. Further ones are good.
    pub fn cut(&self) {
        self.state.rules.send_modify(|rules| rules.cut_before = self.accepted());
    }

    /// The connections of now stay open, and nothing passes through them any more. Further ones are good.
    pub fn strand(&self) {
        self.state.rules.send_modify(|rules| rules.stranded_before = self.accepted());
    }

    /// Forwards the next request that contains `text`, and closes its connection in place of the reply.
    pub fn drop_reply_to(&self, text: &'static str) {
        self.state.rules.send_modify(|rules| rules.doomed = Some(text));
    }

    /// How often [`Proxy::drop_reply_to`] has found its request and dropped the reply.
    pub fn dropped(&self) -> u32 {
        self.state.dropped.load(Ordering::SeqCst)
    }

    /// How many connections were made.
    pub fn accepted(&self) -> u32 {
        self.state.accepted.load(Ordering::SeqCst)
    }
}

impl Fault {
    const fn drops(self, direction: Direction) -> bool {
        matches!(
            (self, direction),
            (Self::DropRequests, Direction::Requests) | (Self::DropReplies, Direction::Replies)
        )
    }

    const fn delay(self) -> Duration {
        if let Self::Delay(delay) = self { delay } else { Duration::ZERO }
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let number = state.accepted.fetch_add(1, Ordering::SeqCst);
        let state = Arc::clone(&state);
        connections.spawn(async move {
            let port = state.target.load(Ordering::SeqCst);
            let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await else { return };
            Link::new(number, &state).run(client, server).await;
        });
    }
}
