//! A fileserver and the service, one of which is killed while the other works.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

mod books;
mod caller;
mod cluster;
mod fileserver_killed;
mod log;
mod partition;
mod service_killed;
mod spender_killed;
