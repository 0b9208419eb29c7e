//! What accounts are compared with, as it travels.

use quota_core::{Bound, Comparison, Here, HereUsed, Limit, Mode, PerResource, Resource};

use super::{limit, wire_amount};
use crate::{Invalid, v1};

/// What an account used of a resource and what is compared with it.
pub fn resource_standing(resource: Resource, used: u64, comparison: &Comparison) -> v1::ResourceStanding {
    v1::ResourceStanding {
        used: wire_amount(resource, used),
        limit: Some(limit(resource, comparison.ceiling.limit)),
        mode: v1::Mode::from(comparison.ceiling.mode).into(),
        here: comparison.here.map(|here| v1::HereStanding {
            used: wire_amount(resource, here.used.of(used)),
            limit: Some(limit(resource, here.limit)),
            ..v1::HereStanding::default()
        }),
    }
}

/// What an account is compared with, of its standing. What it used is left to the reader: on the node, that is not known.
pub fn comparisons(standing: &v1::Standing) -> Result<PerResource<Comparison>, Invalid> {
    let read = |resource: Resource, wire: &Option<v1::ResourceStanding>| {
        let wire = wire.as_ref().ok_or_else(|| Invalid::new(resource.as_str(), "must be given"))?;
        comparison(resource, wire).map_err(|invalid| invalid.within(resource.as_str()))
    };
    Ok(PerResource::new(
        read(Resource::Cpu, &standing.cpu)?,
        read(Resource::Memory, &standing.memory)?,
        read(Resource::Network, &standing.network)?,
    ))
}

fn comparison(resource: Resource, wire: &v1::ResourceStanding) -> Result<Comparison, Invalid> {
    let here = wire.here.as_ref().map(|here| {
        let limit = read_limit(resource, here.limit).map_err(|invalid| invalid.within("here"))?;
        Ok(Here { limit, used: HereUsed::Unknown })
    });
    let ceiling = Bound { limit: read_limit(resource, wire.limit)?, mode: wire.mode().try_into()? };
    Ok(Comparison { ceiling, here: here.transpose()? })
}

pub(super) fn read_limit(resource: Resource, wire: Option<v1::Limit>) -> Result<Limit, Invalid> {
    match (wire.and_then(|wire| wire.limit), resource) {
        (Some(v1::limit::Limit::Amount(amount)), Resource::Memory) => Ok(Limit::At(amount / 1024)),
        (Some(v1::limit::Limit::Amount(amount)), Resource::Cpu | Resource::Network) => Ok(Limit::At(amount)),
        (Some(v1::limit::Limit::Unlimited(true)), _) => Ok(Limit::Unlimited),
        (Some(v1::limit::Limit::Unlimited(false)) | None, _) => Err(Invalid::new("limit", "must be given")),
    }
}

impl TryFrom<v1::Mode> for Mode {
    type Error = Invalid;

    fn try_from(wire: v1::Mode) -> Result<Self, Invalid> {
        match wire {
            v1::Mode::Off => Ok(Self::Off),
            v1::Mode::Shadow => Ok(Self::Shadow),
            v1::Mode::Enforce => Ok(Self::Enforce),
            v1::Mode::Unspecified => Err(Invalid::new("mode", "must be given")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(comparisons: &PerResource<Comparison>) -> v1::Standing {
        let of = |resource| Some(resource_standing(resource, 7, &comparisons[resource]));
        v1::Standing {
            cpu: of(Resource::Cpu),
            memory: of(Resource::Memory),
            network: of(Resource::Network),
            ..v1::Standing::default()
        }
    }

    #[test]
    fn what_is_compared_is_read_as_it_was_written() {
        let comparison = |limit, mode, here: Option<u64>| Comparison {
            ceiling: Bound { limit, mode },
            here: here.map(|limit| Here { limit: Limit::At(limit), used: HereUsed::Unknown }),
        };
        let comparisons = PerResource::new(
            comparison(Limit::At(100_000_000), Mode::Enforce, Some(50_000_000)),
            comparison(Limit::At(503_316_480), Mode::Shadow, Some(0)),
            comparison(Limit::Unlimited, Mode::Off, None),
        );
        assert_eq!(super::comparisons(&standing(&comparisons)), Ok(comparisons));
    }

    #[test]
    fn what_tells_no_limit_or_no_mode_is_not_taken_for_unlimited() {
        let whole = Comparison { ceiling: Bound { limit: Limit::At(1), mode: Mode::Enforce }, here: None };
        let whole = standing(&PerResource::from_fn(|_| whole));
        assert!(comparisons(&whole).is_ok());
        let cpu = whole.cpu.clone().unwrap();
        let limit = |limit| v1::ResourceStanding { limit, ..cpu.clone() };
        let not_unlimited = v1::Limit { limit: Some(v1::limit::Limit::Unlimited(false)) };
        for (field, cpu) in [
            ("cpu", None),
            ("cpu.mode", Some(v1::ResourceStanding { mode: 0, ..cpu.clone() })),
            ("cpu.limit", Some(limit(None))),
            ("cpu.limit", Some(limit(Some(not_unlimited)))),
            (
                "cpu.here.limit",
                Some(v1::ResourceStanding { here: Some(v1::HereStanding::default()), ..cpu.clone() }),
            ),
        ] {
            let invalid = comparisons(&v1::Standing { cpu, ..whole.clone() }).unwrap_err();
            assert_eq!(invalid.field, field);
        }
    }
}
