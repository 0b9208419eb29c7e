//! Mixed versions: clients and servers of the earlier wire format work together with the present ones.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

mod http;
mod old_client;
mod old_server;
mod structure;

/// What `compatibility/quota-0001.proto` generates.
mod old {
    #![allow(missing_docs, unreachable_pub, dead_code, clippy::all, clippy::uninlined_format_args)]
    tonic::include_proto!("quota.v1");
}
