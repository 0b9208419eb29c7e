//! How limits adapt, simulated: the very code of `quota-core`, on machines and under traffic that scenarios describe.
//!
//! Everything random comes from a seed, and no clock is read: the same run twice is the same to the last bit. Random numbers
//! of one population do not depend on what becomes of its requests where these come at a rate, so that every rule sees
//! the same light requests.

mod aims;
mod contender;
mod figures;
mod limits;
mod machine;
mod node;
mod population;
mod quota;
mod run;
mod scenario;
mod trace;
mod traffic;

pub use aims::{Aim, SOFT_LIMIT};
pub use contender::{Contender, Kit};
pub use figures::{Figures, light_p95, relief_seconds};
pub use run::{Heavy, run};
pub use scenario::{Excuse, Scenario};
pub use trace::{Second, Trace};
