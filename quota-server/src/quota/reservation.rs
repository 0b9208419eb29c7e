use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use quota_core::{Account, BUCKET_CAP, Cost, PerKind, PerResource, Tick};

/// A price that counts on a request's accounts until it is given back: the buckets that it is in, and how much.
///
/// Callers carry it as an opaque string: `r1.` and base64url of the tick and the three amounts, 8 bytes each; or `r2.`, with
/// three ticks in place of the one, by kind of account, where they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The bucket of the account of each kind, on the store's clock.
    pub ticks: PerKind<Tick>,
    /// The price.
    pub amounts: Cost,
}

impl Reservation {
    /// A price that was reserved on accounts in these buckets. That of a kind without an account is another's.
    pub fn new<'a>(accounts: impl IntoIterator<Item = &'a Account>, ticks: &[Tick], amounts: Cost) -> Self {
        let first = ticks.first().copied().unwrap_or_default();
        let kinds: Vec<_> = accounts.into_iter().map(Account::kind).zip(ticks).collect();
        let of = |kind| kinds.iter().find(|(known, _)| *known == kind).map_or(first, |(_, tick)| **tick);
        Self { ticks: PerKind::from_fn(of), amounts }
    }
}

impl std::fmt::Display for Reservation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut ticks: Vec<Tick> = self.ticks.iter().map(|(_, tick)| *tick).collect();
        let are_one = ticks.iter().min() == ticks.iter().max();
        if are_one {
            ticks.truncate(1);
        }
        let version = if are_one { "r1" } else { "r2" };
        let amounts = self.amounts.amounts().iter().map(|(_, amount)| *amount);
        let packed: Vec<u8> = ticks.into_iter().chain(amounts).flat_map(u64::to_le_bytes).collect();
        write!(f, "{version}.{}", URL_SAFE_NO_PAD.encode(packed))
    }
}

impl std::str::FromStr for Reservation {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        const NONE: &str = "must be what an allow carried";
        let (version, code) = text.split_once('.').ok_or(NONE)?;
        let packed = URL_SAFE_NO_PAD.decode(code).map_err(|_| NONE)?;
        let (words, []) = packed.as_chunks::<8>() else { return Err(NONE) };
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let (repo, user, ip, amounts) = match (version, &words[..]) {
            ("r1", &[tick, cpu, memory, network]) => (tick, tick, tick, [cpu, memory, network]),
            ("r2", &[repo, user, ip, cpu, memory, network]) => (repo, user, ip, [cpu, memory, network]),
            _ => return Err(NONE),
        };
        let is_valid = [repo, user, ip].iter().all(|tick| *tick < 1 << 48)
            && amounts.iter().all(|amount| *amount <= BUCKET_CAP);
        let [cpu, memory, network] = amounts;
        let amounts = Cost::saturating(PerResource::new(cpu, memory, network));
        if is_valid { Ok(Self { ticks: PerKind::new(repo, user, ip), amounts }) } else { Err(NONE) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quota_core::{Ipv6Prefix, Kind};

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            ticks in [0..1u64 << 48, 0..1u64 << 48, 0..1u64 << 48],
            same in any::<bool>(),
            cpu in 0..=BUCKET_CAP, memory in 0..=BUCKET_CAP, network in 0..=BUCKET_CAP,
        ) {
            let [repo, user, ip] = if same { [ticks[0]; 3] } else { ticks };
            let amounts = Cost::saturating(PerResource::new(cpu, memory, network));
            let reservation = Reservation { ticks: PerKind::new(repo, user, ip), amounts };
            prop_assert_eq!(reservation.to_string().parse(), Ok(reservation));
        }

        #[test]
        fn garbage_is_refused_without_a_panic(text in "(r[12]\\.)?.{0,70}") {
            let _ = text.parse::<Reservation>();
        }
    }

    #[test]
    fn one_bucket_is_written_as_it_always_was_and_several_by_kind() {
        let account = |kind| Account::new(kind, "1.2.3.4", Ipv6Prefix::default()).unwrap();
        let (user, ip) = (account(Kind::User), account(Kind::Ip));
        let one = Reservation::new([&user, &ip], &[7, 7], Cost::ZERO);
        assert_eq!((one.ticks, one.to_string().len()), (PerKind::new(7, 7, 7), "r1.".len() + 43));
        for (ticks, expected) in [([7, 8], PerKind::new(7, 7, 8)), ([8, 7], PerKind::new(8, 8, 7))] {
            let two = Reservation::new([&user, &ip], &ticks, Cost::ZERO);
            assert_eq!((two.ticks, two.to_string().parse()), (expected, Ok(two)));
        }
        let repo = account(Kind::Repo);
        let two = Reservation::new([&repo, &user, &ip], &[7, 8, 7], Cost::ZERO);
        assert_eq!(two.to_string().parse(), Ok(two));
    }

    #[test]
    fn amounts_beyond_a_bucket_are_refused() {
        for (version, bytes) in [("r1", 32), ("r2", 48)] {
            let forged = format!("{version}.{}", URL_SAFE_NO_PAD.encode(vec![0xff; bytes]));
            assert!(forged.parse::<Reservation>().is_err());
            assert!(format!("{version}.").parse::<Reservation>().is_err());
        }
        assert!("".parse::<Reservation>().is_err());
    }
}
