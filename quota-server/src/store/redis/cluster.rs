//! A Redis Cluster: which node holds a key, and the connections to each.
//!
//! The connection to a Cluster that the crate redis has is not used: one task has all calls in hand, which stand still while
//! it asks for the nodes again, and what it sends again after a redirection it sends again after a connection that broke,
//! too. Decision 18 says more.

mod layout;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use redis::cluster_routing::Slot;
use redis::{
    Cmd, ConnectionAddr, ConnectionInfo, FromRedisValue, IntoConnectionInfo as _, RedisResult, Value,
};
use tokio::sync::OnceCell;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use self::layout::{Address, Layout, Redirect};
use super::error::classify;
use super::pool::{Call, Pool};
use crate::store::{Cause, StoreError};

/// A slot that moves is passed on twice, and a script that the new node does not know yet takes as much again.
const MOST_REDIRECTIONS: usize = 5;

/// How long one node may take to tell of all.
const LAYOUT_TIMEOUT: Duration = Duration::from_secs(1);

/// The least time between two looks at which node holds what, however many calls fail.
const LAYOUT_PAUSE: Duration = Duration::from_millis(100);

/// How many names are tried to find a key that each node holds. One that holds a handful of slots may be left out.
const MOST_NAMES: usize = 4096;

/// The connections to a Cluster.
pub(super) struct Cluster(Arc<Nodes>);

struct Nodes {
    /// Those that the configuration names.
    first: Vec<Address>,
    /// How each is spoken to, but for its address.
    template: ConnectionInfo,
    pool_size: usize,
    layout: RwLock<Layout>,
    /// Set once a layout is known. Of those who come before, one asks for it, and the others wait for that.
    known: OnceCell<()>,
    pools: RwLock<HashMap<Address, Pool>>,
    /// Whether somebody looks which node holds what.
    looking: AtomicBool,
}

impl Cluster {
    pub(super) fn new(nodes: &[Box<str>], pool_size: usize) -> Result<Self, StoreError> {
        let infos = nodes.iter().map(|url| (&**url).into_connection_info()).collect::<RedisResult<Vec<_>>>();
        let infos = infos.map_err(|error| classify(&error))?;
        let first = infos.iter().filter_map(|info| Address::of(info.addr())).collect();
        let template =
            infos.into_iter().next().ok_or_else(|| StoreError::Unreachable("no node".to_owned()))?;
        Ok(Self(Arc::new(Nodes {
            first,
            template,
            pool_size,
            layout: RwLock::default(),
            known: OnceCell::new(),
            pools: RwLock::default(),
            looking: AtomicBool::new(false),
        })))
    }

