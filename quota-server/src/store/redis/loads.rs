//! A script that a server has forgotten is loaded once over each connection, however many calls miss it together.

use std::collections::HashMap;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use redis::RedisResult;

use super::scripts::Script;

/// The loads of scripts over one connection.
#[derive(Default)]
pub(super) struct Loads(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// How many have ended.
    ended: u64,
    /// By digest: of each script that was ever missing.
    scripts: HashMap<Box<str>, Load>,
}

#[derive(Default)]
struct Load {
    /// The last that has ended, as the number of those that had by then.
    last: u64,
    under_way: Option<Loading>,
}

/// One load, which all wait for who missed the script.
type Loading = Shared<BoxFuture<'static, RedisResult<()>>>;

impl Loads {
    /// How many have ended. To be asked before a call is sent.
    pub(super) fn ended(&self) -> u64 {
        self.0.lock().ended
    }

    /// What loads a script that a call missed, which was sent when so many loads had ended. None where it was loaded since.
    pub(super) fn of<F>(&self, script: &Script, sent: u64, load: impl FnOnce() -> F) -> Option<Loading>
    where
        F: Future<Output = RedisResult<()>> + Send + 'static,
    {
        let mut state = self.0.lock();
        let known = state.scripts.entry(script.digest().into()).or_default();
        if known.last > sent {
            return None;
        }
        let begin = || {
            let (load, digest, state) = (load(), script.digest().into(), Arc::downgrade(&self.0));
            let ending = async move {
                let loaded = load.await;
                if let Some(state) = state.upgrade() {
                    state.lock().end(digest);
                }
                loaded
            };
            ending.boxed().shared()
        };
        Some(known.under_way.get_or_insert_with(begin).clone())
    }
}

impl State {
    fn end(&mut self, digest: Box<str>) {
        self.ended += 1;
        self.scripts.insert(digest, Load { last: self.ended, under_way: None });
    }
}
