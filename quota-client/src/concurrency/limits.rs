use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::Arc;

use parking_lot::Mutex;
use quota_core::Kind;
use tokio::time::Instant;

use super::adaptive::AdaptiveLimit;
use super::figures::Figures;
use super::latency::Latency;
use super::limiter::{Limiter, Permit};
use super::refusal::Refusal;
use super::rpc_names::check_known;
use super::settings::{InvalidSetting, Per, RpcSettings, SetSettings};
use super::slots::{Key, Slots};
use crate::Request;

/// The concurrency limits of all RPCs. Cheap to clone. [`Client::acquire`](crate::Client::acquire) is how permits are had.
#[derive(Clone, Debug)]
pub(crate) struct Limits(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    rpcs: HashMap<String, Rpc>,
    /// Intervals with an event, by signal.
    events: Mutex<BTreeMap<&'static str, u64>>,
}

#[derive(Debug)]
struct Rpc {
    per: Per,
    exempt_loopback: bool,
    authenticated: Set,
    unauthenticated: Option<Set>,
}

/// One limiter, and what it is told of as.
#[derive(Debug)]
pub(super) struct Set {
    pub(super) limiter: Limiter,
    pub(super) authenticated: bool,
    is_adaptive: bool,
}

impl Limits {
    /// From the settings of each limited RPC. `known` are the names of all RPCs that the guarded services have. Fails
    /// where a setting is impossible, an RPC is limited twice, or one is not known; with the nearest name then.
    pub(crate) fn new(settings: &[RpcSettings], known: &[String]) -> Result<Self, InvalidSetting> {
        let mut rpcs = HashMap::new();
        for rpc in settings {
            check_known(&rpc.key(), &rpc.rpc, known)?;
            if rpcs.insert(rpc.rpc.clone(), Rpc::new(rpc)?).is_some() {
                return Err(InvalidSetting::new(rpc.key(), "is given twice"));
            }
        }
        Ok(Self(Arc::new(Inner { rpcs, events: Mutex::default() })))
    }

    /// Waits until a request may run: at most for the longest wait of the settings of its RPC, and until the deadline.
    ///
    /// A request without a user is an unauthenticated one.
    ///
    /// `None` where it is not limited: nothing is configured for the RPC, the repository or address is not given,
    /// or it comes from this very machine and that is exempt.
    pub(crate) async fn acquire(
        &self,
        request: &Request,
        deadline: Option<Instant>,
    ) -> Result<Option<Permit>, Refusal> {
        let Some(rpc) = self.0.rpcs.get(request.rpc_name()) else { return Ok(None) };
        if rpc.exempt_loopback && request.address().is_some_and(|ip| ip.to_canonical().is_loopback()) {
            return Ok(None);
        }
        // Who comes back is the same user, and asks for the same repository from the same address: one is the key, and the
        // others tell callers of one key apart.
        let [repo, user, ip] = Kind::ALL.map(|kind| request.name(kind));
        let (key, caller) = match rpc.per {
            Per::Repo => (repo, hash(&(user, ip))),
            Per::Ip => (ip, hash(&(user, repo))),
        };
        let Some(key) = key.map(Key::from) else { return Ok(None) };
        let set = match &rpc.unauthenticated {
            Some(stricter) if !request.is_authenticated() => stricter,
            _ => &rpc.authenticated,
        };
        set.limiter.acquire(&key, caller, deadline).await.map(Some)
    }

    /// The figures of each set: of which RPC, whether of authenticated requests, and what.
    pub(crate) fn figures(&self) -> impl Iterator<Item = (&str, bool, Figures)> {
        self.sets().map(|(rpc, set)| (rpc, set.authenticated, set.limiter.figures()))
    }

    /// Whether more is in flight than a limit allows, since it was lowered.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.sets().any(|(_, set)| set.limiter.is_exceeded())
    }

    /// In how many intervals each signal was an event.
    pub(crate) fn backoff_events(&self) -> BTreeMap<&'static str, u64> {
        self.0.events.lock().clone()
    }

    pub(super) fn count_events(&self, signals: impl IntoIterator<Item = &'static str>) {
        let mut events = self.0.events.lock();
        for signal in signals {
            *events.entry(signal).or_default() += 1;
        }
    }

    /// The sets whose limits move.
    pub(super) fn adaptive(&self) -> impl Iterator<Item = (&str, &Set)> {
        self.sets().filter(|(_, set)| set.is_adaptive)
    }

    fn sets(&self) -> impl Iterator<Item = (&str, &Set)> {
        self.0.rpcs.iter().flat_map(|(name, rpc)| {
            let sets = [Some(&rpc.authenticated), rpc.unauthenticated.as_ref()];
            sets.into_iter().flatten().map(|set| (name.as_str(), set))
        })
    }
}

impl Rpc {
    fn new(settings: &RpcSettings) -> Result<Self, InvalidSetting> {
        let (limit, stricter) = settings.check()?;
        let set = |set: &SetSettings, limit: AdaptiveLimit, authenticated| {
            let latency = settings.latency && !limit.is_fixed();
            let latency = latency.then(|| Latency::new(fastrand::f64()));
            let slots = Slots::new(limit, set.max_queue, set.order, latency);
            Set { limiter: Limiter::new(slots, set.max_wait), authenticated, is_adaptive: !limit.is_fixed() }
        };
        Ok(Self {
            per: settings.per,
            exempt_loopback: settings.exempt_loopback,
            authenticated: set(&settings.set, limit, true),
            unauthenticated: settings
                .unauthenticated
                .as_ref()
                .zip(stricter)
                .map(|(settings, limit)| set(settings, limit, false)),
        })
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