    /// Runs one call on the node that holds a key, and again where that says which other does.
    pub(super) async fn call<T: FromRedisValue>(&self, key: &str, call: Call<'_>) -> Result<T, StoreError> {
        let (mut at, mut asking, mut left) = (self.holder(key).await?, false, MOST_REDIRECTIONS);
        loop {
            let pool = self.0.pool(&at)?;
            let error = match pool.call(call, asking).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) => error,
                Err(error) => {
                    self.doubt();
                    return Err(error);
                }
            };
            match Redirect::of(&error, &at) {
                Some(redirect) if left > 0 => {
                    left -= 1;
                    (at, asking) = self.follow(redirect);
                }
                _ => {
                    let error = classify(&error);
                    if matches!(error.cause(), Cause::Connection | Cause::Readonly | Cause::Busy) {
                        self.doubt();
                    }
                    return Err(error);
                }
            }
        }
    }

    /// Runs a command on each key, in one round trip to each node. What has moved is asked for anew.
    pub(super) async fn read_each(
        &self,
        keys: &[String],
        commands: &[&Cmd],
    ) -> Result<Vec<RedisResult<Value>>, StoreError> {
        let mut by_holder = HashMap::<Address, Vec<usize>>::new();
        for (place, key) in keys.iter().enumerate() {
            by_holder.entry(self.holder(key).await?).or_default().push(place);
        }
        let mut answers: Vec<Option<RedisResult<Value>>> = keys.iter().map(|_| None).collect();
        for (at, places) in by_holder {
            let asked: Vec<&Cmd> = places.iter().filter_map(|&place| commands.get(place).copied()).collect();
            let read = self.0.pool(&at)?.read(&asked).await.inspect_err(|_| self.doubt())?;
            for (place, answer) in places.into_iter().zip(read) {
                if let Some(slot) = answers.get_mut(place) {
                    *slot = Some(answer);
                }
            }
        }
        let mut all = Vec::with_capacity(keys.len());
        for ((key, command), answer) in keys.iter().zip(commands).zip(answers) {
            all.push(match answer {
                Some(Err(error)) if error.redirect_node().is_some() => {
                    Ok(self.call(key, Call::Command(command)).await?)
                }
                Some(answer) => answer,
                None => Ok(Value::Nil),
            });
        }
        Ok(all)
    }

    /// Of each node that holds slots, a key of this name that it holds.
    pub(super) async fn key_of_each(&self, name: &str) -> Result<Vec<String>, StoreError> {
        self.holder(name).await?;
        let layout = self.0.layout.read();
        let mut missing = layout.nodes();
        let names = (0..MOST_NAMES).map(|number| format!("{name}:{number}"));
        Ok(names
            .filter(|key| layout.holder(Slot::for_key(key)).is_some_and(|holder| missing.remove(holder)))
            .collect())
    }

    /// Looks soon which node holds what. Nobody waits for it.
    pub(super) fn doubt(&self) {
        if self.0.looking.swap(true, Ordering::Relaxed) {
            return;
        }
        let nodes = Arc::clone(&self.0);
        tokio::spawn(async move {
            // Who asks next will doubt again.
            let _ = nodes.look().await;
            sleep(LAYOUT_PAUSE).await;
            nodes.looking.store(false, Ordering::Relaxed);
        });
    }

    /// The node that holds a key. Only who asks before any node has answered waits for it.
    async fn holder(&self, key: &str) -> Result<Address, StoreError> {
        self.0.known.get_or_try_init(|| self.0.look()).await?;
        let holder = self.0.layout.read().holder(Slot::for_key(key)).cloned();
        holder.ok_or_else(|| {
            self.doubt();
            StoreError::Refused("no node of the Cluster holds the slot".to_owned(), Cause::Busy)
        })
    }

    /// Where to ask next, and whether as one who was sent.
    fn follow(&self, redirect: Redirect) -> (Address, bool) {
        match redirect {
            Redirect::Moved(slot, address) => {
                self.0.layout.write().moved(slot, address.clone());
                self.doubt();
                (address, false)
            }
            Redirect::Ask(address) => (address, true),
        }
    }
}

impl Nodes {
    /// Asks all nodes that are known which holds what, and believes the first that answers.
    async fn look(&self) -> Result<(), StoreError> {
        let mut known = self.layout.read().nodes();
        known.extend(self.first.iter().cloned());
        let mut asked = JoinSet::new();
        for address in known {
            let pool = self.pool(&address)?;
            asked.spawn(async move {
                let mut slots = redis::cmd("CLUSTER");
                slots.arg("SLOTS");
                let told = pool.call::<Value>(Call::Command(&slots), false);
                let told = timeout(LAYOUT_TIMEOUT, told)
                    .await
                    .map_err(|_| StoreError::Timeout(LAYOUT_TIMEOUT))??;
                let told = told.map_err(|error| classify(&error))?;
                Layout::told(&told, &address).ok_or_else(|| {
                    StoreError::Refused("a node that knows of no slots".to_owned(), Cause::Busy)
                })
            });
        }
        let mut failed = StoreError::Unreachable("no node of the Cluster answers".to_owned());
        while let Some(told) = asked.join_next().await {
            match told {
                Ok(Ok(layout)) => {
                    self.adopt(layout);
                    return Ok(());
                }
                Ok(Err(error)) => failed = error,
                Err(_) => {}
            }
        }
        Err(failed)
    }

    fn adopt(&self, layout: Layout) {
        let nodes = layout.nodes();
        *self.layout.write() = layout;
        self.pools.write().retain(|address, _| nodes.contains(address) || self.first.contains(address));
    }

    fn pool(&self, address: &Address) -> Result<Pool, StoreError> {
        if let Some(pool) = self.pools.read().get(address) {
            return Ok(pool.clone());
        }
        let info = self.template.clone().set_addr(match self.template.addr() {
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => ConnectionAddr::TcpTls {
                host: address.host.to_string(),
                port: address.port,
                insecure: *insecure,
                tls_params: tls_params.clone(),
            },
            _ => ConnectionAddr::Tcp(address.host.to_string(), address.port),
        });
        let pool = Pool::to(info, None, self.pool_size)?;
        Ok(self.pools.write().entry(address.clone()).or_insert(pool).clone())
    }
}
