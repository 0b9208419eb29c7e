//! Who is let connect: so many at a time, and so many of one address, so that whoever opens connections leaves some to others.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use prometheus::IntCounter;
use quota_core::{Account, Ipv6Prefix, Kind};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::Connections;
use crate::places::{Place, Places};

/// How long accepting rests when the system has no file or memory left for a connection.
const EXHAUSTED: Duration = Duration::from_millis(100);

/// Connections that come to a port.
pub(crate) struct Incoming {
    listener: TcpListener,
    places: Arc<Semaphore>,
    of_addresses: Places<Account>,
    most_of_address: usize,
    /// How IPv6 addresses are grouped.
    prefix: Ipv6Prefix,
    /// Those that were closed at once.
    refused: IntCounter,
}

/// The place of a connection, until it is dropped.
pub(crate) struct Accepted {
    _place: OwnedSemaphorePermit,
    of_address: Place<Account>,
}

impl Accepted {
    /// Where it is from, as far as addresses are told apart.
    pub(crate) fn address(&self) -> Account {
        self.of_address.owner().clone()
    }
}

impl Incoming {
    pub(crate) fn new(
        listener: TcpListener,
        connections: &Connections,
        prefix: Ipv6Prefix,
        refused: IntCounter,
    ) -> Self {
        Self {
            listener,
            places: Arc::new(Semaphore::new(connections.most)),
            of_addresses: Places::default(),
            most_of_address: connections.most_of_address,
            prefix,
            refused,
        }
    }

    /// The next connection, and its place; further ones wait in the system's queue.
    pub(crate) async fn next(&self) -> (TcpStream, Accepted) {
        loop {
            match self.try_next().await {
                Ok(Some(accepted)) => return accepted,
                Ok(None) => self.refused.inc(),
                Err(error) => {
                    tracing::warn!(%error, "no connection can be accepted");
                    tokio::time::sleep(EXHAUSTED).await;
                }
            }
        }
    }

    /// None where its address has as many as it may.
    async fn try_next(&self) -> io::Result<Option<(TcpStream, Accepted)>> {
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(io::Error::other)?;
        let (stream, peer) = self.listener.accept().await?;
        let address =
            Account::new(Kind::Ip, &peer.ip().to_string(), self.prefix).map_err(io::Error::other)?;
        let of_address = self.of_addresses.take(address, self.most_of_address);
        Ok(of_address.map(|of_address| (stream, Accepted { _place: place, of_address })))
    }
}
