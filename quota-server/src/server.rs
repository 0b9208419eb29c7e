use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use tokio_stream::wrappers::ReceiverStream;

use crate::accept::Incoming;
use crate::auth::{Auth, Known, TokenFileError};
use crate::config::{Config, Listen, Loaded, Shutdown, Source, StoreUrl};
use crate::history::{self, History};
use crate::large::Large;
use crate::metrics::Metrics;
use crate::quota::{
    Allowances, Changes, Consumers, DenialEvents, Denials, Jitter, NodeLimits, Operators, Quota, Settings,
};
use crate::readiness::{Readiness, StoreKind};
use crate::reload::{Decider, Files, Reloader};
use crate::shown::{LogKeyError, Shown};
use crate::store::{Cause, Clock, Measured, MemoryStore, RedisStore, Scripts, Store, StoreError};
use crate::tls::{Door, Protocol, Tls, TlsError, admit_all};
use crate::{REQUEST_TIMEOUT, descriptors, grpc, http};

/// How often the limits of the nodes and what operators say are read. With the store's answer it stays below the 500 ms in
/// which a step must be known to every server.
const REFRESH_INTERVAL: Duration = Duration::from_millis(400);

/// How often the store is looked at for those who follow whether the server is ready.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// How often files of tokens and certificates are read again: new ones are in force within this time.
const REREAD_INTERVAL: Duration = Duration::from_secs(1);

/// The most connections that have come in and that gRPC has not taken yet.
const MAX_ADMITTED: usize = 16;

/// How often other servers on the store are told what this one saw.
const POST_INTERVAL: Duration = Duration::from_secs(1);

/// How often is looked whether the store may lose what it holds.
const SAFETY_INTERVAL: Duration = Duration::from_secs(60);

/// The most gRPC calls of a connection that broke the protocol, and that it is still known of: then it is ended.
const MAX_BROKEN_STREAMS: usize = 1024;

