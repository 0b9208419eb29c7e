//! Input that nobody should send: each is refused with a clear answer or does what the documentation says, changes
//! nothing for others, and leaves the server standing.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

mod addresses;
mod bodies;
mod connections;
mod frames;
mod large;
mod messages;
mod metrics;
mod names;
mod numbers;
mod reservations;
mod retry;
mod slow;
mod streams;
mod victim;
