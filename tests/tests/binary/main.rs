//! The built `quota-server`: how it starts, fails, logs, lives through outages of its store, and stops.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

mod configuration;
mod log;
mod names;
mod outage;
mod reload;
mod secrets;
mod starting;
mod stopping;
mod storm;
mod traces;
