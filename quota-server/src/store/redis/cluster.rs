//! A Redis Cluster: which node holds a key, and the connections to each.
//!
//! The connection to a Cluster that the crate redis has is not used: one task has all calls in hand, which stand still while
//! it asks for the nodes again, and what it sends again after a redirection it sends again after a connection that broke,
//! too. Decision 18 says more.

#[cfg(any(fuzzing, test))]
pub(super) mod fuzzing;
mod layout;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::join_all;
use parking_lot::RwLock;
use redis::cluster_routing::Slot;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _, RedisError, RedisResult, Value};
use tokio::sync::OnceCell;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use self::layout::{Address, Layout, Redirect};
use super::call::Call;
use super::error::classify;
use super::pool::{Lane, Pool, Sizing, Terms};
use crate::store::{Cause, StoreError};

/// A slot that moves is passed on twice, and a script that the new node does not know yet takes as much again.
const MOST_REDIRECTIONS: u32 = 5;

/// How long one node may take to tell of all.
const LAYOUT_TIMEOUT: Duration = Duration::from_secs(1);

/// The least time between two looks at which node holds what, however many calls fail.
const LAYOUT_PAUSE: Duration = Duration::from_millis(100);

/// How many names are tried to find a key that each node holds. One that holds a handful of slots may be left out.
const MOST_NAMES: usize = 4096;

/// The connections to a Cluster.
pub(super) struct Cluster(Arc<Nodes>);

/// Where a call is run next, and whether as one that another node has sent.
struct Step {
    at: Address,
    asking: bool,
}

struct Nodes {
    /// Those that the configuration names.
    first: Vec<Address>,
    /// How each is spoken to, but for its address.
    template: ConnectionInfo,
    sizing: Sizing,
    layout: RwLock<Layout>,
    /// Set once a layout is known. Of those who come before, one asks for it, and the others wait for that.
    known: OnceCell<()>,
    pools: RwLock<HashMap<Address, Pool>>,
    /// Whether somebody looks which node holds what.
    looking: AtomicBool,
}

impl Cluster {
    pub(super) fn new(nodes: &[Box<str>], sizing: Sizing) -> Result<Self, StoreError> {
        let infos = nodes.iter().map(|url| (&**url).into_connection_info()).collect::<RedisResult<Vec<_>>>();
        let infos = infos.map_err(|error| classify(&error))?;
        let first = infos.iter().filter_map(|info| Address::of(info.addr())).collect();
        let template =
            infos.into_iter().next().ok_or_else(|| StoreError::Unreachable("no node".to_owned()))?;
        Ok(Self(Arc::new(Nodes {
            first,
            template,
            sizing,
            layout: RwLock::default(),
            known: OnceCell::new(),
            pools: RwLock::default(),
            looking: AtomicBool::new(false),
        })))
    }

    /// Runs one call on the node that holds a key, and again where that says which other does.
    pub(super) async fn call(&self, terms: Terms, key: &str, call: &Call<'_>) -> Result<Value, StoreError> {
        let at = self.holder(key).await?;
        self.follow(Step { at, asking: false }, terms, call).await
    }

    /// Runs a call on each key, in one round trip to each node.
    pub(super) async fn run_each(
        &self,
        terms: Terms,
        calls: &[(String, Call<'_>)],
    ) -> Vec<Result<Value, StoreError>> {
        let mut answers = Vec::with_capacity(calls.len());
        let mut by_holder = HashMap::<Address, Vec<usize>>::new();
        for (place, (key, _)) in calls.iter().enumerate() {
            let holder = terms.within(self.holder(key)).await;
            // Nil stands for the answer that its node will give.
            answers.push(holder.map(|holder| {
                by_holder.entry(holder).or_default().push(place);
                Value::Nil
            }));
        }
        let nodes = by_holder.into_iter().map(|(at, places)| async move {
            let asked: Vec<&Call<'_>> = places.iter().map(|&place| &calls[place].1).collect();
            let told = terms.within(async { Ok(self.run_at(&at, terms, &asked).await) }).await;
            let told = told.unwrap_or_else(|error| {
                self.doubt();
                vec![Err(error); asked.len()]
            });
            places.into_iter().zip(told)
        });
        for (place, answer) in join_all(nodes).await.into_iter().flatten() {
            answers[place] = answer;
        }
        answers
    }

    /// Runs calls on a node in one round trip. Those that it sends elsewhere follow, each for itself.
    async fn run_at(
        &self,
        at: &Address,
        terms: Terms,
        calls: &[&Call<'_>],
    ) -> Vec<Result<Value, StoreError>> {
        let told = match self.0.pool(at) {
            Ok(pool) => pool.calls(terms, calls).await,
            Err(error) => Err(error),
        };
        let told = match told {
            Ok(told) => told,
            Err(error) => {
                self.doubt();
                return vec![Err(error); calls.len()];
            }
        };
        let followed = told.into_iter().zip(calls).map(|(answer, call)| async move {
            match answer {
                Ok(answer) => Ok(answer),
                Err(error) => self.follow(self.next(&error, at)?, terms, call).await,
            }
        });
        join_all(followed).await
    }

    /// Runs a call where it is to be run, and again where that sends it elsewhere.
    async fn follow(&self, mut step: Step, terms: Terms, call: &Call<'_>) -> Result<Value, StoreError> {
        for _ in 0..=MOST_REDIRECTIONS {
            let called = self.0.pool(&step.at)?.call(terms, call, step.asking).await;
            match called.inspect_err(|_| self.doubt())? {
                Ok(answer) => return Ok(answer),
                Err(error) => step = self.next(&error, &step.at)?,
            }
        }
        Err(StoreError::Refused("nodes that send a call from one to the other".to_owned(), Cause::Busy))
    }

    /// Where a node sends a call that it has not run. The error: nowhere.
    fn next(&self, error: &RedisError, said_by: &Address) -> Result<Step, StoreError> {
        match Redirect::of(error, said_by) {
            Some(Redirect::Moved(slot, at)) => {
                self.0.layout.write().moved(slot, at.clone());
                self.doubt();
                Ok(Step { at, asking: false })
            }
            Some(Redirect::Ask(at)) => Ok(Step { at, asking: true }),
            None => {
                let error = classify(error);
                if matches!(error.cause(), Cause::Connection | Cause::Readonly | Cause::Busy) {
                    self.doubt();
                }
                Err(error)
            }
        }
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
                let slots = Call::from(slots);
                let terms = Terms::new(Lane::Aside, Instant::now() + LAYOUT_TIMEOUT);
                let told = terms.within(pool.call(terms, &slots, false)).await?;
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
        let pool = Pool::to(info, None, self.sizing)?;
        Ok(self.pools.write().entry(address.clone()).or_insert(pool).clone())
    }
}
