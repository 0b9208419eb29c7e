use std::str::FromStr;
use std::time::Duration;

use quota_core::{
    Adaptation, Adaptations, BUCKET_CAP, BUCKETS, Blame, Bound, Kind, Limit, Mode, PerKind, PerResource,
    Range, Ratio, Resource, Rule, WindowLength,
};

use super::error::ConfigError;
use super::layers::Settings;
use super::units;

/// The most that a window can hold of a resource: a larger limit would never be reached.
const LARGEST: u64 = BUCKETS * BUCKET_CAP;

/// How often the rule `double-halve` moves a limit.
const EACH_SECOND: Duration = Duration::from_secs(1);

/// The limits of each kind of account, and how those of a node are adapted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    ceilings: PerKind<PerResource<Bound>>,
    adaptations: Adaptations,
}

/// What is written of one limit.
struct Limits {
    mode: Mode,
    min: Limit,
    initial: Limit,
    max: Limit,
}

impl Limits {
    /// Whether a rule can move a limit between them.
    fn can_move(&self) -> bool {
        self.min > Limit::At(0) && self.max != Limit::Unlimited
    }
}

/// The rules that can be named.
#[derive(Clone, Copy, Debug)]
enum RuleName {
    Fixed,
    Aimd,
    DoubleHalve,
    Blame,
}

impl RuleName {
    const ALL: [Self; 4] = [Self::Fixed, Self::Aimd, Self::DoubleHalve, Self::Blame];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Aimd => "aimd",
            Self::DoubleHalve => "double-halve",
            Self::Blame => "blame",
        }
    }
}

impl FromStr for RuleName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|name| name.as_str() == text);
        found.ok_or_else(|| "must be \"fixed\", \"aimd\", \"double-halve\" or \"blame\"".to_owned())
    }
}

impl Policy {
    /// The limits of a kind of account for what it uses everywhere: the initial ones of a resource that is not adapted,
    /// the largest of one that is.
    pub fn ceilings(&self, kind: Kind) -> &PerResource<Bound> {
        &self.ceilings[kind]
    }

    /// How the limits of nodes are adapted.
    pub const fn adaptations(&self) -> &Adaptations {
        &self.adaptations
    }

    /// Every limit of [`Policy::ceilings`].
    pub fn iter(&self) -> impl Iterator<Item = (Kind, Resource, Bound)> {
        let of_kind =
            |(kind, bounds)| PerResource::iter(bounds).map(move |(resource, bound)| (kind, resource, *bound));
        self.ceilings.iter().flat_map(of_kind)
    }

    pub(super) fn read(settings: &Settings, window: WindowLength) -> Result<Self, ConfigError> {
        let none = Bound { limit: Limit::Unlimited, mode: Mode::Off };
        let mut policy = Self {
            ceilings: PerKind::from_fn(|_| PerResource::from_fn(|_| none)),
            adaptations: Adaptations::default(),
        };
        for resource in Resource::ALL {
            let limits = PerKind::new(
                limits(settings, Kind::Repo, resource, window.length())?,
                limits(settings, Kind::User, resource, window.length())?,
                limits(settings, Kind::Ip, resource, window.length())?,
            );
            policy.adaptations[resource] = adaptation(settings, resource, &limits, window)?;
            for (kind, Limits { mode, initial, .. }) in limits.iter() {
                let adapted = policy.adaptations[resource].as_ref();
                let limit = adapted.map_or(*initial, |adaptation| Limit::At(adaptation.ranges[kind].max));
                policy.ceilings[kind][resource] = Bound { limit, mode: *mode };
            }
        }
        Ok(policy)
    }
}

fn limits(
    settings: &Settings,
    kind: Kind,
    resource: Resource,
    window: Duration,
) -> Result<Limits, ConfigError> {
    let key = |name| ["limits", kind.as_str(), resource.as_str(), name];
    let read = |name| settings.text(&key(name), |text| limit(resource, text, window));
    let (min, initial, max) = (read("min")?, read("initial")?, read("max")?);
    for ((low, lower), (high, higher)) in [
        (("min", min), ("max", max)),
        (("min", min), ("initial", initial)),
        (("initial", initial), ("max", max)),
    ] {
        if lower > higher {
            return Err(settings.above(&key(low), &key(high)));
        }
    }
    Ok(Limits { mode: settings.text(&key("mode"), mode)?, min, initial, max })
}

