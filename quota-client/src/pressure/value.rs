//! The formats of cgroup files. What none of them is read as is never taken for 0, nor for "no limit".

use std::path::Path;

use super::measured::Absent;

/// An amount that may be without limit: `max`, a negative number, and one that no machine has.
pub(super) fn limit(file: &Path, text: &str) -> Result<Option<u64>, Absent> {
    let text = text.trim();
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    match text {
        "max" => Ok(None),
        negative if negative.strip_prefix('-').is_some_and(is_number) => Ok(None),
        // More than u64 holds is no limit either.
        amount if is_number(amount) => Ok(amount.parse().ok()),
        _ => Err(Absent::garbage(file, text)),
    }
}

pub(super) fn number(file: &Path, text: &str) -> Result<u64, Absent> {
    text.trim().parse().map_err(|_| Absent::garbage(file, text))
}

/// Of a file with a name and a number in each line.
pub(super) fn field(file: &Path, text: &str, name: &str) -> Result<u64, Absent> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    number(file, line.ok_or_else(|| Absent::no_field(file, name))?)
}

/// v2's `cpu.max`: `QUOTA PERIOD`, in microseconds. In CPUs.
pub(super) fn cpu_max(file: &Path, text: &str) -> Result<Option<f64>, Absent> {
    let mut fields = text.split_ascii_whitespace();
    let (Some(quota), Some(period)) = (fields.next(), fields.next()) else {
        return Err(Absent::garbage(file, text));
    };
    cpus(file, limit(file, quota)?, number(file, period)?)
}

/// A quota in CPUs. It is of a period, in the same unit.
pub(super) fn cpus(file: &Path, quota: Option<u64>, period: u64) -> Result<Option<f64>, Absent> {
    if period == 0 {
        return Err(Absent::garbage(file, "a period of 0"));
    }
    Ok(quota.map(|quota| quota as f64 / period as f64))
}

/// Pressure stalls, `some avg10=PERCENT …`: the share of the last 10 s in which some thread was stalled.
pub(super) fn stalled(file: &Path, text: &str) -> Result<f64, Absent> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "));
    let some = some.ok_or_else(|| Absent::no_field(file, "some"))?;
    let percent = some.split_ascii_whitespace().find_map(|field| field.strip_prefix("avg10="));
    let percent: f64 = percent
        .ok_or_else(|| Absent::no_field(file, "avg10"))?
        .parse()
        .map_err(|_| Absent::garbage(file, some))?;
    // What is no number is in no range.
    if (0.0..=100.0).contains(&percent) { Ok(percent / 100.0) } else { Err(Absent::garbage(file, some)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> &'static Path {
        Path::new("/cg/file")
    }

    #[test]
    fn f15_no_limit_is_not_a_limit_of_nothing() {
        for text in ["max\n", "-1\n", "-111", "99999999999999999999"] {
            assert_eq!(limit(file(), text), Ok(None), "{text:?}");
        }
        assert_eq!(limit(file(), "0\n"), Ok(Some(0)));
        assert_eq!(limit(file(), "9223372036854771712"), Ok(Some(9_223_372_036_854_771_712)));
        assert_eq!(limit(file(), "18446744073709551615"), Ok(Some(u64::MAX)));
        for text in ["", "\n", "123junk", "-", "+1", "1 2", "MAX", "nan", "1e9"] {
            assert!(matches!(limit(file(), text), Err(Absent::Failed(_))), "{text:?}");
        }
    }

    #[test]
    fn f15_a_quota_is_in_cpus() {
        assert_eq!(cpu_max(file(), "max 100000\n"), Ok(None));
        assert_eq!(cpu_max(file(), "150000 100000\n"), Ok(Some(1.5)));
        assert_eq!(cpu_max(file(), "max 100000 0"), Ok(None));
        assert_eq!(cpu_max(file(), "50000 100000 7 new"), Ok(Some(0.5)));
        for text in ["", "max", "150000", "150000 0", "x 100000", "1 y"] {
            assert!(matches!(cpu_max(file(), text), Err(Absent::Failed(_))), "{text:?}");
        }
        assert!(cpus(file(), Some(1), 0).is_err());
    }

    #[test]
    fn f18_a_field_is_a_whole_line() {
        let text = "usage_usec 5\nthrottled_usec x\nnew_field 1 2\nhalf";
        assert_eq!(field(file(), text, "usage_usec"), Ok(5));
        for name in ["usage", "half", "throttled_time"] {
            assert!(matches!(field(file(), text, name), Err(Absent::Missing(_))), "{name}");
        }
        assert!(matches!(field(file(), text, "throttled_usec"), Err(Absent::Failed(_))));
    }

    #[test]
    fn f18_stalls_are_shares_of_time() {
        let both =
            "some avg10=17.50 avg60=32.88 avg300=18.76 total=96224455\nfull avg10=0.00 avg60=0 total=0\n";
        assert_eq!(stalled(file(), both), Ok(0.175));
        assert_eq!(stalled(file(), "some avg10=100.00 avg60=1 new=x\n"), Ok(1.0));
        for text in ["", "full avg10=1.00", "some avg60=1.00", "some"] {
            assert!(matches!(stalled(file(), text), Err(Absent::Missing(_))), "{text:?}");
        }
        for text in ["some avg10=NaN", "some avg10=-1", "some avg10=inf", "some avg10=100.01", "some avg10="]
        {
            assert!(matches!(stalled(file(), text), Err(Absent::Failed(_))), "{text:?}");
        }
    }
}
