//! What servers tell each other: a key for each post, and an index of their names by when each was last written.

use std::time::Duration;

use redis::RedisResult;
use redis::aio::MultiplexedConnection;

use super::RedisStore;
use super::codec::timestamp;
use crate::store::{Board, Posts, StoreError};

/// How many posts are asked for in one round trip.
const KEYS_AT_ONCE: usize = 64;

/// No more posts are read where those that were, the latest, are as many bytes.
const MOST_BYTES: usize = 16 << 20;

impl RedisStore {
    pub(super) async fn write_post(&self, board: Board, part: u64, content: &[u8]) -> Result<(), StoreError> {
        let (index, name) = (index(board), format!("{}-{part}", self.name()));
        let (key, lifetime) = (key(board, &name), board.lifetime(self.length).as_secs() as i64);
        let written = self
            .connections
            .run_aside(async |connection| {
                let mut asked = redis::pipe();
                asked.cmd("TIME").zscore(&index, &name).zcard(&index);
                let (time, known, posts): ((i64, i64), Option<f64>, usize) =
                    asked.query_async(connection).await?;
                if known.is_none() && posts >= board.most() {
                    return Ok(false);
                }
                let mut written = redis::pipe();
                written.cmd("SET").arg(&key).arg(content).arg("EX").arg(lifetime).ignore();
                written.zadd(&index, &name, time.0).ignore();
                written.zrembyscore(&index, "-inf", time.0 - lifetime).ignore();
                written.expire(&index, lifetime).ignore();
                written.exec_async(connection).await?;
                Ok(true)
            })
            .await?;
        if written { Ok(()) } else { Err(StoreError::Full) }
    }

    pub(super) async fn read_posts(&self, board: Board, within: Duration) -> Result<Posts, StoreError> {
        let (index, ours) = (index(board), format!("{}-", self.name()));
        let within = within.as_secs() as i64;
        let (time, contents) = self
            .connections
            .run_aside(async |connection| {
                let mut asked = redis::pipe();
                asked.cmd("TIME");
                asked.cmd("ZREVRANGE").arg(&index).arg(0).arg(board.most() - 1).arg("WITHSCORES");
                let (time, names): ((i64, i64), Vec<(String, i64)>) = asked.query_async(connection).await?;
                let others = names.into_iter().filter(|(name, written)| {
                    !name.starts_with(&ours) && *written >= time.0.saturating_sub(within)
                });
                let keys: Vec<String> = others.map(|(name, _)| key(board, &name)).collect();
                Ok((time, read(&keys, connection).await?))
            })
            .await?;
        let now = timestamp(&redis::Value::Int(time.0), &redis::Value::Int(time.1))?;
        Ok(Posts { now, contents })
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

/// What is stored at the keys, but for those that are gone. GETRANGE, which the scripts need too, spares a right.
async fn read(keys: &[String], connection: &mut MultiplexedConnection) -> RedisResult<Vec<Vec<u8>>> {
    let (mut contents, mut bytes) = (Vec::new(), 0);
    for keys in keys.chunks(KEYS_AT_ONCE) {
        let mut asked = redis::pipe();
        for key in keys {
            asked.cmd("GETRANGE").arg(key).arg(0).arg(-1);
        }
        let read: Vec<Vec<u8>> = asked.query_async(connection).await?;
        contents.extend(read.into_iter().filter(|content| !content.is_empty()).inspect(|content| {
            bytes += content.len();
        }));
        if bytes > MOST_BYTES {
            break;
        }
    }
    Ok(contents)
}
