//! Who makes a change.

use std::sync::Arc;

use axum::http::Extensions;

use crate::auth::{ANONYMOUS, Caller};

/// The name of the caller that a request is from.
pub(crate) fn author(of: &Extensions) -> Arc<str> {
    of.get::<Caller>().map_or_else(|| ANONYMOUS.into(), |caller| Arc::clone(&caller.name))
}
