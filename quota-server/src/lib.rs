//! The quota service: gRPC and HTTP in front of a store of usage, in memory or in Redis.
//!
//! [`config`] is what an operator sets, [`auth`] who may ask, [`store`] where usage is kept, [`quota`] what the service does; `http` and
//! `grpc` say it in their protocols, and [`Server`] puts all of it together. [`logging`] is for the process that it is in.

mod accept;
pub mod auth;
mod author;
pub mod config;
mod descriptors;
mod files;
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
mod grpc;
mod history;
mod http;
mod large;
pub mod logging;
pub mod metrics;
mod places;
pub mod quota;
mod readiness;
mod reload;
mod safety;
mod secret;
mod server;
pub mod shown;
pub mod store;
mod tls;
mod trace;

use std::time::Duration;

pub use server::{Server, StartError};
pub use tls::TlsError;

/// The largest request, in bytes: a report of 1,024 charges with the longest names fits.
const MAX_BODY_BYTES: usize = 4 << 20;

/// The longest that a request may take, its body's way over the network included.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
