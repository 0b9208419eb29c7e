//! What an operator says of an account, as it travels and as it is stored.

use quota_core::{Limit, Override, PerResource, Resource, Weight};

use super::limit;
use super::standing::read_limit;
use crate::v1::override_word::Word;
use crate::{Invalid, v1};

/// What an override must be.
pub const ONE_WORD: &str = "must be one of weight, limits, exempt and blocked";

/// What is said, which the fields `weight`, `limits`, `exempt` and `blocked` hold.
pub fn override_word(wire: Option<v1::OverrideWord>) -> Result<Override, Invalid> {
    match wire.and_then(|wire| wire.word) {
        Some(Word::WeightThousandths(thousandths)) => Weight::from_thousandths(thousandths)
            .map(Override::Weight)
            .map_err(|error| Invalid::new("weight", error)),
        Some(Word::Limits(wire)) => {
            let own = |resource: Resource, wire: Option<v1::Limit>| match wire {
                None => Ok(None),
                wire => read_limit(resource, wire).map(Some).map_err(|_| {
                    Invalid::new(format!("limits.{resource}"), "must be an amount or unlimited")
                }),
            };
            let limits = PerResource::new(
                own(Resource::Cpu, wire.cpu)?,
                own(Resource::Memory, wire.memory)?,
                own(Resource::Network, wire.network)?,
            );
            if limits.iter().all(|(_, limit)| limit.is_none()) {
                return Err(Invalid::new("limits", "must have one of cpu, memory and network"));
            }
            Ok(Override::Limits(limits))
        }
        Some(Word::Exempt(true)) => Ok(Override::Exempt),
        Some(Word::Exempt(false)) => Err(Invalid::new("exempt", "must be true")),
        Some(Word::Blocked(true)) => Ok(Override::Blocked),
        Some(Word::Blocked(false)) => Err(Invalid::new("blocked", "must be true")),
        None => Err(Invalid::new("override", ONE_WORD)),
    }
}

/// The same as it travels.
pub fn wire_override_word(word: &Override) -> v1::OverrideWord {
    let word = match word {
        Override::Weight(weight) => Word::WeightThousandths(weight.thousandths()),
        Override::Limits(limits) => {
            let of = |resource: Resource| limits[resource].map(|own: Limit| limit(resource, own));
            let (cpu, memory) = (of(Resource::Cpu), of(Resource::Memory));
            Word::Limits(v1::Limits { cpu, memory, network: of(Resource::Network) })
        }
        Override::Exempt => Word::Exempt(true),
        Override::Blocked => Word::Blocked(true),
    };
    v1::OverrideWord { word: Some(word) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_read_as_it_was_written() {
        let limits = PerResource::new(Some(Limit::At(7)), Some(Limit::At(3 << 20)), Some(Limit::Unlimited));
        for word in [
            Override::Weight(Weight::from_thousandths(1500).unwrap()),
            Override::Limits(limits),
            Override::Limits(PerResource::new(None, None, Some(Limit::At(0)))),
            Override::Exempt,
            Override::Blocked,
        ] {
            assert_eq!(override_word(Some(wire_override_word(&word))), Ok(word));
        }
    }

    #[test]
    fn what_says_nothing_is_refused_by_its_field() {
        let unlimited = |limit| v1::Limits { memory: Some(v1::Limit { limit }), ..v1::Limits::default() };
        for (word, field) in [
            (Word::WeightThousandths(0), "weight"),
            (Word::WeightThousandths(1_000_001), "weight"),
            (Word::Limits(v1::Limits::default()), "limits"),
            (Word::Limits(unlimited(None)), "limits.memory"),
            (Word::Limits(unlimited(Some(v1::limit::Limit::Unlimited(false)))), "limits.memory"),
            (Word::Exempt(false), "exempt"),
            (Word::Blocked(false), "blocked"),
        ] {
            let refused = override_word(Some(v1::OverrideWord { word: Some(word) }));
            assert_eq!(refused.map_err(|invalid| invalid.field), Err(field.to_owned()), "{word:?}");
        }
        for nothing in [None, Some(v1::OverrideWord::default())] {
            assert_eq!(override_word(nothing).unwrap_err().field, "override");
        }
    }
}
