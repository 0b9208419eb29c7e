//! For fileservers: asks the quota service before an RPC is executed, meters it, and reports what it cost.

mod backoff;
mod builder;
mod client;
mod decision;
mod denial;
mod meter;
mod outage;
mod pending;
mod pool;
mod process;
mod reporter;
mod request;
mod shared;
mod stats;
mod work;

#[cfg(test)]
mod tests;

pub use builder::{BuildError, Builder};
pub use client::Client;
pub use decision::{Admission, Decision};
pub use denial::{Denial, ERROR_DOMAIN, ERROR_REASON};
pub use meter::{ChildMeter, Meter};
pub use quota_core::{Cost, Kind, Resource};
pub use request::Request;
pub use stats::Stats;
