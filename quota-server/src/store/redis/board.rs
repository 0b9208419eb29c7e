//! What servers tell each other: a key for each post, and an index of their names by when each was last written.

use std::time::Duration;

use super::RedisStore;
use super::call::Call;
use super::error::classify;
use crate::store::{Board, Posts, StoreError};

/// How many posts are asked for in one round trip.
const KEYS_AT_ONCE: usize = 64;

/// No more posts are read where those that were, the latest, are as many bytes.
const MOST_BYTES: usize = 16 << 20;

impl RedisStore {
    pub(super) async fn write_post(&self, board: Board, part: u64, content: &[u8]) -> Result<(), StoreError> {
        let name = format!("{}-{part}", self.name());
        let lifetime = board.lifetime(self.length);
        if !self.register(&index(board), &name, lifetime, board.most()).await? {
            return Err(StoreError::Full);
        }
        let key = key(board, &name);
        let mut written = redis::cmd("SET");
        written.arg(&key).arg(content).arg("EX").arg(lifetime.as_secs());
        self.connections.run_aside(&key, written.into()).await
    }

    pub(super) async fn read_posts(&self, board: Board, within: Duration) -> Result<Posts, StoreError> {
        let ours = format!("{}-", self.name());
        let registered = self.registered(&index(board), board.most()).await?;
        let others = registered
            .names
            .iter()
            .filter(|(name, at)| !name.starts_with(&ours) && registered.is_within(*at, within));
        let keys: Vec<String> = others.map(|(name, _)| key(board, name)).collect();
        Ok(Posts { now: registered.now, contents: self.read(&keys).await? })
    }

    /// What is stored at the keys, but for those that are gone. GETRANGE, which the scripts need too, spares a right.
    async fn read(&self, keys: &[String]) -> Result<Vec<Vec<u8>>, StoreError> {
        let content = |key: &String| {
            let mut asked = redis::cmd("GETRANGE");
            asked.arg(key).arg(0).arg(-1);
            (key.clone(), Call::from(asked))
        };
        let (mut contents, mut bytes) = (Vec::new(), 0);
        for keys in keys.chunks(KEYS_AT_ONCE) {
            for answer in self.connections.run_each_aside(keys.iter().map(content).collect()).await {
                let content: Vec<u8> =
                    redis::from_redis_value(answer?).map_err(|error| classify(&error.into()))?;
                bytes += content.len();
                contents.extend(Some(content).filter(|content| !content.is_empty()));
            }
            if bytes > MOST_BYTES {
                break;
            }
        }
        Ok(contents)
    }

    /// This server's name beside others that share the Redis.
    fn name(&self) -> String {
        format!("{:016x}", u64::from_le_bytes(self.caller))
    }
}

fn index(board: Board) -> String {
    format!("q1:{}", board.as_str())
}

fn key(board: Board, name: &str) -> String {
    format!("q1:{}:{{{name}}}", board.as_str())
}
