//! The wire format of the quota service, package `quota.v1`, and its conversion to and from `quota-core`.

mod convert;
mod invalid;

pub use convert::{accounts, age, resource_standing, wire_amount};
pub use invalid::Invalid;

/// The generated messages, client and server of package `quota.v1`; `quota/v1/*.proto` documents them.
pub mod v1 {
    #![allow(missing_docs, unreachable_pub, clippy::all, clippy::uninlined_format_args)]
    tonic::include_proto!("quota.v1");
}

/// The types of problem documents (RFC 9457) start with this. It names them, and leads nowhere: `.invalid` is nobody's.
pub const PROBLEM_TYPES: &str = "https://quota.invalid/problems/";
