use crate::{Denial, Meter};

/// Whether a request may be executed.
#[must_use = "a request that is denied must not be executed"]
#[derive(Debug)]
pub enum Decision {
    /// It may. What it was expected to cost is settled against what is metered when the admission is dropped.
    Allow(Admission),
    /// It may not.
    Deny(Denial),
}

/// Leave to execute a request. Keep it, or a [`Meter`] of it, until the work has ended.
#[derive(Debug)]
pub struct Admission {
    meter: Meter,
    checked: bool,
}

impl Admission {
    pub(crate) const fn new(meter: Meter, checked: bool) -> Self {
        Self { meter, checked }
    }

    /// Whether the service has compared the request with its limits. It has not while it, or its store, is away:
    /// then every request is allowed.
    pub const fn checked(&self) -> bool {
        self.checked
    }

    /// What counts the work's cost.
    pub fn meter(&self) -> Meter {
        self.meter.clone()
    }
}
