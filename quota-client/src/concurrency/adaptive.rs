/// A limit between two bounds. One that does not move has equal bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AdaptiveLimit {
    min: usize,
    max: usize,
    current: usize,
}

/// By what a limit is multiplied when it is cut: above 0 and below 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BackoffFactor(f64);

/// Which of the three numbers is impossible, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} {reason}")]
pub(crate) struct InvalidRange {
    pub(crate) key: &'static str,
    pub(crate) reason: String,
}

/// A limit has moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) old: usize,
    pub(crate) new: usize,
}

impl AdaptiveLimit {
    /// One that starts at `initial`: `max >= initial >= min > 0`.
    pub(crate) fn new(min: usize, initial: usize, max: usize) -> Result<Self, InvalidRange> {
        let invalid = |key, reason| Err(InvalidRange { key, reason });
        if min == 0 {
            return invalid("min", "is 0, which would stop all processing: it must be at least 1".to_owned());
        }
        if initial < min {
            return invalid("initial", format!("is {initial}: it must be at least min, {min}"));
        }
        if max < initial {
            return invalid("max", format!("is {max}: it must be at least initial, {initial}"));
        }
        Ok(Self { min, max, current: initial })
    }

    /// What is in force: at least 1.
    pub(crate) const fn current(&self) -> usize {
        self.current
    }

    pub(crate) const fn max(&self) -> usize {
        self.max
    }

    /// It cannot be cut any further.
    pub(crate) const fn is_at_min(&self) -> bool {
        self.current == self.min
    }

    /// Whether it can move at all.
    pub(crate) const fn is_fixed(&self) -> bool {
        self.min == self.max
    }

    /// The step of one interval: one more, or after an event so much less. `None` where it stays.
    pub(crate) fn calibrate(&mut self, event: bool, factor: BackoffFactor) -> Option<Change> {
        let old = self.current;
        self.current = if event {
            // The product is rounded down, and so below a factor of 1 the limit falls by 1 at least.
            ((old as f64 * factor.0) as usize).min(old - 1).max(self.min)
        } else {
            old.saturating_add(1).min(self.max)
        };
        (self.current != old).then_some(Change { old, new: self.current })
    }

    /// Sets it, within its bounds.
    #[cfg(test)]
    pub(crate) fn set(&mut self, limit: usize) {
        self.current = limit.clamp(self.min, self.max);
    }
}

impl BackoffFactor {
    /// `None` unless it is above 0 and below 1.
    pub(crate) fn new(factor: f64) -> Option<Self> {
        (factor > 0.0 && factor < 1.0).then_some(Self(factor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(min: usize, initial: usize, max: usize) -> AdaptiveLimit {
        AdaptiveLimit::new(min, initial, max).unwrap()
    }

    #[test]
    fn a_range_that_is_impossible_is_refused_by_name() {
        let told = |min, initial, max| AdaptiveLimit::new(min, initial, max).unwrap_err().to_string();
        assert_eq!(told(0, 0, 0), "min is 0, which would stop all processing: it must be at least 1");
        assert_eq!(told(5, 4, 20), "initial is 4: it must be at least min, 5");
        assert_eq!(told(5, 10, 9), "max is 9: it must be at least initial, 10");
        assert_eq!(limit(1, 1, 1).current(), 1);
    }

    #[test]
    fn a_limit_rises_by_one_and_falls_by_a_factor_within_its_bounds() {
        let factor = BackoffFactor::new(0.75).unwrap();
        let mut limit = limit(10, 40, 42);
        let mut steps = |events: &[bool]| -> Vec<Option<usize>> {
            events.iter().map(|event| limit.calibrate(*event, factor).map(|change| change.new)).collect()
        };
        assert_eq!(steps(&[false, false, false]), [Some(41), Some(42), None]);
        assert_eq!(steps(&[true; 7]), [Some(31), Some(23), Some(17), Some(12), Some(10), None, None]);
        assert_eq!(steps(&[false]), [Some(11)]);
    }

    #[test]
    fn every_cut_above_min_cuts() {
        for factor in [f64::MIN_POSITIVE, 0.5, 0.999_999, 1.0 - f64::EPSILON / 2.0] {
            let mut limit = limit(1, 3, 3);
            let cut = |limit: &mut AdaptiveLimit| limit.calibrate(true, BackoffFactor::new(factor).unwrap());
            while !limit.is_at_min() {
                let Change { old, new } = cut(&mut limit).unwrap();
                assert!(new < old, "{factor}");
            }
            assert_eq!(cut(&mut limit), None);
        }
    }

    #[test]
    fn a_factor_is_between_0_and_1() {
        for factor in [0.0, -0.5, 1.0, 1.5, f64::NAN, f64::INFINITY] {
            assert_eq!(BackoffFactor::new(factor), None, "{factor}");
        }
    }
}
