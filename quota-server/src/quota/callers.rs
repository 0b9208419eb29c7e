use super::{Label, Quota, QuotaError};
use crate::auth::{Caller, Refusal};

impl Quota {
    /// Refuses what a caller says in the name of a node that is not its own.
    pub fn speaks_for(&self, caller: &Caller, node: Option<&str>) -> Result<(), QuotaError> {
        caller.speaks_for(node).map_err(|refusal| self.refused(refusal))
    }

    /// The node that a caller's slots are counted for: the one that it names, else the first of those that it is bound to.
    /// To name none is no way round what a node may have.
    pub fn node_of_slots(&self, caller: &Caller, node: Label) -> Result<Label, QuotaError> {
        self.speaks_for(caller, node.as_deref())?;
        Ok(if node == Label::default() { Label::new("node", caller.first_node())? } else { node })
    }

    /// Counts that a caller was refused.
    pub fn refused(&self, refusal: Refusal) -> QuotaError {
        self.metrics.refused(&refusal);
        refusal.into()
    }
}
