//! What the service does, whichever protocol asks: check, report, standing, backoff, pressure, nodes, overrides.

mod allowances;
mod backoff;
#[cfg(any(fuzzing, test))]
mod bare;
mod callers;
mod changes;
mod check;
mod classes;
mod denials;
mod denied;
mod error;
mod explanation;
mod facts;
#[cfg(any(fuzzing, test))]
pub(crate) mod fuzzing;
mod names;
mod node_limits;
mod nodes;
mod operators;
mod pressure;
mod remaining;
mod report;
mod reservation;
mod retry;
mod sentence;
mod settings;
mod share;
mod standing;
mod steps;
mod top;
mod words;

use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use quota_core::{
    Account, Comparison, Cut, Here, HereUsed, Ipv6Prefix, Limit, Override, PerKind, PerResource, Ratio,
    Snapshot, Subject, Timestamp, Usage, Verdict, WindowLength, decide,
};
use quota_proto::UsedHere;

pub use allowances::Allowances;
pub use backoff::{Backoff, BackoffRequest, MAX_BACKOFFS};
pub use changes::{Change, Changes, Following};
pub use check::{CheckRequest, CheckResponse, Decision};
pub use classes::{AcquireRequest, ClassStanding, RenewRequest, SlotAnswer, slot_owner};
pub use denials::Denials;
pub(crate) use denied::DenialRecord;
pub use denied::{DenialCount, DenialEvent, DenialEvents, DenialReport, DenialsRequest, Listening, Told};
pub use error::QuotaError;
pub use explanation::{AccountLimit, Denial, Explanation};
pub(crate) use facts::FactRecord;
pub use facts::{Finished, PricesRequest, RpcCosts};
pub use names::Label;
pub use node_limits::NodeLimits;
pub use nodes::{NodeCalibration, NodeStanding};
pub(crate) use operators::wire_mode;
pub use operators::{
    ModeRequest, ModeSetting, ModeStanding, Operators, OverrideOrigin, OverrideRequest, OverrideStanding,
    PutMode, PutOverride,
};
pub use pressure::{PressureRequest, Pressured};
pub use remaining::Remaining;
pub use report::{ChargeRequest, ReportRequest, Reported};
pub use reservation::Reservation;
pub use retry::{Jitter, Retry};
pub use sentence::Sentence;
pub use settings::Settings;
pub use share::Share;
pub use standing::{Standing, StandingRequest};
pub(crate) use top::Consumers;
pub use top::{Consumer, Top, TopRequest};
pub use words::denial_in_words;
pub(crate) use words::{limit_in_words, override_in_words};

use self::node_limits::node_limit;
use self::operators::Overriding;
use crate::metrics::Metrics;
use crate::shown::Shown;
use crate::store::{Limited, Snapshots, Store};

/// An account of a request, and what it is compared with.
struct Compared {
    account: Account,
    comparisons: PerResource<Comparison>,
    /// The limits of its own that it has on the node.
    cuts: PerResource<Option<Cut>>,
    /// What an operator says of it.
    overriding: Option<Arc<Overriding>>,
}

/// An account of a request, to be judged.
struct Judged {
    subject: Subject,
    cuts: PerResource<Option<Cut>>,
    overriding: Option<Arc<Overriding>>,
}

/// The service: its settings, and what it counts with.
pub struct Quota {
    /// Where usage is kept.
    pub store: Arc<dyn Store>,
    /// What may change while the server runs: see [`Quota::settings`].
    pub settings: RwLock<Arc<Settings>>,
    /// The limits of the nodes, as far as they are known.
    pub nodes: NodeLimits,
    /// What operators say, as far as it is known.
    pub operators: Operators,
    /// Those who follow what changes of both.
    pub changes: Changes,
    /// How long cost counts.
    pub window: WindowLength,
    /// How IPv6 addresses are grouped.
    pub ipv6_prefix: Ipv6Prefix,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// What is said of denials in the log.
    pub denials: Arc<Denials>,
    /// What was denied in the last hours.
    pub(crate) record: Mutex<DenialRecord>,
    /// Those who follow denials.
    pub denial_events: DenialEvents,
    /// What requests cost lately.
    pub(crate) facts: Mutex<FactRecord>,
    /// How accounts are named in the log.
    pub shown: Arc<Shown>,
    /// Who consumed most lately.
    pub(crate) consumers: Consumers,
    /// What fileservers may still charge.
    pub allowances: Allowances,
    /// How answers that name a wait are spread.
    pub jitter: Jitter,
}

