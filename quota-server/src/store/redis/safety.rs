//! Whether a Redis may lose what it holds before its time, by what it tells of its settings.

use std::collections::HashMap;

use redis::FromRedisValue;

use super::{PROBE, RedisStore};
use crate::store::{Cause, Danger, Safety, StoreError};

impl RedisStore {
    /// Of several servers, the least safe is as safe as all of them.
    pub(super) async fn read_safety(&self) -> Result<Safety, StoreError> {
        let mut all = Safety { eviction: Danger::No, persistence: Danger::No };
        for key in self.connections.key_of_each(PROBE).await? {
            let memory: Option<String> = self.ask(&key, "INFO", &["memory"]).await?;
            let persistence: Option<String> = self.ask(&key, "INFO", &["persistence"]).await?;
            let save: Option<HashMap<String, String>> = self.ask(&key, "CONFIG", &["GET", "save"]).await?;
            let save = save.as_ref().and_then(|save| save.get("save"));
            all.eviction = worst(all.eviction, eviction(memory.as_deref()));
            all.persistence = worst(all.persistence, self::persistence(persistence.as_deref(), save));
        }
        Ok(all)
    }

    /// Asks the server that holds a key. `None`: it is not permitted, or not known there.
    async fn ask<T: FromRedisValue>(
        &self,
        key: &str,
        command: &str,
        args: &[&str],
    ) -> Result<Option<T>, StoreError> {
        let mut asked = redis::cmd(command);
        asked.arg(args);
        match self.connections.run_aside(key, asked.into()).await {
            Err(error) if matches!(error.cause(), Cause::Denied | Cause::Malformed) => Ok(None),
            answer => answer.map(Some),
        }
    }
}

fn worst(one: Danger, other: Danger) -> Danger {
    match (one, other) {
        (Danger::Yes, _) | (_, Danger::Yes) => Danger::Yes,
        (Danger::Unknown, _) | (_, Danger::Unknown) => Danger::Unknown,
        (Danger::No, Danger::No) => Danger::No,
    }
}

fn eviction(info: Option<&str>) -> Danger {
    match field(info, "maxmemory_policy") {
        Some("noeviction") => Danger::No,
        // `volatile-*` spares what operators say alone: usage, marks and limits of nodes expire.
        Some(_) => Danger::Yes,
        None => Danger::Unknown,
    }
}

fn persistence(info: Option<&str>, save: Option<&String>) -> Danger {
    match (field(info, "aof_enabled"), save) {
        (Some("1"), _) => Danger::No,
        (_, Some(save)) if !save.is_empty() => Danger::No,
        (Some(_), Some(_)) => Danger::Yes,
        _ => Danger::Unknown,
    }
}

/// A line `name:value`.
fn field<'a>(info: Option<&'a str>, name: &str) -> Option<&'a str> {
    info?.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f04_only_a_redis_that_evicts_nothing_is_safe() {
        for (info, danger) in [
            (Some("used_memory:1\r\nmaxmemory_policy:noeviction\r\n"), Danger::No),
            (Some("maxmemory_policy:volatile-lru\r\n"), Danger::Yes),
            (Some("maxmemory_policy:allkeys-lfu\r\n"), Danger::Yes),
            (Some("used_memory:1\r\n"), Danger::Unknown),
            (None, Danger::Unknown),
        ] {
            assert_eq!(eviction(info), danger, "{info:?}");
        }
    }

    #[test]
    fn an_append_only_file_or_a_snapshot_keeps_it() {
        let (on, off) = (Some("aof_enabled:1\r\n"), Some("aof_enabled:0\r\n"));
        let (set, none) = ("3600 1".to_owned(), String::new());
        for (info, save, danger) in [
            (on, Some(&none), Danger::No),
            (on, None, Danger::No),
            (off, Some(&set), Danger::No),
            (None, Some(&set), Danger::No),
            (off, Some(&none), Danger::Yes),
            (off, None, Danger::Unknown),
            (None, Some(&none), Danger::Unknown),
            (None, None, Danger::Unknown),
        ] {
            assert_eq!(persistence(info, save), danger, "{info:?} {save:?}");
        }
    }
}
