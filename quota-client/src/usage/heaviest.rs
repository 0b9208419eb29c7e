use std::cmp::Reverse;
use std::collections::HashSet;

use quota_core::{Account, NodeReport, Resource};

use super::Used;

/// What an account used within the window, and how much of it it spent lately.
#[derive(Clone, Copy)]
pub(super) struct Told<'a> {
    pub(super) account: &'a Account,
    pub(super) used: &'a Used,
    pub(super) recent: quota_core::Usage,
}

/// The heaviest of one kind, at most as many as a report may name: of each resource in turn those that used the most, and
/// those that spent the most lately, so that none of CPU crowds out one of memory or network, and no old one crowds out one
/// that has just begun.
pub(super) fn heaviest_of<'a>(told: &[Told<'a>]) -> Vec<Told<'a>> {
    let of_used = Resource::ALL.map(|resource| first(told, |told| told.used.window.usage()[resource]));
    let of_recent = Resource::ALL.map(|resource| first(told, |told| told.recent[resource]));
    let mut ranks: Vec<_> = of_used.into_iter().chain(of_recent).map(Vec::into_iter).collect();
    let (mut heaviest, mut named) = (Vec::new(), HashSet::new());
    loop {
        let before = heaviest.len();
        for rank in &mut ranks {
            if heaviest.len() < NodeReport::MAX_HEAVIEST {
                heaviest.extend(rank.find(|told| named.insert(told.account)));
            }
        }
        if heaviest.len() == before {
            return heaviest;
        }
    }
}

/// Those that have any of this, the most first.
fn first<'a>(told: &[Told<'a>], amount: impl Fn(&Told<'a>) -> u64) -> Vec<Told<'a>> {
    let mut told: Vec<_> = told.iter().copied().filter(|told| amount(told) > 0).collect();
    let order = |told: &Told<'a>| Reverse(amount(told));
    if told.len() > NodeReport::MAX_HEAVIEST {
        // Of thousands only these are put in order.
        told.select_nth_unstable_by_key(NodeReport::MAX_HEAVIEST, order);
        told.truncate(NodeReport::MAX_HEAVIEST);
    }
    told.sort_unstable_by_key(order);
    told
}
