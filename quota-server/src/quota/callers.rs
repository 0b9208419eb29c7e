use super::{Quota, QuotaError};
use crate::auth::{Caller, Refusal};

impl Quota {
    /// Refuses what a caller says in the name of a node that is not its own.
    pub fn speaks_for(&self, caller: &Caller, node: Option<&str>) -> Result<(), QuotaError> {
        caller.speaks_for(node).map_err(|refusal| self.refused(refusal))
    }

    /// Counts that a caller was refused.
    pub fn refused(&self, refusal: Refusal) -> QuotaError {
        self.metrics.refused(&refusal);
        refusal.into()
    }
}