impl Quota {
    /// Reads what other servers may have changed: the limits of the nodes, and what operators say.
    pub async fn refresh(&self) {
        // What failed is counted and logged by the store, and tried again soon.
        let _ = tokio::join!(self.refresh_nodes(), self.refresh_operators());
    }

    /// What accounts are compared with on a node; `used` tells what they used there, else the node's last report.
    /// A request may use `part` of each limit.
    fn compare(&self, accounts: &[Account], node: &Label, used: &UsedHere, part: Ratio) -> Vec<Compared> {
        let settings = self.settings();
        let in_force = self.operators.in_force();
        let most = PerKind::from_fn(|kind| in_force.switch.most(kind, node.as_deref()));
        let node = self.nodes.get(node.as_deref());
        let node = node.as_deref();
        let compared = accounts.iter().map(|account| {
            let kind = account.kind();
            let cuts =
                PerResource::from_fn(|resource| node.and_then(|node| node.cut(account, resource)).copied());
            let overriding = in_force.of(account);
            let comparisons = PerResource::from_fn(|resource| {
                let of_kind = settings.policy.ceilings(kind)[resource];
                let limit_here = |of_node| match (&cuts[resource], overriding) {
                    (Some(cut), _) => Limit::At(cut.limit),
                    (None, Some(said)) => said.word.on_node(resource, of_node, of_kind.limit),
                    (None, None) => of_node,
                };
                let used_here = || match used[kind][resource] {
                    Some(used) => HereUsed::Told(used),
                    None => node
                        .and_then(|node| node.used(account, resource, self.window))
                        .map_or(HereUsed::Unknown, HereUsed::Reported),
                };
                let ceiling = overriding.map_or(of_kind, |said| said.word.ceiling(resource, of_kind));
                let comparison = Comparison {
                    ceiling: ceiling.at_most(most[kind]),
                    here: node_limit(&settings.policy, node, kind, resource)
                        .map(|of_node| Here { limit: limit_here(of_node), used: used_here() }),
                };
                comparison.part(part)
            });
            Compared { account: account.clone(), comparisons, cuts, overriding: overriding.cloned() }
        });
        compared.collect()
    }

    fn judged(compared: Vec<Compared>, snapshots: Snapshots) -> Vec<Judged> {
        let told = compared.into_iter().zip(snapshots.accounts);
        told.map(|(compared, snapshot)| compared.judged(snapshot)).collect()
    }

    /// Those whom an operator has blocked, and the moment as of which that is known: they are refused without the store, too.
    fn blocked(&self, compared: Vec<Compared>) -> (Vec<Judged>, Timestamp) {
        let is_blocked = |compared: &Compared| {
            compared.overriding.as_ref().is_some_and(|said| said.word == Override::Blocked)
        };
        let unknown = || Snapshot::Below(Usage::default());
        let blocked = compared.into_iter().filter(is_blocked).map(|compared| compared.judged(unknown()));
        (blocked.collect(), self.operators.known_at())
    }

    fn verdict(&self, judged: &[Judged], now: Timestamp) -> Verdict {
        decide(judged.iter().map(|judged| &judged.subject), now, self.window)
    }
}

impl Compared {
    fn judged(self, snapshot: Snapshot) -> Judged {
        let Self { account, comparisons, cuts, overriding } = self;
        let until = overriding.as_ref().and_then(|said| said.until);
        Judged { subject: Subject { account, comparisons, until, snapshot }, cuts, overriding }
    }
}

impl From<&Compared> for Limited {
    fn from(compared: &Compared) -> Self {
        Self {
            account: compared.account.clone(),
            bounds: compared.comparisons.map(|comparison| comparison.bound()),
        }
    }
}

#[cfg(test)]
mod tests;
