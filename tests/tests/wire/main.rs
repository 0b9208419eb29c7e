//! HTTP and gRPC say the same: one table of cases, run through each protocol, on each store.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

mod answer;
mod case;
mod cases;
mod drive_grpc;
mod drive_http;
mod only_grpc;
mod only_http;
mod request;
