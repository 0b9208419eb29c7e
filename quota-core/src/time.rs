use std::time::Duration;

/// Buckets in a window.
pub const BUCKETS: u64 = 60;

/// A mark ahead of the clock by up to this much is used as now; further ahead, the clock has stepped back.
pub(crate) const TOLERANCE_MICROS: u64 = 5_000_000;

/// The number of a bucket: how many bucket lengths have passed since the Unix epoch.
pub type Tick = u64;

/// A moment on the store's clock, in microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(u64);

impl Timestamp {
    /// From microseconds since the Unix epoch.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since the Unix epoch.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// This moment, `age` ago; the epoch at the earliest.
    #[must_use]
    pub fn before(self, age: Duration) -> Self {
        Self(self.0.saturating_sub(micros(age)))
    }

    /// How many microseconds after `earlier` this is; 0 if it is before.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The moment so many microseconds after this.
    #[must_use]
    pub const fn after_micros(self, micros: u64) -> Self {
        Self(self.0.saturating_add(micros))
    }
}

/// How long cost counts: 60 s, and other lengths for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowLength {
    bucket_micros: u64,
}

impl Default for WindowLength {
    fn default() -> Self {
        Self { bucket_micros: 1_000_000 }
    }
}

impl WindowLength {
    /// From a length of 60 ms to an hour that divides into 60 buckets of whole milliseconds.
    pub fn new(length: Duration) -> Option<Self> {
        let millis = u64::try_from(length.as_millis()).ok()?;
        let whole = length.subsec_nanos().is_multiple_of(1_000_000) && millis.is_multiple_of(BUCKETS);
        (whole && (60..=3_600_000).contains(&millis))
            .then_some(Self { bucket_micros: millis / BUCKETS * 1000 })
    }

    /// The whole window.
    pub const fn length(self) -> Duration {
        Duration::from_micros(self.bucket_micros * BUCKETS)
    }

    /// One bucket, in microseconds.
    pub const fn bucket_micros(self) -> u64 {
        self.bucket_micros
    }

    /// The bucket that is open at a moment.
    pub const fn tick(self, now: Timestamp) -> Tick {
        now.0 / self.bucket_micros
    }

    /// How long until a bucket opens.
    pub fn until(self, tick: Tick, now: Timestamp) -> Duration {
        Duration::from_micros(tick.saturating_mul(self.bucket_micros).saturating_sub(now.0))
    }

    /// How far a mark may be ahead of the clock and still be used as now: 5 s in buckets.
    pub const fn tolerance(self) -> Tick {
        TOLERANCE_MICROS.div_ceil(self.bucket_micros)
    }
}

/// A duration in whole microseconds, at most `u64::MAX` of them.
pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
