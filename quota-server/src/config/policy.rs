use std::time::Duration;

use quota_core::{BUCKET_CAP, BUCKETS, Bound, Kind, Limit, Mode, PerResource, Resource, WindowLength};

use super::error::ConfigError;
use super::layers::Settings;
use super::units;

/// The most that a window can hold of a resource: a larger limit would never be reached.
const LARGEST: u64 = BUCKETS * BUCKET_CAP;

/// The limits in force for each kind of account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    repo: PerResource<Bound>,
    user: PerResource<Bound>,
    ip: PerResource<Bound>,
}

impl Policy {
    /// The limits of a kind of account: under the rule `fixed`, the initial ones.
    pub const fn bounds(&self, kind: Kind) -> &PerResource<Bound> {
        match kind {
            Kind::Repo => &self.repo,
            Kind::User => &self.user,
            Kind::Ip => &self.ip,
        }
    }

    /// Every limit.
    pub fn iter(&self) -> impl Iterator<Item = (Kind, Resource, Bound)> {
        Kind::ALL
            .into_iter()
            .flat_map(|kind| self.bounds(kind).iter().map(move |(resource, bound)| (kind, resource, *bound)))
    }

    pub(super) fn read(settings: &Settings, window: WindowLength) -> Result<Self, ConfigError> {
        for resource in Resource::ALL {
            settings.text(&["adapt", resource.as_str(), "rule"], rule)?;
        }
        let of = |kind| bounds(settings, kind, window.length());
        Ok(Self { repo: of(Kind::Repo)?, user: of(Kind::User)?, ip: of(Kind::Ip)? })
    }
}

fn bounds(settings: &Settings, kind: Kind, window: Duration) -> Result<PerResource<Bound>, ConfigError> {
    let of = |resource| bound(settings, kind, resource, window);
    Ok(PerResource::new(of(Resource::Cpu)?, of(Resource::Memory)?, of(Resource::Network)?))
}

fn bound(
    settings: &Settings,
    kind: Kind,
    resource: Resource,
    window: Duration,
) -> Result<Bound, ConfigError> {
    let key = |name| ["limits", kind.as_str(), resource.as_str(), name];
    let read = |name| settings.text(&key(name), |text| limit(resource, text, window));
    let limits = [("min", read("min")?), ("initial", read("initial")?), ("max", read("max")?)];
    let [min, initial, max] = limits;
    for ((low, lower), (high, higher)) in [(min, max), (min, initial), (initial, max)] {
        if lower > higher {
            return Err(settings.above(&key(low), &key(high)));
        }
    }
    Ok(Bound { limit: initial.1, mode: settings.text(&key("mode"), mode)? })
}

fn limit(resource: Resource, text: &str, window: Duration) -> Result<Limit, String> {
    if text == "unlimited" {
        return Ok(Limit::Unlimited);
    }
    let amount =
        units::amount(resource, text, window).map_err(|reason| format!("{reason}, or \"unlimited\""))?;
    match u64::try_from(amount) {
        Ok(amount) if amount <= LARGEST => Ok(Limit::At(amount)),
        _ => Err("is more than a window can hold: write \"unlimited\" for no limit".into()),
    }
}

fn mode(text: &str) -> Result<Mode, String> {
    Mode::ALL
        .into_iter()
        .find(|mode| mode.as_str() == text)
        .ok_or_else(|| "must be \"off\", \"shadow\" or \"enforce\"".into())
}

fn rule(text: &str) -> Result<(), String> {
    match text {
        "fixed" => Ok(()),
        "aimd" | "double-halve" | "blame" => {
            Err(format!("the rule {text:?} is not available yet: write \"fixed\""))
        }
        _ => Err("must be \"fixed\"".into()),
    }
}
