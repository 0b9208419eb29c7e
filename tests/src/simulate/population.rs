use serde::Deserialize;

/// Users that do alike.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Population {
    /// What their accounts are called.
    pub name: String,
    /// An earlier population, as many as this, whose accounts these use: the same people, who do something else beside.
    #[serde(default)]
    pub are: Option<String>,
    /// Whether they are there only while the heavy traffic is, and are those to be held back.
    #[serde(default)]
    pub heavy: bool,
    /// When they come, where not with the others of their sort.
    #[serde(default)]
    pub from: Option<u32>,
    /// When they go.
    #[serde(default)]
    pub until: Option<u32>,
    /// How many they are.
    pub users: u32,
    /// The repositories that their requests are about.
    #[serde(default)]
    pub repos: Spread,
    /// The addresses that their requests come from.
    #[serde(default)]
    pub ips: Spread,
    /// How often each asks, a second.
    #[serde(default)]
    pub rate: f64,
    /// How many requests each keeps running.
    #[serde(default)]
    pub parallel: u32,
    /// Only at some times.
    #[serde(default)]
    pub burst: Option<Burst>,
    /// Processor time of a request, in seconds, on average (exponential).
    #[serde(default)]
    pub cpu: f64,
    /// Memory that it holds while it runs, in MiB.
    #[serde(default)]
    pub memory: f64,
    /// By how much that grows, in MiB a second.
    #[serde(default)]
    pub leak: f64,
    /// What it sends, in MB, on average (exponential).
    #[serde(default)]
    pub network: f64,
    /// How fast the client reads, in MB a second.
    #[serde(default = "fast")]
    pub reads: f64,
    /// How long it lasts at least, in seconds, on average (exponential): it waits for something else.
    #[serde(default)]
    pub waits: f64,
    /// What a client does that was refused.
    #[serde(default)]
    pub refused: Refused,
    /// The node that they use; without, each request goes to one at random.
    #[serde(default)]
    pub node: Option<u32>,
}

/// Repositories or addresses.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// Each user has one.
    #[default]
    Own,
    /// All share one.
    One,
    /// Each request takes one of so many, at random.
    Any(u32),
    /// The users share so many.
    Among(u32),
}

/// Only in the first seconds of each period.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// In how many.
    pub seconds: u32,
    /// How long a period is, in seconds.
    pub every: u32,
}

/// What a client does that was refused.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Refused {
    /// It does without; one that keeps requests running looks again in a second.
    #[default]
    GivesUp,
    /// It asks again at once, and again.
    TriesAtOnce,
    /// It waits as long as it was told.
    Waits,
}

const fn fast() -> f64 {
    1000.0
}
