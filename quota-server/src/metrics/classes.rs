use parking_lot::Mutex;
use prometheus::{IntCounterVec, IntGaugeVec, Opts, Registry};
use quota_core::{NoSlot, SlotStanding};

use crate::config::Classes;

/// The metrics of classes of traffic. Their names are those of the configuration.
pub struct ClassMetrics {
    leased: IntGaugeVec,
    caps: IntGaugeVec,
    calls: IntCounterVec,
    overruns: IntCounterVec,
    /// The classes that are shown.
    shown: Mutex<Vec<Box<str>>>,
}

/// What became of a call about slots, as a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotOutcome {
    /// Slots were leased.
    Leased,
    /// All slots of the class were.
    AtCap,
    /// All that the node may have were.
    AtNodeCap,
    /// What was leased before was not known.
    Opening,
    /// As many leases were kept as may be.
    TooManyLeases,
    /// A lease goes on.
    Renewed,
    /// A lease had ended that was to go on.
    Ended,
    /// A lease was given back.
    Released,
}

impl SlotOutcome {
    const ALL: [Self; 8] = [
        Self::Leased,
        Self::AtCap,
        Self::AtNodeCap,
        Self::Opening,
        Self::TooManyLeases,
        Self::Renewed,
        Self::Ended,
        Self::Released,
    ];

    /// The label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Leased => "leased",
            Self::AtCap => "at_cap",
            Self::AtNodeCap => "at_node_cap",
            Self::Opening => "opening",
            Self::TooManyLeases => "too_many_leases",
            Self::Renewed => "renewed",
            Self::Ended => "ended",
            Self::Released => "released",
        }
    }
}

impl From<NoSlot> for SlotOutcome {
    fn from(refused: NoSlot) -> Self {
        match refused {
            NoSlot::AtCap => Self::AtCap,
            NoSlot::AtNodeCap => Self::AtNodeCap,
            NoSlot::Opening(_) => Self::Opening,
            NoSlot::TooManyLeases => Self::TooManyLeases,
        }
    }
}

impl ClassMetrics {
    pub(super) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let leased = Opts::new(
            "quota_slots",
            "Slots of a class that were leased, when that was last told to this server.",
        );
        let caps =
            Opts::new("quota_slot_cap", "The cap on slots of a class, when it was last told to this server.");
        let calls = Opts::new(
            "quota_slot_calls_total",
            "Calls about slots of a class by way of this server, by outcome.",
        );
        let overruns = Opts::new(
            "quota_slot_overruns_total",
            "Requests of a class that still ran when their slot was no more, told to this server.",
        );
        let metrics = Self {
            leased: IntGaugeVec::new(leased, &["class"])?,
            caps: IntGaugeVec::new(caps, &["class"])?,
            calls: IntCounterVec::new(calls, &["class", "outcome"])?,
            overruns: IntCounterVec::new(overruns, &["class"])?,
            shown: Mutex::default(),
        };
        registry.register(Box::new(metrics.leased.clone()))?;
        registry.register(Box::new(metrics.caps.clone()))?;
        registry.register(Box::new(metrics.calls.clone()))?;
        registry.register(Box::new(metrics.overruns.clone()))?;
        Ok(metrics)
    }

    /// Shows the classes that have a cap, and forgets all others.
    pub(super) fn show(&self, classes: &Classes) {
        self.leased.reset();
        self.caps.reset();
        for (class, _) in classes.iter().filter(|(_, class)| class.slots.is_some()) {
            for outcome in SlotOutcome::ALL {
                self.calls.with_label_values(&[class, outcome.as_str()]);
            }
            self.overruns.with_label_values(&[class]);
        }
        for class in self.shown.lock().drain(..).filter(|class| classes.get(Some(class)).is_none()) {
            // An error says that there was no value.
            let _ = self.overruns.remove_label_values(&[&class]);
            for outcome in SlotOutcome::ALL {
                let _ = self.calls.remove_label_values(&[&class, outcome.as_str()]);
            }
        }
        *self.shown.lock() = classes.iter().map(|(class, _)| class.into()).collect();
    }

    /// Counts requests that still ran when their slot was no more.
    pub fn overrun(&self, class: &str, requests: u32) {
        self.overruns.with_label_values(&[class]).inc_by(requests.into());
    }

    /// Counts a call about slots, and shows what it told.
    pub fn slots(&self, class: &str, outcome: SlotOutcome, standing: SlotStanding) {
        self.calls.with_label_values(&[class, outcome.as_str()]).inc();
        self.leased.with_label_values(&[class]).set(standing.leased.into());
        self.caps.with_label_values(&[class]).set(standing.cap.into());
    }
}
