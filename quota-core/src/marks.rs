use crate::{BUCKETS, Tick};

/// The most sources that an account remembers at once.
const MAX_SOURCES: usize = 1024;

/// A mark lives this long after its last report, in buckets: two windows.
const LIFETIME: Tick = 2 * BUCKETS;

/// Who sent a report: a digest of the caller's identity and the source that it names.
///
/// 56 bits: the 1,024 sources of an account share one with a chance of 1 in 10^11.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source([u8; 7]);

impl Source {
    /// The longest name of a source, in bytes.
    pub const MAX_BYTES: usize = 64;

    /// The source `name` of the caller `identity`; the same name of another caller is another source.
    #[cfg(feature = "keys")]
    pub fn new(identity: &str, name: &str) -> Self {
        use sha2::{Digest as _, Sha256};

        let mut hasher = Sha256::new();
        hasher.update(identity.len().to_le_bytes());
        hasher.update(identity);
        hasher.update(name);
        let [a, b, c, d, e, f, g, ..] = <[u8; 32]>::from(hasher.finalize());
        Self([a, b, c, d, e, f, g])
    }

    /// The digest.
    pub const fn as_bytes(&self) -> &[u8; 7] {
        &self.0
    }
}

/// Which report it is: the sequence grows with each report of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Who sent it.
    pub source: Source,
    /// Its number, below [`Mark::SEQUENCE_END`].
    pub sequence: u64,
}

impl Mark {
    /// Sequences are below this, 2^53.
    pub const SEQUENCE_END: u64 = 1 << 53;
}

/// The last report of each source that an account has, so that each counts once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks(Vec<(Mark, Tick)>);

/// What the marks say of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    New,
    Duplicate,
    Full,
}

impl Marks {
    /// Forgets the sources that have been silent for two windows.
    pub(crate) fn advance(&mut self, now: Tick) {
        self.0.retain(|(_, touched)| touched + LIFETIME > now);
    }

    /// Dates every mark back after the clock has stepped back.
    pub(crate) fn rebase(&mut self, by: Tick) {
        self.0.iter_mut().for_each(|(_, touched)| *touched = touched.saturating_sub(by));
    }

    pub(crate) fn standing(&self, mark: Mark) -> Standing {
        match self.0.iter().find(|(known, _)| known.source == mark.source) {
            Some((known, _)) if mark.sequence <= known.sequence => Standing::Duplicate,
            Some(_) => Standing::New,
            None if self.0.len() >= MAX_SOURCES => Standing::Full,
            None => Standing::New,
        }
    }

    pub(crate) fn set(&mut self, mark: Mark, now: Tick) {
        match self.0.iter_mut().find(|(known, _)| known.source == mark.source) {
            Some(entry) => *entry = (mark, now),
            None => self.0.push((mark, now)),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
