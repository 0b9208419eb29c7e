use tokio::time::Instant;

/// CPU microseconds that every check reserves.
pub(super) const PRICE: u64 = 10_000;

/// One piece of work, as its caller knows it.
#[derive(Clone, Debug)]
pub(super) struct Work {
    pub(super) asked: Instant,
    /// When the check was answered, or given up.
    pub(super) answered: Instant,
    /// Whether the answer was that the price is reserved. If not, it may be all the same.
    pub(super) reserved: bool,
    /// What it costs, in bytes of network; never 0.
    pub(super) bytes: u64,
    /// How much of the reservation its charge gives back, in CPU microseconds.
    pub(super) released: u64,
    /// When its charge was acknowledged.
    pub(super) charged: Option<Instant>,
}

/// What counts on an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Used {
    /// CPU microseconds.
    pub(super) cpu: u64,
    /// Bytes of network.
    pub(super) bytes: u64,
}

/// What the bookkeeper says of one piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// What was acknowledged counts.
    Kept {
        /// So does a price whose reservation was not.
        stray: bool,
    },
    /// Something that was acknowledged at this time does not count; of several, the first.
    Lost(Instant),
    /// What counts is no such work.
    Wrong,
}

impl Work {
    /// What counts if its reservation and its charge do.
    fn used(&self, reserved: bool, charged: bool) -> Used {
        let released = if charged { self.released } else { 0 };
        Used {
            cpu: if reserved { PRICE.saturating_sub(released) } else { 0 },
            bytes: if charged { self.bytes } else { 0 },
        }
    }

    /// Compares what was acknowledged with what counts on the work's own account.
    pub(super) fn judge(&self, used: Used) -> Verdict {
        let states = [(true, true), (false, true), (true, false), (false, false)];
        let lost = |reserved: bool, charged: bool| {
            let reservation = (self.reserved && !reserved).then_some(self.answered);
            let charge = self.charged.filter(|_| !charged);
            reservation.into_iter().chain(charge).min()
        };
        let matching = states.into_iter().filter(|&(reserved, charged)| self.used(reserved, charged) == used);
        // Several match where all of a reservation is given back: then it does not show whether it was there.
        match matching.map(|(reserved, charged)| (lost(reserved, charged), reserved)).min() {
            None => Verdict::Wrong,
            Some((Some(acknowledged), _)) => Verdict::Lost(acknowledged),
            Some((None, reserved)) => Verdict::Kept { stray: reserved && !self.reserved },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Work that was asked for at 0 s, answered at 1 s and charged at 2 s.
    fn work(reserved: bool, released: u64, charged: bool) -> (Work, Instant, Instant) {
        let asked = Instant::now();
        let [answered, charged_at] = [1, 2].map(|seconds| asked + Duration::from_secs(seconds));
        let charged = charged.then_some(charged_at);
        (Work { asked, answered, reserved, bytes: 7, released, charged }, answered, charged_at)
    }

    const KEPT: Verdict = Verdict::Kept { stray: false };

    #[test]
    fn what_was_acknowledged_counts_once() {
        let (work, answered, charged) = work(true, 4_000, true);
        for (cpu, bytes, verdict) in [
            (6_000, 7, KEPT),
            (10_000, 0, Verdict::Lost(charged)),
            (0, 7, Verdict::Lost(answered)),
            (0, 0, Verdict::Lost(answered)),
            (16_000, 7, Verdict::Wrong),
            (6_000, 14, Verdict::Wrong),
            (2_000, 7, Verdict::Wrong),
            (10_000, 7, Verdict::Wrong),
            (6_000, 0, Verdict::Wrong),
        ] {
            assert_eq!(work.judge(Used { cpu, bytes }), verdict, "{cpu} {bytes}");
        }
    }

    #[test]
    fn what_was_not_acknowledged_counts_once_or_not_at_all() {
        let (unanswered, _, charged) = work(false, 0, true);
        let (unreported, answered, _) = work(true, 4_000, false);
        for (work, cpu, bytes, verdict) in [
            (&unanswered, 0, 7, KEPT),
            (&unanswered, 10_000, 7, Verdict::Kept { stray: true }),
            (&unanswered, 10_000, 0, Verdict::Lost(charged)),
            (&unanswered, 20_000, 7, Verdict::Wrong),
            (&unreported, 10_000, 0, KEPT),
            (&unreported, 6_000, 7, KEPT),
            (&unreported, 0, 7, Verdict::Lost(answered)),
            (&unreported, 12_000, 14, Verdict::Wrong),
        ] {
            assert_eq!(work.judge(Used { cpu, bytes }), verdict, "{cpu} {bytes}");
        }
    }

    /// A client gives all of a reservation back: whether it was there does not show any more.
    #[test]
    fn a_reservation_given_back_as_a_whole_leaves_no_trace() {
        let (work, _, charged) = work(true, PRICE, true);
        assert_eq!(work.judge(Used { cpu: 0, bytes: 7 }), KEPT);
        assert_eq!(work.judge(Used { cpu: 10_000, bytes: 0 }), Verdict::Lost(charged));
        assert_eq!(work.judge(Used { cpu: 10_000, bytes: 7 }), Verdict::Wrong);
    }
}
