//! What operators have said, in Redis: one hash, read and changed by scripts.

use std::collections::BTreeMap;
use std::time::Duration;

use quota_core::{Book, Said, Timestamp, Word};
use redis::Value;

use super::RedisStore;
use super::call::Call;
use super::codec::{integer, malformed, push, read, small, timestamp};
use super::scripts::Script;
use crate::store::{Heard, Saying, StoreError, Words};

const KEY: &str = "q1:overrides";

/// Said and until, before the text.
const HEAD: usize = 14;

/// The most words that are restored in one call: the script's bound.
const MAX_RESTORED: usize = 1000;

impl RedisStore {
    pub(super) async fn read_words(&self, known: u64) -> Result<Words, StoreError> {
        let reply = self.run_on_book(&self.scripts.words, vec![known.to_string().into()]).await?;
        let [seconds, micros, version, fields @ ..] = &reply[..] else {
            return Err(malformed("words: too short"));
        };
        let (now, version) = (timestamp(seconds, micros)?, integer(version)?);
        if version == known {
            return Ok(Words { now, book: None, unreadable: 0 });
        }
        let (mut words, mut unreadable) = (BTreeMap::new(), 0);
        for field in fields.chunks(2) {
            match word_of(field) {
                Some((name, word)) => drop(words.insert(name, word)),
                None => unreadable += 1,
            }
        }
        Ok(Words { now, book: Some(Book::new(version, words)), unreadable })
    }

    pub(super) async fn say_word(&self, saying: Saying<'_>) -> Result<Heard, StoreError> {
        let lasts = saying.lasts.map_or(0, |lasts| lasts.max(Duration::from_micros(1)).as_micros());
        let args = vec![
            saying.name.into(),
            saying.text.unwrap_or_default().into(),
            lasts.to_string().into(),
            Book::MOST.to_string().into(),
        ];
        let reply = self.run_on_book(&self.scripts.say, args).await?;
        let [seconds, micros, Value::Int(outcome), _, Value::BulkString(before)] = &reply[..] else {
            return Err(malformed("say: shape"));
        };
        let said = match outcome {
            1 => Said::Done { before: word(before) },
            0 => Said::Nothing,
            _ => Said::Full,
        };
        Ok(Heard { now: timestamp(seconds, micros)?, said })
    }

    pub(super) async fn restore_words(&self, words: &[(Box<str>, Word)]) -> Result<u32, StoreError> {
        let mut restored = 0;
        for chunk in words.chunks(MAX_RESTORED) {
            let mut args = vec![Book::MOST.to_string().into_bytes()];
            for (name, word) in chunk {
                args.push(name.as_bytes().into());
                args.push(packed(word));
            }
            let reply = self.run_on_book(&self.scripts.restore, args).await?;
            restored += small(reply.get(2).ok_or_else(|| malformed("restore: too short"))?)?;
        }
        Ok(restored)
    }

    async fn run_on_book(&self, script: &Script, args: Vec<Vec<u8>>) -> Result<Vec<Value>, StoreError> {
        self.connections.run_aside(KEY, Call::script(script, &[KEY]).args(args)).await
    }
}

pub(super) fn word_of(field: &[Value]) -> Option<(Box<str>, Word)> {
    let [Value::BulkString(name), Value::BulkString(packed)] = field else { return None };
    Some((std::str::from_utf8(name).ok()?.into(), word(packed)?))
}

fn word(packed: &[u8]) -> Option<Word> {
    let (head, text) = packed.split_at_checked(HEAD)?;
    let moment = |packed| Timestamp::from_micros(read(packed));
    let until = Some(moment(&head[7..])).filter(|until| until.as_micros() > 0);
    Some(Word { said: moment(&head[..7]), until, text: (!text.is_empty()).then(|| text.into()) })
}

fn packed(word: &Word) -> Vec<u8> {
    let mut packed = Vec::with_capacity(HEAD + word.text.as_ref().map_or(0, |text| text.len()));
    push(&mut packed, word.said.as_micros(), 7);
    push(&mut packed, word.until.map_or(0, Timestamp::as_micros), 7);
    packed.extend_from_slice(word.text.as_deref().unwrap_or_default());
    packed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_read_as_it_was_written_and_what_is_too_short_is_none() {
        let said = Timestamp::from_micros(1_764_500_000_123_456);
        for until in [None, Some(said.after_micros(1))] {
            for text in [None, Some(b"text".as_slice().into())] {
                let written = Word { said, until, text };
                assert_eq!(word(&packed(&written)), Some(written));
            }
        }
        assert_eq!(word(&[7; HEAD - 1]), None);
    }
}
