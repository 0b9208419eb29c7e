//! What gRPC has beside the quota service: health, reflection, and sessions.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

mod health;
mod reflection;
mod session;
