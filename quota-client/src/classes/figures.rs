use std::time::Duration;

use super::no_slot::NoSlotReason;

/// What operators see of a class on this fileserver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClassFigures {
    /// Requests in progress.
    pub(crate) in_progress: usize,
    /// Those that wait.
    pub(crate) queued: usize,
    /// Slots that are leased.
    pub(crate) leased: u32,
    /// Requests that had no slot, or ran for too long, by reason.
    pub(crate) refused: [u64; NoSlotReason::ALL.len()],
    /// How long those that ran had waited, and how long those took that have ended, since this was last looked at.
    pub(crate) waited: Vec<Duration>,
    pub(crate) took: Vec<Duration>,
}

impl ClassFigures {
    /// Those of two names together, that are of one class: its own, and none.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.in_progress += other.in_progress;
        self.queued += other.queued;
        self.leased = self.leased.saturating_add(other.leased);
        for (refused, more) in self.refused.iter_mut().zip(other.refused) {
            *refused += more;
        }
        self.waited.extend(other.waited);
        self.took.extend(other.took);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_names_of_one_class_all_is_told() {
        let mut one = ClassFigures { in_progress: 2, queued: 1, leased: 3, ..ClassFigures::default() };
        one.refused[0] = 5;
        one.waited.push(Duration::from_millis(7));
        let mut both = one.clone().and(one);
        assert_eq!((both.in_progress, both.queued, both.leased, both.refused[0]), (4, 2, 6, 10));
        assert_eq!(std::mem::take(&mut both.waited), [Duration::from_millis(7); 2]);
        assert!(both.took.is_empty());
    }
}
