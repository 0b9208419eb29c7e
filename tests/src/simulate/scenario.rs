use std::path::Path;

use quota_core::{Kind, PerKind, PerResource, Resource, WindowLength};
use serde::{Deserialize, Deserializer, de};

use super::aims::Aim;
use super::population::Population;

/// A situation to be simulated, as a file of `tests/simulate/scenarios` describes it. Times are in seconds from its start.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What happens, in one sentence.
    pub title: String,
    /// What the heavy traffic wants most of.
    #[serde(default = "cpu", deserialize_with = "resource")]
    pub loads: Resource,
    /// The kind of account of which the heavy ones are alike.
    #[serde(default = "user", deserialize_with = "kind")]
    pub equal: Kind,
    /// What its figures are not held to.
    #[serde(default)]
    pub excused: Vec<Excuse>,
    /// How long it lasts.
    #[serde(default = "twenty_minutes")]
    pub seconds: u32,
    /// When the heavy traffic begins.
    #[serde(default = "two_minutes")]
    pub from: u32,
    /// When it ends.
    #[serde(default = "fifteen_minutes")]
    pub until: u32,
    /// The fileservers, all alike.
    #[serde(default)]
    pub machine: Machine,
    /// How many fileservers there are.
    #[serde(default = "one")]
    pub nodes: u32,
    /// The one that is looked at; all, where none is named.
    #[serde(default)]
    pub looks_at: Option<u32>,
    /// Whether the fileservers tell their pressure alone, and not who uses what.
    #[serde(default)]
    pub thin: bool,
    /// Who asks for what.
    pub traffic: Vec<Population>,
}

/// A figure that a scenario is not held to.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Excuse {
    /// Which.
    pub figure: Aim,
    /// Why it cannot be had.
    pub why: String,
}

/// A fileserver.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Machine {
    /// Its processors.
    pub cores: f64,
    /// Its memory, in GiB.
    pub memory: f64,
    /// Its line, in MB a second.
    pub network: f64,
    /// When it has fewer processors.
    pub degraded: Option<Degraded>,
}

/// A time in which a machine has fewer processors.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Degraded {
    /// Since when.
    pub from: u32,
    /// Until when.
    pub until: u32,
    /// How many there are meanwhile.
    pub cores: f64,
}

impl Default for Machine {
    fn default() -> Self {
        Self { cores: 16.0, memory: 64.0, network: 1250.0, degraded: None }
    }
}

impl Scenario {
    /// Reads a file; else tells what is wrong with it.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Why a figure is not held to its aim.
    pub fn excuse(&self, figure: Aim) -> Option<&str> {
        self.excused.iter().find(|excuse| excuse.figure == figure).map(|excuse| excuse.why.as_str())
    }

    /// Whether a node counts.
    pub(super) fn looks_at(&self, node: usize) -> bool {
        self.looks_at.is_none_or(|only| only as usize == node)
    }

    /// The most that an account of a kind may use within a window, on all nodes together: a user half of what they
    /// have, a repository and an address three quarters.
    pub(super) fn ceilings(&self) -> PerKind<PerResource<u64>> {
        let capacity = self.machine.capacity();
        let window = WindowLength::default().length().as_secs();
        PerKind::from_fn(|kind| {
            let quarters = if kind == Kind::User { 2 } else { 3 };
            PerResource::from_fn(|resource| {
                capacity[resource] * u64::from(self.nodes) * window / 4 * quarters
            })
        })
    }
}

impl Machine {
    /// What it can spend in a second, in the internal unit of each resource.
    fn capacity(&self) -> PerResource<u64> {
        PerResource::new(
            (self.cores * 1e6) as u64,
            (self.memory * 1024.0 * 1024.0) as u64,
            (self.network * 1e6) as u64,
        )
    }

    /// What it tells of what it has: thousandths of a core, bytes, bytes a second.
    pub(super) fn capacity_at(&self, at: f64) -> PerResource<u64> {
        PerResource::new(
            (self.cores_at(at) * 1e3) as u64,
            (self.memory * f64::from(1 << 30)) as u64,
            (self.network * 1e6) as u64,
        )
    }

    /// The processors that it has at a moment.
    pub(super) fn cores_at(&self, at: f64) -> f64 {
        match self.degraded {
            Some(it) if (f64::from(it.from)..f64::from(it.until)).contains(&at) => it.cores,
            _ => self.cores,
        }
    }
}

fn resource<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Resource, D::Error> {
    let name = String::deserialize(deserializer)?;
    let found = Resource::ALL.into_iter().find(|resource| resource.as_str() == name);
    found.ok_or_else(|| de::Error::custom(format!("{name} is no resource")))
}

fn kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Kind, D::Error> {
    let name = String::deserialize(deserializer)?;
    let found = Kind::ALL.into_iter().find(|kind| kind.as_str() == name);
    found.ok_or_else(|| de::Error::custom(format!("{name} is no kind of account")))
}

const fn cpu() -> Resource {
    Resource::Cpu
}

const fn user() -> Kind {
    Kind::User
}

const fn two_minutes() -> u32 {
    120
}

const fn fifteen_minutes() -> u32 {
    900
}

const fn twenty_minutes() -> u32 {
    1200
}

const fn one() -> u32 {
    1
}
