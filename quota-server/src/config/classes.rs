use std::collections::BTreeMap;
use std::time::Duration;

use quota_core::{Adaptive, Cap, Ratio, SlotTerms};

use super::error::ConfigError;
use super::layers::Settings;
use super::units::{self, within};

/// The most classes: each has metrics of its own.
const MOST: usize = 32;

/// The longest name, in bytes: it is a label of metrics.
const MOST_BYTES: usize = 64;

/// What classes have where nothing else is said of them.
const DEFAULT: &str = "default";

/// The most slots of a class.
const MOST_SLOTS: u32 = 1_000_000;

/// The kinds of traffic, and how each is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    default: Box<str>,
    by_name: BTreeMap<Box<str>, Class>,
}

/// How a kind of traffic is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// How many of its requests may be in progress; none: as many as like.
    pub slots: Option<SlotTerms>,
    /// What becomes of a request for which there is no slot.
    pub service: Service,
    /// How long a request may run that has a slot; none: as long as it likes.
    pub max_run: Option<Duration>,
    /// How much of the limits of an account its requests may use.
    pub part: Ratio,
}

/// What becomes of a request for which there is no slot. Waiting is the holders' affair: they are told this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// It is refused at once.
    Immediate,
    /// It waits, in a queue.
    Patient {
        /// The longest.
        max_wait: Duration,
        /// The most that wait in one process.
        max_queue: u32,
    },
}

impl Classes {
    /// A class by its name, or that of requests which name none.
    pub fn get(&self, name: Option<&str>) -> Option<(&str, &Class)> {
        let name = name.unwrap_or(&self.default);
        self.by_name.get_key_value(name).map(|(name, class)| (&**name, class))
    }

    /// Every class, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Class)> {
        self.by_name.iter().map(|(name, class)| (&**name, class))
    }

    pub(super) fn read(settings: &Settings) -> Result<Self, ConfigError> {
        let mut by_name = BTreeMap::<Box<str>, Class>::new();
        for name in settings.names(&["classes"])? {
            let class = read(settings, name)?;
            if name == DEFAULT {
                continue;
            }
            let is_plain =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
            if name.is_empty() || name.len() > MOST_BYTES || !name.bytes().all(is_plain) {
                let reason = format!("the name of a class must be 1 to {MOST_BYTES} of a-z, 0-9, - and _");
                return Err(settings.fault(&["classes", name], reason));
            }
            if by_name.len() == MOST {
                return Err(
                    settings.fault(&["classes", name], format!("there can be at most {MOST} classes"))
                );
            }
            by_name.insert(name.into(), class);
        }
        let default = settings.text(&["default_class"], |name| match by_name.get_key_value(name) {
            Some((name, _)) => Ok(name.clone()),
            None => Err("must be the name of one of the classes".to_owned()),
        })?;
        Ok(Self { default, by_name })
    }
}

fn read(settings: &Settings, class: &str) -> Result<Class, ConfigError> {
    let key = |name| {
        let own = ["classes", class, name];
        if settings.has(&own) { own } else { ["classes", DEFAULT, name] }
    };
    let number = |name, least, most| settings.number(&key(name), |n| within::<u32>(n, least, most));
    let time = |name, least, most| {
        settings.text(&key(name), |text| units::duration_within(text, least, Duration::from_secs(most)))
    };
    let (most, least) = (number("slots", 0, MOST_SLOTS)?, number("min_slots", 0, MOST_SLOTS)?);
    if least > most {
        return Err(settings.fault(&key("min_slots"), format!("must be at most {most}, as many as slots")));
    }
    let tolerance = settings.decimal(&key("tolerance"), tolerance)?;
    let adaptive = Adaptive { min: least, max: most, tolerance };
    let cap = if least == 0 { Cap::Fixed(most) } else { Cap::Adaptive(adaptive) };
    let node_cap = Some(number("node_slots", 0, MOST_SLOTS)?).filter(|most| *most > 0);
    let lasts = time("lease", Duration::from_secs(1), 60)?;
    let max_wait = time("max_wait", Duration::ZERO, 600)?;
    let max_queue = number("max_queue", 0, MOST_SLOTS)?;
    let service = settings.text(&key("service"), |text| match text {
        "immediate" => Ok(Service::Immediate),
        "patient" => Ok(Service::Patient { max_wait, max_queue }),
        _ => Err("must be \"immediate\" or \"patient\"".to_owned()),
    })?;
    let max_run = Some(time("max_run", Duration::ZERO, 24 * 3600)?).filter(|run| !run.is_zero());
    let part = settings.decimal(&key("quota"), part)?;
    Ok(Class { slots: (most > 0).then_some(SlotTerms { cap, node_cap, lasts }), service, max_run, part })
}

/// In hundredths.
fn tolerance(value: f64) -> Result<u32, String> {
    if (1.1..=100.0).contains(&value) {
        Ok((value * 100.0).round() as u32)
    } else {
        Err("must be from 1.1 to 100".to_owned())
    }
}

fn part(value: f64) -> Result<Ratio, String> {
    match Ratio::try_from(value) {
        Ok(part) if value >= 0.001 => Ok(part),
        _ => Err("must be from 0.001 to 1".to_owned()),
    }
}
