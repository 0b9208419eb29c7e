//! For fileservers: asks the quota service before an RPC is executed, meters it, and reports what it cost.
//!
//! ```no_run
//! use std::net::IpAddr;
//! use std::time::Duration;
//!
//! use quota_client::{Client, Decision, Request};
//!
//! # async fn run(token: String, ip: IpAddr, pid: u32) -> Result<(), Box<dyn std::error::Error>> {
//! let quota = Client::builder()
//!     .endpoints(["http://quota-1:8081", "http://quota-2:8081"])
//!     .node("gitaly-01")
//!     .token(token)
//!     .deadline(Duration::from_millis(100))
//!     .build()?;
//!
//! let request = Request::rpc("/gitaly.SSHService/SSHUploadPack")
//!     .repo("project-42")
//!     .user("user-7")
//!     .ip(ip)
//!     .class("interactive");
//! match quota.admit(&request).await {
//!     Decision::Allow(admission) => {
//!         let meter = admission.meter();
//!         let child = meter.child(pid);
//!         meter.sent(1024);
//!         // The user and system time of the child's own wait status.
//!         child.ended(Duration::from_millis(30));
//!         // Settled when the admission and its meters are dropped.
//!     }
//!     Decision::Deny(denial) => {
//!         let _status: tonic::Status = denial.into(); // or http::Response<String>
//!     }
//! }
//! quota.shutdown(Duration::from_secs(5)).await;
//! # Ok(())
//! # }
//! ```
//!
//! Or for all the RPCs of a tonic or axum server at once:
//!
//! ```no_run
//! use http::request::Parts;
//! use quota_client::{Classification, Client, QuotaLayer, Request};
//!
//! # fn server(quota: Client) {
//! fn classify(request: &Parts) -> Classification {
//!     match request.uri.path() {
//!         "/grpc.health.v1.Health/Check" => Classification::Skip,
//!         // What belongs to an admitted RPC is metered, and never refused half-way.
//!         rpc @ "/gitaly.HookService/PackObjectsHookWithSidechannel" => {
//!             Classification::MeterOnly(Request::rpc(rpc).repo("project-42"))
//!         }
//!         rpc => Classification::Check(Request::rpc(rpc).repo("project-42")),
//!     }
//! }
//! let server = tonic::transport::Server::builder().layer(QuotaLayer::new(quota, classify));
//! # let _ = server;
//! # }
//! ```
//!
//! What protects the machine comes with it, and is set in [`Settings`]: how many requests of an RPC may run at once, for
//! each repository or address ([`RpcSettings`]); how such limits follow the pressure on the machine
//! ([`PressureSettings`], [`Calibration`]); and when what runs is ended ([`SheddingSettings`]). The layer takes permits,
//! and so can a handler, by [`Client::acquire`]. Figures go to the recorder of the facade `metrics`. docs/fileserver.md
//! shows how to adopt all of it, and has every setting and every metric.
//!
//! # What it promises
//!
//! - [`Client::admit`] answers within the deadline. Where no endpoint answers, or the service has lost its store, the
//!   limits that it last told are enforced on what is used on this fileserver; where none are known yet, the request is
//!   allowed. [`Admission::checked`] says so, [`Stats`] count it, and one line in the log tells where the outage began and
//!   one where it ended. A quota service that is away takes nothing down, and opens nothing wide.
//! - A refusal is remembered until it can end: requests of that account are refused without asking, but for one a second.
//! - Where the service says that it cannot check and is set to refuse then (`store.fail = "closed"`), the request is
//!   refused: [`Cause::Unavailable`].
//! - A question is never sent twice, since each may have reserved something. Another endpoint is asked only where
//!   there was no connection to send it over.
//! - What is consumed is charged once an interval while the work goes on, and the rest when it has ended, however it
//!   ended. It counts once: a report is sent again unchanged until it is acknowledged or a minute old.
//! - A permit is released exactly once, on every way out; a caller who has gone, or whose deadline has passed, is never
//!   started. A lowered limit ends nothing by itself. Queues, and the wait in them, are bounded.
//! - A request of a [class](Request::class) that has a cap on the service runs in a slot of its class, for which it waits as the class
//!   says; slots are leased in blocks, so that most requests ask nobody. What had no slot is refused: [`Cause::NoSlot`]. Once a
//!   lease has ended, nothing begins by it.
//! - Memory is bounded: at most 10,240 charges wait, none older than a minute, and what is given up is counted.
//!
//! - Each second it tells how loaded the machine is, by the limits of this process's cgroups, and what the heaviest
//!   accounts used on it: the fileserver's limits follow. [`Client::pressure`] tells the same, for a gauge. What an
//!   account used on this fileserver goes with each question, since those limits are compared with it. So a fileserver
//!   that is named has one client: one that is several processes would tell a part each.
//!
//! # What it meters
//!
//! - CPU: user and system time of [child processes](Meter::child), sampled while they run and from their wait status when
//!   they end, or of all that ran in a [cgroup of the request](Meter::cgroup), exactly. No more is charged of it than all
//!   processors can have given, and a tenth: [`Stats::cost_clamped`]. What this process spent itself is the caller's to
//!   [tell](Meter::cpu).
//! - Memory: anonymous memory of the same, sampled once an interval, in bytes times seconds.
//! - Network: the bytes of both bodies, where the [`QuotaLayer`] wraps them, or what is [told](Meter::sent).

mod backoff;
mod builder;
mod cgroup;
mod checks;
mod classes;
mod client;
mod concurrency;
mod credential;
mod decision;
mod denial;
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
mod guard;
mod layer;
mod local;
mod meter;
mod metrics;
mod outage;
mod payers;
mod pending;
mod pool;
mod pressure;
mod process;
mod refusals;
mod reporter;
mod request;
mod reserved;
mod session;
mod settings;
mod shared;
mod shed;
mod stats;
mod status;
mod trace;
mod usage;
mod work;

#[cfg(test)]
mod tests;

/// The code of the page is compiled.
#[cfg(doctest)]
#[doc = include_str!("../../docs/fileserver.md")]
struct Page;

pub use builder::{BuildError, Builder};
pub use cgroup::{CgroupSettings, RequestCgroup, RequestCgroups};
pub use checks::{CheckMode, CheckSettings};
pub use classes::{NoSlot, NoSlotReason, Slot};
pub use client::Client;
pub use concurrency::{
    Calibration, InvalidDescriptor, InvalidSetting, LimitSettings, Order, Per, Permit, Reason, Refusal,
    RpcSettings, SetSettings, rpc_names,
};
pub use decision::{Admission, Decision};
pub use denial::{CONCURRENCY_LIMIT, Cause, Denial, ERROR_REASON, NO_SLOT, OverQuota, SHED};
pub use layer::{Classification, MeteredBody, Quota, QuotaLayer, ResponseBody};
pub use meter::{ChildMeter, Meter};
pub use pressure::{
    InvalidSettings as InvalidPressureSettings, Reading as PressureReading, Sample as PressureSample,
    Settings as PressureSettings, Signal as PressureSignal,
};
pub use quota_core::{Account, Cost, InvalidAccount, Ipv6Prefix, Kind, Resource};
pub use quota_proto::{ERROR_DOMAIN, STORE_UNAVAILABLE};
pub use request::Request;
pub use settings::Settings;
pub use shed::{SheddingMode, SheddingSettings};
pub use stats::Stats;
