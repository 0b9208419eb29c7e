//! Who is let connect: so many at a time, and so many of one address, so that whoever opens connections leaves some to others.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus::IntCounter;
use quota_core::{Account, Ipv6Prefix, Kind};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::Connections;

/// How long accepting rests when the system has no file or memory left for a connection.
const EXHAUSTED: Duration = Duration::from_millis(100);

/// Connections that come to a port.
pub(crate) struct Incoming {
    listener: TcpListener,
    places: Arc<Semaphore>,
    of_addresses: Arc<OfAddresses>,
    most_of_address: usize,
    /// How IPv6 addresses are grouped.
    prefix: Ipv6Prefix,
    /// Those that were closed at once.
    refused: IntCounter,
}

/// How many connections each address has; none: it is not in it.
#[derive(Default)]
struct OfAddresses(Mutex<HashMap<Account, usize>>);

/// The place of a connection, until it is dropped.
pub(crate) struct Place {
    _place: OwnedSemaphorePermit,
    of_addresses: Arc<OfAddresses>,
    address: Account,
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
            of_addresses: Arc::default(),
            most_of_address: connections.most_of_address,
            prefix,
            refused,
        }
    }

    /// The next connection, and its place; further ones wait in the system's queue.
    pub(crate) async fn next(&self) -> (TcpStream, Place) {
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
    async fn try_next(&self) -> io::Result<Option<(TcpStream, Place)>> {
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(io::Error::other)?;
        let (stream, peer) = self.listener.accept().await?;
        let address =
            Account::new(Kind::Ip, &peer.ip().to_string(), self.prefix).map_err(io::Error::other)?;
        if !self.of_addresses.enter(&address, self.most_of_address) {
            return Ok(None);
        }
        let of_addresses = Arc::clone(&self.of_addresses);
        Ok(Some((stream, Place { _place: place, of_addresses, address })))
    }
}

impl OfAddresses {
    fn enter(&self, address: &Account, most: usize) -> bool {
        let mut all = self.0.lock();
        match all.get_mut(address) {
            Some(count) if *count >= most => return false,
            Some(count) => *count += 1,
            None => drop(all.insert(address.clone(), 1)),
        }
        true
    }

    fn leave(&self, address: &Account) {
        let mut all = self.0.lock();
        if let Some(count) = all.get_mut(address) {
            *count -= 1;
            if *count == 0 {
                all.remove(address);
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.of_addresses.leave(&self.address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_so_many_and_is_forgotten_with_the_last() {
        let all = OfAddresses::default();
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(|ip| Account::from_spelling(Kind::Ip, ip).unwrap());
        assert_eq!([(); 3].map(|()| all.enter(&one, 2)), [true, true, false]);
        assert!(all.enter(&other, 2));
        all.leave(&one);
        assert!(all.enter(&one, 2) && !all.enter(&one, 2));
        for address in [&one, &one, &other] {
            all.leave(address);
        }
        assert!(all.0.lock().is_empty());
    }
}