/// How the limits of a resource are adapted; `None` under the rule `fixed`.
fn adaptation(
    settings: &Settings,
    resource: Resource,
    limits: &PerKind<Limits>,
    window: WindowLength,
) -> Result<Option<Adaptation>, ConfigError> {
    let key = |name| ["adapt", resource.as_str(), name];
    let ratio = |name, least, most| settings.decimal(&key(name), |value| ratio(value, least, most));
    let interval = settings.text(&key("interval"), |text| {
        units::duration_within(text, Duration::from_secs(1), Duration::from_secs(600))
    })?;
    let soft_limit = ratio("soft_limit", 0.01, 1.0)?;
    let backoff_factor = ratio("backoff_factor", 0.01, 0.99)?;
    let step = ratio("step", 0.01, 1.0)?;
    let name = settings.text(&key("rule"), str::parse::<RuleName>)?;
    let (rule, interval) = match name {
        RuleName::Fixed => return Ok(None),
        // The default is no reason to refuse limits that no rule can move.
        RuleName::Blame
            if !settings.is_written(&key("rule")) && !limits.iter().all(|(_, l)| l.can_move()) =>
        {
            return Ok(None);
        }
        RuleName::Aimd => (Rule::Aimd { soft_limit, backoff_factor }, interval),
        RuleName::DoubleHalve => (Rule::DoubleHalve, EACH_SECOND),
        RuleName::Blame => (Rule::Blame(Blame { soft_limit, backoff_factor, window }), interval),
    };
    let is_any_enforced = limits.iter().any(|(_, limits)| limits.mode == Mode::Enforce);
    let of = |kind: Kind| {
        let mut range = range(settings, kind, resource, &limits[kind], name)?;
        // To cut whom nobody holds to it would relieve nothing, and spare who can be cut. In shadow alone it shows who would be.
        let is_held = match limits[kind].mode {
            Mode::Off => false,
            Mode::Shadow => !is_any_enforced,
            Mode::Enforce => true,
        };
        if matches!(name, RuleName::Blame) && !is_held {
            range.min = range.max;
        }
        Ok::<_, ConfigError>(range)
    };
    let ranges = PerKind::new(of(Kind::Repo)?, of(Kind::User)?, of(Kind::Ip)?);
    Ok(Some(Adaptation { rule, interval, step, ranges }))
}

/// The limits that a rule moves between.
fn range(
    settings: &Settings,
    kind: Kind,
    resource: Resource,
    limits: &Limits,
    rule: RuleName,
) -> Result<Range, ConfigError> {
    let fault = |name, reason: &str| {
        let key = ["limits", kind.as_str(), resource.as_str(), name];
        settings.fault(&key, format!("{reason} under adapt.{resource}.rule = {:?}", rule.as_str()))
    };
    match (limits.min, limits.initial, limits.max) {
        (Limit::At(0), ..) => Err(fault("min", "must be more than 0, which would stop everything,")),
        // Single accounts are cut instead of their kind.
        (Limit::At(min), Limit::At(initial), Limit::At(max)) if matches!(rule, RuleName::Blame) => {
            let written = |name| settings.is_written(&["limits", kind.as_str(), resource.as_str(), name]);
            let most = if written("initial") && !written("max") { initial } else { max };
            Ok(Range { min, initial: most, max: most })
        }
        (Limit::At(min), Limit::At(initial), Limit::At(max)) => Ok(Range { min, initial, max }),
        _ => Err(fault("max", "must be an amount, since steps are shares of it,")),
    }
}

fn ratio(value: f64, least: f64, most: f64) -> Result<Ratio, String> {
    match Ratio::try_from(value) {
        Ok(ratio) if (least..=most).contains(&value) => Ok(ratio),
        _ => Err(format!("must be from {least} to {most}")),
    }
}

/// A limit as it is written; memory as the average held over the window.
pub(crate) fn limit(resource: Resource, text: &str, window: Duration) -> Result<Limit, String> {
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
