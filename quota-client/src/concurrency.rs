//! Limits how many requests run at once: per RPC and repository, or per RPC and address.
//!
//! What is over the limit waits in a bounded queue, for a bounded time; what is over that is refused at once, with
//! a wait that is kept ([`pace`]). Adaptive limits follow the pressure of the machine and the latency of their own
//! RPC ([`calibrator`]).

mod adaptive;
pub(crate) mod calibrator;
pub(crate) mod figures;
mod latency;
mod limiter;
mod limits;
mod pace;
mod refusal;
mod rpc_names;
mod settings;
mod slots;

#[cfg(test)]
mod tests;

pub use limiter::Permit;
pub(crate) use limits::Limits;
pub use refusal::{Reason, Refusal};
pub use rpc_names::{InvalidDescriptor, rpc_names};
pub use settings::{Calibration, InvalidSetting, LimitSettings, Order, Per, RpcSettings, SetSettings};
