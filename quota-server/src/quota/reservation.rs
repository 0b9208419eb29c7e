use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use quota_core::{BUCKET_CAP, Cost, PerResource, Tick};

/// A price that counts on a request's accounts until it is given back: the bucket that it is in, and how much.
///
/// Callers carry it as an opaque string: `r1.` and base64url of the tick and the three amounts, 8 bytes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The bucket, on the store's clock.
    pub tick: Tick,
    /// The price.
    pub amounts: Cost,
}

impl std::fmt::Display for Reservation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut packed = self.tick.to_le_bytes().to_vec();
        for (_, amount) in self.amounts.amounts().iter() {
            packed.extend_from_slice(&amount.to_le_bytes());
        }
        write!(f, "r1.{}", URL_SAFE_NO_PAD.encode(packed))
    }
}

impl std::str::FromStr for Reservation {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        const NONE: &str = "must be what an allow carried";
        let packed =
            text.strip_prefix("r1.").and_then(|code| URL_SAFE_NO_PAD.decode(code).ok()).ok_or(NONE)?;
        let (words, []) = packed.as_chunks::<8>() else { return Err(NONE) };
        let [tick, cpu, memory, network] = *words else { return Err(NONE) };
        let amounts = PerResource::new(cpu, memory, network);
        let amounts = PerResource::from_fn(|resource| u64::from_le_bytes(amounts[resource]));
        let tick = Tick::from_le_bytes(tick);
        let valid = tick < 1 << 48 && amounts.iter().all(|(_, &amount)| amount <= BUCKET_CAP);
        if valid { Ok(Self { tick, amounts: Cost::saturating(amounts) }) } else { Err(NONE) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(tick in 0..1u64 << 48, cpu in 0..=BUCKET_CAP, memory in 0..=BUCKET_CAP, network in 0..=BUCKET_CAP) {
            let reservation = Reservation { tick, amounts: Cost::saturating(PerResource::new(cpu, memory, network)) };
            prop_assert_eq!(reservation.to_string().parse(), Ok(reservation));
        }

        #[test]
        fn garbage_is_refused_without_a_panic(text in "(r1\\.)?.{0,60}") {
            let _ = text.parse::<Reservation>();
        }
    }

    #[test]
    fn amounts_beyond_a_bucket_are_refused() {
        let forged = format!("r1.{}", URL_SAFE_NO_PAD.encode([0xff; 32]));
        assert!(forged.parse::<Reservation>().is_err());
        assert!("r1.".parse::<Reservation>().is_err());
        assert!("".parse::<Reservation>().is_err());
    }
}
