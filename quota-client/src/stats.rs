/// What a client did since it was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Requests that the service allowed.
    pub allowed: u64,
    /// Requests allowed without asking, by a share that the service had reserved for this fileserver.
    pub allowed_by_share: u64,
    /// Requests allowed without the service's word: it was away, late, without its store, or in error.
    pub allowed_unchecked: u64,
    /// Those of them that were compared with the last known limits, by what was used here; the others are of accounts of
    /// which nothing was known yet.
    pub allowed_locally: u64,
    /// Requests that the service refused, since an account is over its limit.
    pub denied: u64,
    /// Requests that were refused without asking, since an earlier refusal of the service stands.
    pub denied_remembered: u64,
    /// Requests that were refused by the last known limits, while the service was away or did not know yet what was used
    /// here in that time.
    pub denied_locally: u64,
    /// Requests that were refused, since the service cannot check and is set to refuse then.
    pub refused_unavailable: u64,
    /// Requests allowed that a limit in shadow would have refused; they are among `allowed` too.
    pub shadow: u64,
    /// Requests of which a name was left out, since the service would not take it.
    pub invalid: u64,
    /// Requests that the classifier of a [`QuotaLayer`](crate::QuotaLayer) skipped.
    pub skipped: u64,
    /// Requests that name no account, or none that the service would take: allowed, neither checked nor charged.
    pub without_account: u64,
    /// Reports that were acknowledged.
    pub reports_sent: u64,
    /// Reports that all accounts have, but some that could not take theirs and are not charged.
    pub reports_partly_stored: u64,
    /// Times that a report was sent again.
    pub reports_resent: u64,
    /// Charges that wait to be reported, or are on their way.
    pub charges_pending: u64,
    /// Charges that were given up: refused, too old, or too many while the service was away.
    pub charges_lost: u64,
    /// Charges that were too old to count when the service had them.
    pub charges_too_old: u64,
    /// Requests in flight that were ended, since the machine was overloaded.
    pub shed: u64,
    /// Times that what the kernel counted as CPU time was cut down to what all processors could have given since the work
    /// began, and a tenth: a counter was wrong.
    pub cost_clamped: u64,
    /// Cgroups of requests that are left behind, since they cannot be removed.
    pub cgroups_left: u64,
}
