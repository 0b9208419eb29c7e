use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use redis::cluster_routing::Slot;
use redis::{ConnectionAddr, ErrorKind, RedisError, ServerErrorKind, Value};

/// Where a node is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Address {
    pub(super) host: Arc<str>,
    pub(super) port: u16,
}

/// Which node holds each slot.
#[derive(Default)]
pub(super) struct Layout(HashMap<Slot, Address>);

/// What a node says that does not hold a slot, and has done nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Redirect {
    /// Another does from now on.
    Moved(Slot, Address),
    /// The slot is on its way, and this key there already.
    Ask(Address),
}

impl Address {
    pub(super) fn of(address: &ConnectionAddr) -> Option<Self> {
        match address {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                Some(Self { host: host.as_str().into(), port: *port })
            }
            _ => None,
        }
    }

    /// As a node says it, which may leave its own host out.
    fn parse(text: &str, said_by: &Self) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        Some(said_by.at(host, port.parse().ok()?))
    }

    fn at(&self, host: &str, port: u16) -> Self {
        let host = if host.is_empty() { Arc::clone(&self.host) } else { host.into() };
        Self { host, port }
    }
}

impl Layout {
    /// What `CLUSTER SLOTS` answers: for each range of slots its first and last, the node that holds it, and its replicas.
    /// `None` where it is something else, or no slot is held.
    pub(super) fn told(answer: &Value, said_by: &Address) -> Option<Self> {
        let Value::Array(ranges) = answer else { return None };
        let mut slots = HashMap::new();
        for range in ranges {
            let Value::Array(range) = range else { return None };
            let [Value::Int(first), Value::Int(last), Value::Array(holder), ..] = &range[..] else {
                return None;
            };
            let [host, Value::Int(port), ..] = &holder[..] else { return None };
            let host = match host {
                Value::BulkString(host) => std::str::from_utf8(host).ok()?,
                Value::SimpleString(host) => host,
                Value::Nil => "",
                _ => return None,
            };
            let holder = said_by.at(if host == "?" { "" } else { host }, u16::try_from(*port).ok()?);
            for slot in u16::try_from(*first).ok()?..=u16::try_from(*last).ok()? {
                slots.insert(Slot::new(slot)?, holder.clone());
            }
        }
        (!slots.is_empty()).then_some(Self(slots))
    }

    pub(super) fn holder(&self, slot: Slot) -> Option<&Address> {
        self.0.get(&slot)
    }

    pub(super) fn moved(&mut self, slot: Slot, to: Address) {
        self.0.insert(slot, to);
    }

    /// All that hold a slot.
    pub(super) fn nodes(&self) -> HashSet<Address> {
        self.0.values().cloned().collect()
    }
}

impl Redirect {
    pub(super) fn of(error: &RedisError, said_by: &Address) -> Option<Self> {
        let (address, slot) = error.redirect_node()?;
        let address = Address::parse(address, said_by)?;
        match error.kind() {
            ErrorKind::Server(ServerErrorKind::Ask) => Some(Self::Ask(address)),
            _ => Some(Self::Moved(Slot::new(slot)?, address)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(host: &str, port: u16) -> Address {
        Address { host: host.into(), port }
    }

    fn range(first: i64, last: i64, host: Value, port: i64) -> Value {
        let holder = Value::Array(vec![host, Value::Int(port), Value::BulkString(b"id".to_vec())]);
        Value::Array(vec![Value::Int(first), Value::Int(last), holder])
    }

    fn slot(number: u16) -> Slot {
        Slot::new(number).unwrap()
    }

    #[test]
    fn slots_are_where_a_node_says_and_its_own_host_is_the_one_it_was_asked_at() {
        let host = Value::BulkString(b"10.0.0.2".to_vec());
        let told = Value::Array(vec![range(0, 5, Value::Nil, 7000), range(6, 16383, host, 7001)]);
        let mut layout = Layout::told(&told, &node("a", 1)).unwrap();
        assert_eq!(layout.holder(slot(5)), Some(&node("a", 7000)));
        assert_eq!(layout.holder(slot(6)), Some(&node("10.0.0.2", 7001)));
        assert_eq!(layout.nodes().len(), 2);
        layout.moved(slot(6), node("a", 7000));
        assert_eq!(layout.holder(slot(6)), Some(&node("a", 7000)));
    }

    #[test]
    fn an_answer_that_is_no_layout_is_none() {
        let host = || Value::BulkString(b"a".to_vec());
        for told in [
            Value::Nil,
            Value::Array(Vec::new()),
            Value::Array(vec![Value::Nil]),
            Value::Array(vec![Value::Array(vec![Value::Int(0), Value::Int(1)])]),
            Value::Array(vec![range(-1, 5, host(), 7000)]),
            Value::Array(vec![range(0, 16384, host(), 7000)]),
            Value::Array(vec![range(0, 5, host(), 70000)]),
            Value::Array(vec![range(0, 5, Value::Int(1), 7000)]),
        ] {
            assert!(Layout::told(&told, &node("a", 1)).is_none(), "{told:?}");
        }
    }

    #[test]
    fn a_redirection_names_a_node_and_nothing_else_is_one() {
        let of = |code: ServerErrorKind, detail: &str| {
            Redirect::of(&RedisError::from((code.into(), "", detail.to_owned())), &node("a", 1))
        };
        let moved = |address| Some(Redirect::Moved(slot(3999), address));
        assert_eq!(of(ServerErrorKind::Moved, "3999 10.0.0.2:7001"), moved(node("10.0.0.2", 7001)));
        assert_eq!(of(ServerErrorKind::Moved, "3999 :7001"), moved(node("a", 7001)));
        assert_eq!(of(ServerErrorKind::Moved, "3999 ::1:7001"), moved(node("::1", 7001)));
        assert_eq!(of(ServerErrorKind::Ask, "3999 b:7001"), Some(Redirect::Ask(node("b", 7001))));
        assert_eq!(of(ServerErrorKind::Moved, "16384 b:7001"), None);
        assert_eq!(of(ServerErrorKind::Moved, "3999 b"), None);
        assert_eq!(of(ServerErrorKind::ReadOnly, "3999 b:7001"), None);
    }
}
