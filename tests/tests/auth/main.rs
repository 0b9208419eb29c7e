//! Who may ask what, over both protocols.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

mod authors;
mod charges;
mod client;
mod grpc;
mod nodes;
mod roles;
mod rotation;
mod secrets;
mod tls;
mod tokens;
