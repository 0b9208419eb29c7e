use super::Bucket;
use crate::{PerResource, Tick};

/// Closed buckets in the order of their ticks, packed: of each the last byte of its tick, and its amounts, all in as many
/// bytes as the largest has needed: two for 65 ms of CPU or 65 KB, three for 16 s or 16 MB, five for the most there is.
///
/// The mark of the window, which comes with each call, tells the rest of a tick: all are less than 256 buckets before it.
#[derive(Clone, Debug, Default)]
pub(super) struct Closed {
    /// Bytes of an amount.
    width: usize,
    packed: Vec<u8>,
}

impl Closed {
    /// The oldest first.
    pub(super) fn iter(&self, mark: Tick) -> impl DoubleEndedIterator<Item = Bucket> {
        self.packed.chunks_exact(self.size()).map(move |packed| self.read(packed, mark))
    }

    /// The bucket of this tick.
    pub(super) fn get(&self, tick: Tick, mark: Tick) -> Option<Bucket> {
        let first = self.packed[self.place(tick, mark)..].chunks_exact(self.size()).next()?;
        Some(self.read(first, mark)).filter(|bucket| bucket.tick == tick)
    }

    /// Adds a bucket that is later than all.
    pub(super) fn push(&mut self, bucket: Bucket) {
        self.widen(&bucket);
        // Once a second at most, and there may be very many windows.
        self.packed.reserve_exact(self.size());
        self.packed.extend_from_slice(&pack(bucket, self.width)[..self.size()]);
    }

    /// Puts a bucket where that of its tick is, or would be.
    pub(super) fn put(&mut self, bucket: Bucket, mark: Tick) {
        self.widen(&bucket);
        let place = self.place(bucket.tick, mark)..self.place(bucket.tick + 1, mark);
        self.packed.splice(place, pack(bucket, self.width).into_iter().take(self.size()));
    }

    /// Drops the buckets before this one.
    pub(super) fn drop_before(&mut self, tick: Tick, mark: Tick) {
        let earlier = self.ticks(mark).take_while(|bucket| *bucket < tick).count();
        self.packed.drain(..earlier * self.size());
    }

    /// Where the buckets from this one on begin.
    fn place(&self, tick: Tick, mark: Tick) -> usize {
        let later = self.ticks(mark).rev().take_while(|bucket| *bucket >= tick).count();
        self.packed.len() - later * self.size()
    }

    fn ticks(&self, mark: Tick) -> impl DoubleEndedIterator<Item = Tick> {
        self.packed.chunks_exact(self.size()).map(move |packed| tick(packed[0], mark))
    }

    /// Bytes of a bucket.
    const fn size(&self) -> usize {
        1 + 3 * self.width
    }

    fn read(&self, packed: &[u8], mark: Tick) -> Bucket {
        let amount = |at| {
            let bytes = &packed[1 + at * self.width..][..self.width];
            bytes.iter().rev().fold(0, |amount, byte| amount << 8 | u64::from(*byte))
        };
        Bucket { tick: tick(packed[0], mark), spent: PerResource::new(amount(0), amount(1), amount(2)) }
    }

    /// Makes room for the amounts of this bucket.
    fn widen(&mut self, bucket: &Bucket) {
        let all = bucket.spent.iter().fold(0, |all, (_, amount)| all | amount);
        let width = (u64::BITS - all.leading_zeros()).div_ceil(8) as usize;
        if self.width < width {
            // By this mark a tick is its own last byte.
            let buckets: Vec<_> = self.iter(u8::MAX.into()).collect();
            *self = Self { width, packed: Vec::new() };
            buckets.into_iter().for_each(|bucket| self.push(bucket));
        }
    }
}

impl FromIterator<Bucket> for Closed {
    fn from_iter<T: IntoIterator<Item = Bucket>>(buckets: T) -> Self {
        let mut closed = Self::default();
        buckets.into_iter().for_each(|bucket| closed.push(bucket));
        closed
    }
}

fn tick(last_byte: u8, mark: Tick) -> Tick {
    mark.saturating_sub((mark as u8).wrapping_sub(last_byte).into())
}

/// Of amounts that fit into `width`. What follows them is zero.
fn pack(bucket: Bucket, width: usize) -> [u8; 1 + 3 * size_of::<u64>()] {
    let mut packed = [0; 1 + 3 * size_of::<u64>()];
    packed[0] = bucket.tick as u8;
    for (at, (_, amount)) in bucket.spent.iter().enumerate() {
        packed[1 + at * width..][..size_of::<u64>()].copy_from_slice(&amount.to_le_bytes());
    }
    packed
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::{BUCKET_CAP, BUCKETS, Resource};

    /// Of every magnitude, from nothing to the cap.
    fn amount() -> impl Strategy<Value = u64> {
        (0..=40_u32, any::<u64>()).prop_map(|(bits, amount)| amount & ((1 << bits) - 1))
    }

    fn spent() -> impl Strategy<Value = PerResource<u64>> {
        [amount(), amount(), amount()]
            .prop_map(|[cpu, memory, network]| PerResource::new(cpu, memory, network))
    }

    proptest! {
        #[test]
        fn what_is_put_is_there_until_it_is_dropped(
            steps in prop::collection::vec((0..5_u64, 1..BUCKETS, spent()), 1..200),
        ) {
            let (mut closed, mut known, mut mark) = (Closed::default(), BTreeMap::new(), 1_000_000);
            for (passed, age, spent) in steps {
                let before = mark;
                mark += passed;
                closed.drop_before(mark + 1 - BUCKETS, before);
                known.retain(|tick, _| tick + BUCKETS > mark);
                let bucket = Bucket { tick: mark - age, spent };
                if known.last_key_value().is_none_or(|(last, _)| *last < bucket.tick) {
                    closed.push(bucket);
                } else {
                    closed.put(bucket, mark);
                }
                known.insert(bucket.tick, bucket);
                let all: Vec<_> = known.values().copied().collect();
                prop_assert_eq!(closed.iter(mark).collect::<Vec<_>>(), all);
            }
        }
    }

    #[test]
    fn a_bucket_takes_as_many_bytes_as_the_largest_amount_needs() {
        let mut closed = Closed::default();
        for (tick, largest, bytes) in [(1, 0, 1), (2, 255, 8), (3, 256, 21), (4, 1, 28), (5, BUCKET_CAP, 80)]
        {
            closed.push(Bucket { tick, spent: PerResource::new(0, largest, 0) });
            assert_eq!((closed.packed.len(), closed.packed.capacity()), (bytes, bytes));
        }
        let amounts: Vec<_> = closed.iter(5).map(|bucket| bucket.spent[Resource::Memory]).collect();
        assert_eq!(amounts, [0, 255, 256, 1, BUCKET_CAP]);
    }
}
