use redis::{ErrorKind, RedisError, ServerErrorKind, Value};

use super::layout::{Address, Layout, Redirect};

/// What a node of a Cluster answers when it is asked who holds which slots, or sends elsewhere.
///
/// Whatever it says: it is somebody who has a slot, or nobody.
pub(in crate::store::redis) fn told(answer: &Value) {
    let asked = Address { host: "redis".into(), port: 6379 };
    if let Some(layout) = Layout::told(answer, &asked) {
        assert!(!layout.nodes().is_empty());
    }
    let Value::BulkString(detail) = answer else { return };
    let detail = String::from_utf8_lossy(detail).into_owned();
    let moved = RedisError::from((ErrorKind::Server(ServerErrorKind::Moved), "", detail));
    if let Some(Redirect::Moved(slot, to)) = Redirect::of(&moved, &asked) {
        let mut layout = Layout::default();
        layout.moved(slot, to.clone());
        assert_eq!(layout.holder(slot), Some(&to));
    }
}
