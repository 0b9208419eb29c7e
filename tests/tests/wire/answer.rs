//! Answers as plain data, in the same terms from either protocol.

use std::time::Duration;

use crate::request::{Amounts, NOTHING, Word};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    Allow {
        reserved: Amounts,
        /// Whether it carried a reservation.
        reservation: bool,
        checked: bool,
        shadow: Option<Breach>,
        /// What of a limit is granted beside, and for how long.
        share: Option<(Amounts, Duration)>,
        standings: Vec<Standing>,
    },
    Deny {
        denied_by: Breach,
        permanent: bool,
        standings: Vec<Standing>,
    },
    Reported {
        applied: u64,
        dropped_old: u64,
        duplicate: bool,
    },
    Standing(Standing),
    /// The node, whether it was calibrated, and the limits of its users.
    Pressured {
        node: String,
        calibrated: bool,
        limits: Limits,
    },
    Nodes(Vec<Node>),
    /// What was asked about, kind, resource and node, and who is heaviest there.
    Top([String; 3], Vec<Consumer>),
    /// The seconds that were asked about, what was denied in them, and what was missed of each.
    Denials(f64, Vec<DenialCount>, u64),
    Override(Override),
    Overrides(Vec<Override>),
    Mode(ModeSetting),
    Modes(Vec<ModeSetting>),
    /// Done, and nothing to tell.
    Deleted,
    GoOn,
    BackOff {
        denied_by: Breach,
        permanent: bool,
    },
    /// To each of several questions, in their order.
    Each(Vec<Answer>),
    Refused {
        class: Class,
        /// Empty where no field is at fault. Units at its end are left out: `cpu`, not `cpu_micros`.
        field: String,
    },
}

/// What kind of error it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Invalid,
    TooLarge,
    Unavailable,
    Corrupt,
    NotFound,
}

/// What an operator says of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Override {
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) word: Word,
    pub(crate) reason: String,
    pub(crate) author: String,
    /// `api` or `file`.
    pub(crate) origin: String,
    /// Whether it tells when it ends.
    pub(crate) expires: bool,
}

/// How far limits are enforced in a part of the system, but for since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModeSetting {
    /// Empty where it is of no node.
    pub(crate) node: String,
    /// Empty where it is of no kind.
    pub(crate) kind: String,
    pub(crate) mode: String,
    pub(crate) reason: String,
    pub(crate) author: String,
}

/// Of CPU, memory and network; `None`: unlimited.
pub(crate) type Limits = [Option<u64>; 3];

/// What is told of a node, but for how long ago things were.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) name: String,
    /// Of CPU, memory and network.
    pub(crate) pressure: [Option<f64>; 3],
    /// Those of users.
    pub(crate) limits: Limits,
    /// The last of CPU: reason, mean pressure, and the limit of users before and after.
    pub(crate) calibration: Option<(String, f64, u64, u64)>,
    /// Thousandths of a core.
    pub(crate) cores: Option<u64>,
    pub(crate) active_users: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Consumer {
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) used: u64,
    /// `None`: unlimited.
    pub(crate) limit: Option<u64>,
    pub(crate) denied: u64,
}

/// What was denied how often, but for how long ago the last was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DenialCount {
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) resource: String,
    /// Empty where it was not told.
    pub(crate) rpc: String,
    pub(crate) mode: String,
    pub(crate) count: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Breach {
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) resource: String,
    /// `cluster` or `node`.
    pub(crate) scope: String,
    pub(crate) used: u64,
    /// `None`: unlimited.
    pub(crate) limit: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) over: bool,
    pub(crate) used: Amounts,
    /// Limit and mode of CPU, memory and network.
    pub(crate) limits: [(Option<u64>, String); 3],
    /// What was used on the node, and the limit there, of CPU.
    pub(crate) here: Option<(u64, u64)>,
}

/// An answer with what differs each time.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) answer: Answer,
    /// When to come back, as a deny or a backoff says it; of several, the longest.
    pub(crate) wait: Option<Duration>,
    /// When to come back, exactly: the latest of the standings.
    pub(crate) exact: Duration,
    pub(crate) reservation: Option<String>,
}

impl Seen {
    /// Of several answers at once.
    pub(crate) fn each(seen: Vec<Self>) -> Self {
        let wait = seen.iter().filter_map(|seen| seen.wait).max();
        Self { wait, ..Answer::Each(seen.into_iter().map(|seen| seen.answer).collect()).into() }
    }
}

impl From<Answer> for Seen {
    fn from(answer: Answer) -> Self {
        Self { answer, wait: None, exact: Duration::ZERO, reservation: None }
    }
}

/// What a step of a case should be answered.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    pub(crate) answer: Answer,
    pub(crate) wait: Option<Wait>,
}

/// How long the answer says to wait, before jitter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    /// Until what was spent so many seconds before the case began leaves the window, so many times.
    SpentBefore(f64, f64),
    /// So many seconds.
    Exactly(f64),
    /// So many seconds from the step before.
    Nearly(f64),
}

/// The limits that the cases start from, by kind: user 10 s, repo 20 s, ip 30 s of CPU; the defaults for the rest.
pub(crate) const LIMITS: &str = "limits.user.cpu.initial = \"10s\"
limits.repo.cpu.initial = \"20s\"
limits.ip.cpu.initial = \"30s\"
";

