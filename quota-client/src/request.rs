use std::net::IpAddr;

use quota_core::{Accounts, Cost, Ipv6Prefix};
use quota_proto::{Invalid, v1};

/// The longest name of an RPC or node, in bytes.
pub(crate) const MAX_LABEL_BYTES: usize = 256;

/// The longest name of a class of traffic, in bytes.
const MAX_CLASS_BYTES: usize = 64;

/// A piece of work: what is asked for, and who pays.
///
/// Names are given as they are; the service gives each account its one spelling. Name at least one account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    rpc: String,
    accounts: v1::Accounts,
    class: String,
    price: Option<Cost>,
}

impl Request {
    /// A request for an RPC, by its full name, such as `/gitaly.SSHService/SSHUploadPack`.
    pub fn rpc(name: impl Into<String>) -> Self {
        Self { rpc: name.into(), ..Self::default() }
    }

    /// The repository, by the id that never changes.
    #[must_use]
    pub fn repo(mut self, id: impl Into<String>) -> Self {
        self.accounts.repo = Some(id.into());
        self
    }

    /// The user, or the key that stands for one.
    #[must_use]
    pub fn user(mut self, id: impl Into<String>) -> Self {
        self.accounts.user = Some(id.into());
        self
    }

    /// The end user's address, never a proxy's.
    #[must_use]
    pub fn ip(mut self, address: IpAddr) -> Self {
        self.accounts.ip = Some(address.to_string());
        self
    }

    /// The kind of traffic, such as `interactive`.
    #[must_use]
    pub fn class(mut self, name: impl Into<String>) -> Self {
        self.class = name.into();
        self
    }

    /// What it is expected to cost; stands before the price table of the service.
    #[must_use]
    pub fn price(mut self, price: Cost) -> Self {
        self.price = Some(price);
        self
    }

    /// Whether the service would take it. One request that it refuses would spoil every report that has a charge
    /// for the same accounts, so none is sent.
    pub(crate) fn validate(&self) -> Result<(), Invalid> {
        let Self { rpc, accounts: v1::Accounts { repo, user, ip }, class, price: _ } = self;
        at_most("rpc", rpc, MAX_LABEL_BYTES)?;
        at_most("class", class, MAX_CLASS_BYTES)?;
        Accounts::new(repo.as_deref(), user.as_deref(), ip.as_deref(), Ipv6Prefix::default()).map_err(
            |(kind, error)| match kind {
                Some(kind) => Invalid::new(format!("accounts.{kind}"), error),
                None => Invalid::new("accounts", "must name a repo, a user or an ip"),
            },
        )?;
        Ok(())
    }

    pub(crate) const fn accounts(&self) -> &v1::Accounts {
        &self.accounts
    }

    pub(crate) fn to_check(&self, node: &str) -> v1::CheckRequest {
        v1::CheckRequest {
            node: node.to_owned(),
            rpc: self.rpc.clone(),
            accounts: Some(self.accounts.clone()),
            class: self.class.clone(),
            price: self.price.map(v1::Cost::from),
        }
    }
}

fn at_most(field: &str, text: &str, bytes: usize) -> Result<(), Invalid> {
    if text.len() > bytes {
        return Err(Invalid::new(field, format!("must be at most {bytes} bytes")));
    }
    Ok(())
}
