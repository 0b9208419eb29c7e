//! The decisions of the quota service, as plain functions on plain values.
//!
//! Nothing here does I/O, awaits, or reads a clock: the time of the store arrives as an argument.
//! The stores (memory and Redis) and the client build on these types; the Lua scripts repeat
//! [`Ledger`]'s arithmetic inside Redis, and a model test keeps the two equal.

pub mod account;
mod adapt;
mod allowance;
mod book;
mod cost;
mod decision;
mod heaviest;
mod histogram;
#[cfg(feature = "keys")]
mod key;
mod ledger;
mod limit;
mod marks;
mod node;
mod overrides;
mod ratio;
mod resource;
mod slots;
mod switch;
mod time;
mod window;

pub use account::{Account, Accounts, InvalidAccount, Ipv6Prefix, Kind, PerKind};
pub use adapt::{
    Adaptation, Adaptations, Blame, Blamed, Calibration, Controller, Cut, Cuts, Load, Observation, Observed,
    Range, Reason, Rule, Spending,
};
pub use allowance::Allowance;
pub use book::{Book, Said, Word};
pub use cost::{Cost, InvalidCost};
pub use decision::{Breach, Comparison, Here, HereUsed, Scope, Snapshot, Subject, Verdict, decide};
pub use heaviest::{Heaviest, Kept, Lately, Slices};
pub use histogram::Histogram;
pub use ledger::{Charge, Ledger, Release, Settled, admit};
pub use limit::{Bound, Limit, Mode};
pub use marks::{Mark, Marks, Source};
#[cfg(feature = "keys")]
pub use node::node_key;
pub use node::{NodeReport, NodeState, Used};
pub use overrides::{InvalidWeight, Override, Weight};
pub use ratio::{InvalidRatio, Ratio};
pub use resource::{PerResource, Resource};
pub use slots::{
    Adaptive, Cap, LeaseId, Leased, NoSlot, Owner, Progress, Renewal, SlotStanding, SlotTerms, Slots, Wanted,
};
pub use switch::{Place, Switch};
pub use time::{BUCKETS, Tick, Timestamp, WindowLength};
pub use window::{BUCKET_CAP, Bucket, Usage, Window};