const GIB: u64 = 1 << 30;

/// A standing under [`LIMITS`] with nothing used.
pub(crate) fn standing(kind: &str, id: &str) -> Standing {
    let (seconds, gib) = match kind {
        "user" => (10, 1),
        "repo" => (20, 1),
        "ip" => (30, 2),
        _ => panic!("no kind: {kind}"),
    };
    let limits = [
        (Some(seconds * 1_000_000), "enforce".to_owned()),
        (Some(gib * 8 * GIB * 60), "shadow".to_owned()),
        (Some(gib * 10 * GIB), "shadow".to_owned()),
    ];
    Standing { kind: kind.to_owned(), id: id.to_owned(), over: false, used: NOTHING, limits, here: None }
}

impl Standing {
    pub(crate) fn used(self, used: Amounts) -> Self {
        Self { used, ..self }
    }

    pub(crate) fn here(self, used: u64, limit: u64) -> Self {
        Self { here: Some((used, limit)), ..self }
    }

    pub(crate) fn over(self) -> Self {
        Self { over: true, ..self }
    }

    /// The same with another limit of the resource at this place: CPU, memory, network.
    pub(crate) fn limit(mut self, resource: usize, limit: Option<u64>, mode: &str) -> Self {
        self.limits[resource] = (limit, mode.to_owned());
        self
    }
}

pub(crate) fn breach(kind: &str, id: &str, resource: &str, used: u64, limit: u64) -> Breach {
    let [kind, id, resource, scope] = [kind, id, resource, "cluster"].map(str::to_owned);
    Breach { kind, id, resource, scope, used, limit: Some(limit) }
}

impl Breach {
    /// The same of a node's limit.
    pub(crate) fn on_the_node(self) -> Self {
        Self { scope: "node".to_owned(), ..self }
    }
}

impl Expected {
    /// The same, with these standings, or with this one as the whole answer.
    pub(crate) fn told(mut self, standing: Standing) -> Self {
        match &mut self.answer {
            Answer::Allow { standings, .. } | Answer::Deny { standings, .. } => standings.push(standing),
            other => panic!("no standings in {other:?}"),
        }
        self
    }

    pub(crate) fn shares(mut self, granted: Amounts) -> Self {
        match &mut self.answer {
            Answer::Allow { share, .. } => *share = Some((granted, Duration::from_millis(500))),
            other => panic!("no share in {other:?}"),
        }
        self
    }

    pub(crate) fn shadowed(mut self, breach: Breach) -> Self {
        match &mut self.answer {
            Answer::Allow { shadow, .. } => *shadow = Some(breach),
            other => panic!("no shadow in {other:?}"),
        }
        self
    }

    pub(crate) fn permanent(mut self, seconds: f64) -> Self {
        match &mut self.answer {
            Answer::Deny { permanent, .. } | Answer::BackOff { permanent, .. } => *permanent = true,
            other => panic!("not permanent: {other:?}"),
        }
        self.wait = Some(Wait::Exactly(seconds));
        self
    }

    /// The same until the end of what was said in the step before.
    pub(crate) fn permanent_for_about(self, seconds: f64) -> Self {
        Self { wait: Some(Wait::Nearly(seconds)), ..self.permanent(seconds) }
    }

    pub(crate) fn waits(self, wait: Wait) -> Self {
        Self { wait: Some(wait), ..self }
    }
}

impl From<Answer> for Expected {
    fn from(answer: Answer) -> Self {
        Self { answer, wait: None }
    }
}

impl From<Standing> for Expected {
    fn from(standing: Standing) -> Self {
        let wait = standing.over.then_some(Wait::SpentBefore(0.0, 1.0));
        Self { answer: Answer::Standing(standing), wait }
    }
}

pub(crate) fn allow(reserved: Amounts) -> Expected {
    let reservation = reserved != NOTHING;
    Answer::Allow { reserved, reservation, checked: true, shadow: None, share: None, standings: Vec::new() }
        .into()
}

/// Denied for what was spent in this case just before.
pub(crate) fn deny(denied_by: Breach) -> Expected {
    let answer = Answer::Deny { denied_by, permanent: false, standings: Vec::new() };
    Expected { answer, wait: Some(Wait::SpentBefore(0.0, 1.0)) }
}

pub(crate) fn back_off(denied_by: Breach) -> Expected {
    let answer = Answer::BackOff { denied_by, permanent: false };
    Expected { answer, wait: Some(Wait::SpentBefore(0.0, 1.0)) }
}

/// To several questions at once: the wait is the last one's.
pub(crate) fn each(expected: impl IntoIterator<Item = Expected>) -> Expected {
    let expected: Vec<Expected> = expected.into_iter().collect();
    let wait = expected.last().and_then(|last| last.wait);
    Expected { answer: Answer::Each(expected.into_iter().map(|expected| expected.answer).collect()), wait }
}

pub(crate) fn reported(applied: u64) -> Expected {
    Answer::Reported { applied, dropped_old: 0, duplicate: false }.into()
}

pub(crate) fn refused(class: Class, field: &str) -> Expected {
    Answer::Refused { class, field: field.to_owned() }.into()
}

pub(crate) fn invalid(field: &str) -> Expected {
    refused(Class::Invalid, field)
}