/// The largest headers of a gRPC call, in bytes: many times those of the longest token.
const MAX_HEADERS_BYTES: u32 = 16 << 10;

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address is taken, or not this machine's.
    #[error("{setting} = {address}: cannot listen: {reason}")]
    Listen {
        /// The setting.
        setting: &'static str,
        /// Its value.
        address: SocketAddr,
        /// What the system says.
        reason: std::io::Error,
    },
    /// The store refuses for a reason that waiting does not mend.
    #[error("store.url = {url}: {reason}")]
    Store {
        /// Where it is, without the password.
        url: String,
        /// What it says.
        reason: StoreError,
    },
    /// The metrics contradict each other.
    #[error("metrics: {0}")]
    Metrics(#[from] prometheus::Error),
    /// The file of a token gives none.
    #[error(transparent)]
    Token(#[from] TokenFileError),
    /// TLS cannot be spoken with its files.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Names cannot be hashed in the log as they are to be.
    #[error(transparent)]
    LogKey(#[from] LogKeyError),
    /// Of something that is served, nobody has said who may ask for it.
    #[error("{0} has no entry in the table of who may ask what")]
    Access(String),
    /// What gRPC's reflection is to tell is incomplete.
    #[error("reflection: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
}

/// A server that runs until it is stopped.
pub struct Server {
    http: SocketAddr,
    grpc: SocketAddr,
    readiness: Arc<Readiness>,
    stop: watch::Sender<bool>,
    serving: JoinSet<()>,
    /// What is done at intervals; ends with the server.
    upkeep: JoinSet<()>,
    decider: Decider,
    reload: Arc<Notify>,
    shutdown: Shutdown,
}

impl Server {
    /// Looks whether the files that a configuration names are as they must be.
    pub fn check(config: &Config) -> Result<(), StartError> {
        Known::open(&config.auth)?;
        Shown::open(&config.log)?;
        config.tls.as_ref().map(Tls::open).transpose()?;
        Ok(())
    }

    /// Listens, and answers from then on.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let auth = Arc::new(Auth::new(Known::open(&config.auth)?));
        let tls = config.tls.as_ref().map(Tls::open).transpose()?.map(Arc::new);
        let shown = Arc::new(Shown::open(&config.log)?);
        let metrics = Arc::new(Metrics::new(&config)?);
        let (mut serving, mut upkeep) = (JoinSet::new(), JoinSet::new());
        let (store, kind) = open_store(&config, &metrics, &shown, &mut upkeep).await?;
        tracing::info!(store = kind.name(), url = %config.store.url, "{}", kind.detail());

        let denials = Arc::new(Denials::new(Arc::clone(&shown)));
        let summing = Arc::clone(&denials);
        upkeep.spawn(every(Duration::from_secs(1), move || summing.sum_up()));
        let quota = Arc::new(Quota {
            store,
            settings: RwLock::new(Arc::new(Settings::from(&config))),
            nodes: NodeLimits::default(),
            operators: Operators::new(&config.overrides),
            changes: Changes::default(),
            window: config.window,
            ipv6_prefix: config.ip.ipv6_prefix,
            metrics,
            denials,
            record: Mutex::default(),
            facts: Mutex::default(),
            shown,
            denial_events: DenialEvents::default(),
            consumers: Consumers::new(config.window),
            allowances: Allowances::default(),
            jitter: Jitter::default(),
        });
        // Before the first check: a node's limits may be lower than those of a node that is not known, and who asks be
        // blocked.
        quota.refresh().await;
        upkeep.spawn(keep_fresh(Arc::clone(&quota)));
        if kind == StoreKind::Redis {
            upkeep.spawn(post(Arc::clone(&quota)));
        }
        let readiness = Arc::new(Readiness::new(Arc::clone(&quota.store), kind));
        upkeep.spawn(refresh_readiness(Arc::clone(&readiness)));
        readiness.look_at_safety(&quota.metrics).await;
        upkeep.spawn(watch_safety(Arc::clone(&readiness), Arc::clone(&quota.metrics)));

        descriptors::raise(config.http.connections.most + config.grpc.connections.most);
        let http = listen("http.listen", config.http.listen).await?;
        let grpc = listen("grpc.listen", config.grpc.listen).await?;
        let (http_address, grpc_address) = (local("http.listen", &http)?, local("grpc.listen", &grpc)?);
        let (stop, stopping) = watch::channel(false);

        let history = Arc::new(History::default());
        let (looking, looked) = (Arc::clone(&quota), Arc::clone(&history));
        upkeep.spawn(every(history::EVERY, move || looked.add(looking.nodes.look())));
        let files = Files { auth: Arc::clone(&auth), tls: tls.clone() };
        upkeep.spawn(reread(files.clone()));
        let decider = Decider { quota: Arc::clone(&quota), files };
        let door =
            |protocol, listen: &Listen| Door { tls: tls.clone(), protocol, connections: listen.connections };
        let metrics = Arc::clone(&quota.metrics);
        let incoming = |listener, protocol: Protocol, listen: &Listen| {
            let refused = metrics.connections_refused(protocol);
            Incoming::new(listener, &listen.connections, config.ip.ipv6_prefix, refused)
        };
        let (traced, large) = (config.trace.is_some(), Large::default());
        let router = http::router(
            Arc::clone(&quota),
            Arc::clone(&readiness),
            Arc::clone(&auth),
            history,
            large.clone(),
            traced,
        )?;
        serving.spawn(http::serve(
            incoming(http, Protocol::Http, &config.http),
            door(Protocol::Http, &config.http),
            router,
            stopped(stopping.clone()),
        ));
        let (admitted, taken) = mpsc::channel(MAX_ADMITTED);
        serving.spawn(admit_all(
            incoming(grpc, Protocol::Grpc, &config.grpc),
            door(Protocol::Grpc, &config.grpc),
            admitted,
            stopped(stopping.clone()),
        ));
        let half_idle = config.grpc.connections.idle / 2;
        let grpc = tonic::transport::Server::builder()
            .timeout(REQUEST_TIMEOUT)
            .http2_keepalive_interval(Some(half_idle))
            .http2_keepalive_timeout(Some(half_idle))
            .max_concurrent_streams(config.max_streams)
            .http2_max_header_list_size(MAX_HEADERS_BYTES)
            // Callers of a fileserver that go away cancel their checks. Unless set, 20 of them before they are read end the
            // connection, and with it the checks of all others. Each that waits is 5 KB.
            .http2_max_pending_accept_reset_streams(usize::try_from(config.max_streams).ok())
            .http2_max_local_error_reset_streams(Some(MAX_BROKEN_STREAMS))
            .add_routes(grpc::routes(quota, Arc::clone(&readiness), Arc::clone(&auth), large, traced)?)
            .serve_with_incoming_shutdown(ReceiverStream::new(taken), stopped(stopping));
        serving.spawn(async move {
            if let Err(error) = grpc.await {
                tracing::error!(%error, "gRPC stopped");
            }
        });
        tracing::info!(http = %http_address, grpc = %grpc_address, tls = config.tls.is_some(), "listening");
        Ok(Self {
            http: http_address,
            grpc: grpc_address,
            readiness,
            stop,
            serving,
            upkeep,
            decider,
            reload: Arc::default(),
            shutdown: config.shutdown,
        })
    }

    /// From now on looks whether the file of its settings changes, and is guided by it. `running` are those that it was started
    /// with.
    pub fn follow(&mut self, source: Source, running: Loaded) {
        let reloader = Reloader::new(source, running, self.decider.clone());
        self.upkeep.spawn(reloader.run(Arc::clone(&self.reload)));
    }

    /// Makes it read the file of its settings now, and those of tokens and certificates.
    pub fn reload(&self) {
        self.reload.notify_one();
    }

    /// Where HTTP is answered.
    pub const fn http_address(&self) -> SocketAddr {
        self.http
    }

    /// Where gRPC is answered.
    pub const fn grpc_address(&self) -> SocketAddr {
        self.grpc
    }

    /// Says that it is not ready and goes on for `shutdown.drain`; then takes no more requests, lets those in flight
    /// end, and cuts off what takes longer than `shutdown.grace`.
    pub async fn stop(mut self) {
        self.readiness.drain();
        tokio::time::sleep(self.shutdown.drain).await;
        self.readiness.end();
        self.stop.send_replace(true);
        let drained = async { while self.serving.join_next().await.is_some() {} };
        if tokio::time::timeout(self.shutdown.grace, drained).await.is_err() {
            tracing::warn!(grace = ?self.shutdown.grace, "requests in flight were cut off");
        }
        self.serving.shutdown().await;
    }
}

async fn open_store(
    config: &Config,
    metrics: &Arc<Metrics>,
    shown: &Arc<Shown>,
    upkeep: &mut JoinSet<()>,
) -> Result<(Arc<dyn Store>, StoreKind), StartError> {
    match &config.store.url {
        StoreUrl::Memory => {
            let store =
                Arc::new(MemoryStore::new(config.window, config.store.max_accounts, Clock::machine()));
            let sweeping = Arc::clone(&store);
            upkeep.spawn(every(config.window.length(), move || sweeping.drop_idle()));
            Ok((Arc::new(Measured::new(store, Arc::clone(metrics), Arc::clone(shown))), StoreKind::Memory))
        }
        StoreUrl::Redis(url) => {
            let store = RedisStore::new(&config.store, url, config.window, Scripts::default());
            let refused = |reason| StartError::Store { url: url.to_string(), reason };
            let store = store.map_err(refused)?;
            // Boxed, since what waits for it nests so deeply that the compiler gives up where a start is nested further.
            match Box::pin(store.connect()).await {
                Ok(()) => {}
                // It may be on its way up, as this server is.
                Err(error) if matches!(error.cause(), Cause::Connection | Cause::Busy | Cause::Timeout) => {
                    tracing::warn!(%url, %error, "starting without the store");
                }
                Err(error) => return Err(refused(error)),
            }
            Ok((
                Arc::new(Measured::new(Arc::new(store), Arc::clone(metrics), Arc::clone(shown))),
                StoreKind::Redis,
            ))
        }
    }
}

async fn listen(setting: &'static str, address: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(address).await.map_err(|reason| StartError::Listen { setting, address, reason })
}

fn local(setting: &'static str, listener: &TcpListener) -> Result<SocketAddr, StartError> {
    listener.local_addr().map_err(|reason| StartError::Listen {
        setting,
        address: ([0; 4], 0).into(),
        reason,
    })
}

async fn stopped(mut stopping: watch::Receiver<bool>) {
    // An error means that the server is gone, which is a reason to stop too.
    let _ = stopping.wait_for(|stop| *stop).await;
}

/// Keeps what other servers change up to date.
async fn keep_fresh(quota: Arc<Quota>) {
    loop {
        tokio::time::sleep(REFRESH_INTERVAL).await;
        quota.refresh().await;
    }
}

/// Tells other servers on the store what this one saw.
async fn post(quota: Arc<Quota>) {
    loop {
        tokio::time::sleep(POST_INTERVAL).await;
        quota.post_top().await;
        quota.post_denials().await;
    }
}

/// Looks for those who follow whether the server is ready.
async fn refresh_readiness(readiness: Arc<Readiness>) {
    loop {
        tokio::time::sleep(PROBE_INTERVAL).await;
        readiness.refresh().await;
    }
}

/// Reads the files of tokens and certificates anew.
async fn reread(files: Files) {
    loop {
        tokio::time::sleep(REREAD_INTERVAL).await;
        files.reread().await;
    }
}

/// Looks whether the store may lose what it holds.
async fn watch_safety(readiness: Arc<Readiness>, metrics: Arc<Metrics>) {
    loop {
        tokio::time::sleep(SAFETY_INTERVAL).await;
        readiness.look_at_safety(&metrics).await;
    }
}

/// Does something again and again; what takes longer than the interval is not made up for.
async fn every(interval: Duration, mut act: impl FnMut() + Send) {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        act();
    }
}
