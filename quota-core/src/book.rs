//! What operators have said, as every server and the store keep it: each word under a name, the last one holds.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::Timestamp;
use crate::time::micros;

/// Words by name, each with when it was said.
///
/// A word that is withdrawn or has expired is kept for a day, so that a copy that missed its end is seen to be old, and
/// not taken for what the store has lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Book {
    version: u64,
    words: BTreeMap<Box<str>, Word>,
}

/// What was said last under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// When, by the store's clock; later than whatever was said before it.
    pub said: Timestamp,
    /// Until when it holds, if not for ever.
    pub until: Option<Timestamp>,
    /// The word; `None` where it is withdrawn.
    pub text: Option<Box<[u8]>>,
}

/// What became of something that was to be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It holds.
    Done {
        /// What held before it.
        before: Option<Word>,
    },
    /// It was to be withdrawn, and does not hold.
    Nothing,
    /// There is no room for another name.
    Full,
}

impl Word {
    /// Whether it says something at a moment.
    pub fn holds(&self, now: Timestamp) -> bool {
        self.text.is_some() && self.until.is_none_or(|until| now < until)
    }

    /// Whether nobody needs to know any more that it ended.
    fn is_forgotten(&self, now: Timestamp) -> bool {
        !self.holds(now) && now.since(self.said) > micros(Book::MEMORY)
    }
}

impl Book {
    /// The most names that are kept, those included whose words do not hold any more.
    pub const MOST: usize = 10_000;

    /// How long a word that does not hold any more is kept, at least.
    pub const MEMORY: Duration = Duration::from_secs(24 * 3600);

    /// With what is told of each name.
    pub const fn new(version: u64, words: BTreeMap<Box<str>, Word>) -> Self {
        Self { version, words }
    }

    /// Which state it is: another one at each change.
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// Every word, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Word)> {
        self.words.iter().map(|(name, word)| (&**name, word))
    }

    /// Says something under a name, from now on and for so long; `None` withdraws what holds. At most so many names.
    pub fn say(
        &mut self,
        now: Timestamp,
        name: &str,
        text: Option<&[u8]>,
        lasts: Option<Duration>,
        most: usize,
    ) -> Said {
        let before = self.words.get(name).filter(|word| word.holds(now)).cloned();
        if text.is_none() && before.is_none() {
            return Said::Nothing;
        }
        if !self.words.contains_key(name) && self.words.len() >= most {
            self.words.retain(|_, word| !word.is_forgotten(now));
            if self.words.len() >= most {
                return Said::Full;
            }
        }
        let said = Timestamp::from_micros(self.next_version(now));
        let until = lasts.map(|lasts| now.after_micros(micros(lasts)));
        self.words.insert(name.into(), Word { said, until, text: text.map(Into::into) });
        self.version = said.as_micros();
        Said::Done { before }
    }

    /// Takes words in that were lost, unless later ones are here. Returns how many; at most so many names.
    pub fn restore(
        &mut self,
        now: Timestamp,
        words: impl IntoIterator<Item = (Box<str>, Word)>,
        most: usize,
    ) -> u32 {
        let (mut restored, mut latest) = (0, self.next_version(now));
        for (name, word) in words {
            let is_later = self.words.get(&name).is_none_or(|known| known.said < word.said);
            if is_later && (self.words.contains_key(&name) || self.words.len() < most) {
                latest = latest.max(word.said.as_micros());
                self.words.insert(name, word);
                restored += 1;
            }
        }
        if restored > 0 {
            self.version = latest;
        }
        restored
    }

    /// What this copy holds that the store has lost: words that matter still, and that are newer here.
    pub fn lost_by<'a>(
        &'a self,
        stored: &'a Self,
        now: Timestamp,
    ) -> impl Iterator<Item = (&'a str, &'a Word)> {
        self.iter().filter(move |(name, word)| {
            let is_later = stored.words.get(*name).is_none_or(|known| known.said < word.said);
            is_later && !word.is_forgotten(now)
        })
    }

    /// Later than every word, and than the clock where that has not stepped back.
    fn next_version(&self, now: Timestamp) -> u64 {
        now.as_micros().max(self.version + 1)
    }
}

#[cfg(test)]
mod tests;
