//! The wire format of the quota service, package `quota.v1`, and its conversion to and from `quota-core`.

mod codec;
mod convert;
mod invalid;
mod label;

pub use codec::{BoundedCodec, BoundedDecoder};
pub use convert::{
    CAPACITY_BOUNDS, ONE_WORD, UsedHere, account_limit, accounts, age, bound_heaviest, check_heaviest,
    comparisons, duration, limit, node_report, override_word, resource_standing, used_here, wire_active,
    wire_amount, wire_capacity, wire_limits, wire_override_word, wire_pressure, wire_report,
};
pub use invalid::Invalid;
pub use label::{MAX_LABEL_BYTES, check_label};

/// The generated messages, client and server of package `quota.v1`; `quota/v1/*.proto` documents them.
pub mod v1 {
    #![allow(missing_docs, unreachable_pub, clippy::all, clippy::uninlined_format_args)]
    include!("generated/quota.v1.rs");
}

/// The same as a `google.protobuf.FileDescriptorSet`, with what it imports: for those who ask the server what it speaks.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("generated/quota.v1.bin");

/// The domain of `google.rpc.ErrorInfo` in the service's errors, and in refusals made of its answers.
pub const ERROR_DOMAIN: &str = "quota.v1";

/// The reason in `google.rpc.ErrorInfo` where the store is lost and the service is set to refuse what it cannot check.
pub const STORE_UNAVAILABLE: &str = "STORE_UNAVAILABLE";

/// The reason in `google.rpc.ErrorInfo` where what is stored of an account cannot be read: never an allow.
pub const ACCOUNT_UNREADABLE: &str = "ACCOUNT_UNREADABLE";

/// The reason in `google.rpc.ErrorInfo` where a report was stored but for an account that cannot take it at the moment.
/// What is sent again counts on that account alone, and is better not waited for by other reports.
pub const ACCOUNT_NOT_STORED: &str = "ACCOUNT_NOT_STORED";

/// The reason in `google.rpc.ErrorInfo` where as many nodes are remembered as may be, and this is none of them.
pub const TOO_MANY_NODES: &str = "TOO_MANY_NODES";

/// The reason in `google.rpc.ErrorInfo` where operators have said as much as may be kept.
pub const TOO_MANY_OVERRIDES: &str = "TOO_MANY_OVERRIDES";

/// The types of problem documents (RFC 9457) start with this. It names them, and leads nowhere: `.invalid` is nobody's.
pub const PROBLEM_TYPES: &str = "https://quota.invalid/problems/";
