use std::net::IpAddr;
use std::sync::Arc;

use http::HeaderMap;
use quota_core::{Account, Cost, InvalidAccount, Kind, PerKind};
use quota_proto::{Invalid, check_label, v1};

use crate::payers::Payers;
use crate::trace::TraceContext;

/// A piece of work: what is asked for, and who pays.
///
/// Names are given as they are; the service gives each account its one spelling. Name at least one account. A name
/// that the service would not take, such as an empty one, is left out, see [`Stats::invalid`](crate::Stats::invalid), and
/// the rest counts. Limits of concurrency hold for it all the same: requests of a repository whose id is empty are of one
/// repository, and those of a user whose id is empty are without a user. Where there is none, name none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    rpc: Label,
    payers: Arc<Payers>,
    /// Names that the service would not take.
    unsound: PerKind<Option<(String, InvalidAccount)>>,
    class: Label,
    price: Option<Cost>,
    address: Option<IpAddr>,
    trace: TraceContext,
}

/// The name of an RPC or a class. Many requests have the same: it is looked at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Label {
    given: Arc<str>,
    /// As the service takes it: empty, where it would not.
    taken: Arc<str>,
    fault: Option<Invalid>,
}

/// What of a request the service takes.
pub(crate) struct Sound<'a> {
    pub(crate) rpc: &'a Arc<str>,
    pub(crate) class: &'a str,
    price: Option<Cost>,
    /// What is to be reserved beside, for further requests.
    share_wanted: Option<Cost>,
    pub(crate) payers: &'a Arc<Payers>,
    pub(crate) trace: &'a TraceContext,
}

impl Label {
    fn new(field: &str, name: impl Into<Arc<str>>) -> Self {
        let given = name.into();
        match check_label(field, &given) {
            Ok(()) => Self { taken: Arc::clone(&given), given, fault: None },
            Err(fault) => Self { given, taken: Arc::default(), fault: Some(fault) },
        }
    }
}

impl Request {
    /// A request for an RPC, by its full name, such as `/gitaly.SSHService/SSHUploadPack`.
    pub fn rpc(name: impl Into<Arc<str>>) -> Self {
        Self { rpc: Label::new("rpc", name), ..Self::default() }
    }

    /// The repository, by the id that never changes.
    #[must_use]
    pub fn repo(self, id: impl Into<String>) -> Self {
        self.named(Kind::Repo, id.into())
    }

    /// The user, or the key that stands for one.
    #[must_use]
    pub fn user(self, id: impl Into<String>) -> Self {
        self.named(Kind::User, id.into())
    }

    /// The end user's address, never a proxy's.
    #[must_use]
    pub fn ip(mut self, address: IpAddr) -> Self {
        self.address = Some(address);
        self.named(Kind::Ip, address.to_string())
    }

    /// The kind of traffic, such as `interactive`.
    #[must_use]
    pub fn class(mut self, name: impl Into<Arc<str>>) -> Self {
        self.class = Label::new("class", name);
        self
    }

    /// What it is expected to cost; stands before the price table of the service.
    #[must_use]
    pub fn price(mut self, price: Cost) -> Self {
        self.price = Some(price);
        self
    }

    /// The trace that it is a part of, by the headers `traceparent` and `tracestate` (W3C Trace Context): those of the request
    /// that came in, or of a span of the fileserver's own. The question to the service carries them, so that the service's
    /// spans are in the same trace. The [`QuotaLayer`](crate::QuotaLayer) does this where the classifier has not.
    #[must_use]
    pub fn trace(mut self, headers: &HeaderMap) -> Self {
        self.trace = TraceContext::of(headers);
        self
    }

    /// The same, unless it is said already.
    pub(crate) fn trace_unless_said(self, headers: &HeaderMap) -> Self {
        if self.trace.is_none() { self.trace(headers) } else { self }
    }

    fn named(mut self, kind: Kind, id: String) -> Self {
        self.unsound[kind] = Arc::make_mut(&mut self.payers).set(kind, id).err();
        self
    }

    /// What of it the service takes, and the faults of the rest.
    pub(crate) fn sound(&self) -> (Sound<'_>, Vec<Invalid>) {
        let mut faults = Vec::new();
        for label in [&self.rpc, &self.class] {
            if let Some(fault) = &label.fault {
                faults.push(fault.clone());
            }
        }
        for (kind, unsound) in self.unsound.iter() {
            if let Some((_, fault)) = unsound {
                faults.push(Invalid::new(format!("accounts.{kind}"), *fault));
            }
        }
        let (rpc, class, payers) = (&self.rpc.taken, &*self.class.taken, &self.payers);
        (Sound { rpc, class, price: self.price, share_wanted: None, payers, trace: &self.trace }, faults)
    }

    /// What it names of this kind, in its one spelling; as it is where it has none, since it must not go free.
    pub(crate) fn name(&self, kind: Kind) -> Option<&str> {
        let unsound = || self.unsound[kind].as_ref().map(|(name, _)| name.as_str());
        self.payers.account(kind).map(Account::id).or_else(unsound)
    }

    pub(crate) fn rpc_name(&self) -> &str {
        &self.rpc.given
    }

    /// The name of its class, as the service takes it.
    pub(crate) const fn class_name(&self) -> &Arc<str> {
        &self.class.taken
    }

    pub(crate) const fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// Whether a user is known. An empty name is nobody's.
    pub(crate) fn is_authenticated(&self) -> bool {
        self.name(Kind::User).is_some_and(|user| !user.is_empty())
    }
}

impl Sound<'_> {
    /// One that reserves nothing: only a share is asked for.
    pub(crate) fn for_a_share<'a>(
        rpc: &'a Arc<str>,
        payers: &'a Arc<Payers>,
        wanted: Cost,
        trace: &'a TraceContext,
    ) -> Sound<'a> {
        Sound { rpc, class: "", price: Some(Cost::ZERO), share_wanted: Some(wanted), payers, trace }
    }

    /// The RPC whose price in the service's table is its price; none where it brings a price of its own.
    pub(crate) fn priced_by_table(&self) -> Option<&str> {
        self.price.is_none().then_some(&**self.rpc)
    }

    /// What it is expected to cost; `table` is asked where it brings no price of its own.
    pub(crate) fn price_or(&self, table: impl FnOnce(&str) -> Option<Cost>) -> Option<Cost> {
        self.price.or_else(|| table(self.rpc))
    }

    /// It costs no less than this of any resource. Where nothing is known of its price, it goes by the service's table, or
    /// that would never be heard of.
    pub(crate) fn expect(&mut self, least: Cost, table: impl FnOnce(&str) -> Option<Cost>) {
        let Some(known) = self.price_or(table) else { return };
        let missing = least.minus(known);
        if !missing.is_zero() {
            self.price = Some(known.plus(missing));
        }
    }

    pub(crate) fn to_check(&self, node: &str, used_here: v1::UsedHere) -> v1::CheckRequest {
        v1::CheckRequest {
            node: node.to_owned(),
            rpc: self.rpc.as_ref().to_owned(),
            accounts: Some(self.payers.named().clone()),
            class: self.class.to_owned(),
            price: self.price.map(v1::Cost::from),
            used_here: Some(used_here),
            share_wanted: self.share_wanted.map(v1::Cost::from),
        }
    }
}
