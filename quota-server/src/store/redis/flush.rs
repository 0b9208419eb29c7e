//! Which calls settle the reports that go together: each account once, with all that they say of it.

use std::collections::HashMap;

use crate::store::MAX_CHARGES;

/// What one report says of one account.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) key: String,
    /// As the script takes it.
    pub(super) packed: Vec<u8>,
    /// Its charges or its releases, whichever are more.
    pub(super) size: usize,
}

/// Which part of which report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) report: usize,
    pub(super) part: usize,
}

/// One call of the script.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) keys: Vec<String>,
    /// Of each account what reports say of it, one after the other.
    pub(super) packed: Vec<Vec<u8>>,
    /// Which those are.
    pub(super) places: Vec<Vec<Place>>,
    size: usize,
}

/// Calls of at most so many accounts, and of as many charges as the script takes. What the reports say of an account comes in
/// their order; where it is too much for one call, in several of them, in that order.
pub(super) fn group<'a>(reports: impl IntoIterator<Item = &'a [Part]>, accounts: usize) -> Vec<Group> {
    let (mut groups, mut group) = (Vec::new(), Group::default());
    for of_account in by_account(reports) {
        let mut is_in = false;
        for (place, part) in of_account {
            // Without a charge it is a report nevertheless.
            let size = part.size.max(1);
            let fits = group.size + size <= MAX_CHARGES && (is_in || group.keys.len() < accounts);
            if !fits && !group.keys.is_empty() {
                groups.push(std::mem::take(&mut group));
                is_in = false;
            }
            if !is_in {
                group.keys.push(part.key.clone());
                group.packed.push(Vec::new());
                group.places.push(Vec::new());
                is_in = true;
            }
            if let (Some(packed), Some(places)) = (group.packed.last_mut(), group.places.last_mut()) {
                packed.extend_from_slice(&part.packed);
                places.push(place);
            }
            group.size += size;
        }
    }
    groups.push(group);
    groups.retain(|group| !group.keys.is_empty());
    groups
}

/// What the reports say, by account, in the order in which each is first named.
fn by_account<'a>(reports: impl IntoIterator<Item = &'a [Part]>) -> Vec<Vec<(Place, &'a Part)>> {
    let (mut all, mut index) = (Vec::<Vec<_>>::new(), HashMap::<&str, usize>::new());
    for (report, parts) in reports.into_iter().enumerate() {
        for (number, part) in parts.iter().enumerate() {
            let at = *index.entry(&part.key).or_insert(all.len());
            if at == all.len() {
                all.push(Vec::new());
            }
            all[at].push((Place { report, part: number }, part));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn part(account: u8, size: usize) -> Part {
        Part { key: account.to_string(), packed: vec![account, size as u8], size }
    }

    fn reports() -> impl Strategy<Value = Vec<Vec<Part>>> {
        let sizes = prop_oneof![0..4_usize, 300..=MAX_CHARGES];
        // A report names an account once.
        let report = vec((0..12_u8, sizes), 0..8).prop_map(|parts| {
            let parts: HashMap<u8, usize> = parts.into_iter().collect();
            parts.into_iter().map(|(account, size)| part(account, size)).collect()
        });
        vec(report, 0..12)
    }

    proptest! {
        #[test]
        fn every_part_is_in_one_call_with_its_account_in_the_order_of_the_reports(
            reports in reports(),
            accounts in 1..5_usize,
        ) {
            let groups = group(reports.iter().map(Vec::as_slice), accounts);
            let mut seen = HashMap::<String, Vec<usize>>::new();
            let mut parts = 0;
            for Group { keys, packed, places, .. } in &groups {
                prop_assert!((1..=accounts).contains(&keys.len()));
                prop_assert_eq!(keys.iter().collect::<HashSet<_>>().len(), keys.len(), "an account is twice in a call");
                let part_at = |place: &Place| &reports[place.report][place.part];
                let size: usize = places.iter().flatten().map(|place| part_at(place).size).sum();
                prop_assert!(size <= MAX_CHARGES && places.iter().map(Vec::len).sum::<usize>() <= MAX_CHARGES);
                for ((key, packed), places) in keys.iter().zip(packed).zip(places) {
                    let expected: Vec<u8> = places.iter().flat_map(|place| part_at(place).packed.clone()).collect();
                    prop_assert_eq!(packed, &expected);
                    for place in places {
                        prop_assert_eq!(&part_at(place).key, key);
                        seen.entry(key.clone()).or_default().push(place.report);
                        parts += 1;
                    }
                }
            }
            prop_assert_eq!(parts, reports.iter().map(Vec::len).sum::<usize>());
            for (account, order) in seen {
                prop_assert!(order.is_sorted(), "{account}: {order:?}");
            }
        }

        #[test]
        fn calls_follow_accounts_and_not_reports(reports in 1..50_usize, accounts in 1..20_u8) {
            let each: Vec<Vec<Part>> =
                (0..reports).map(|_| (0..accounts).map(|account| part(account, 1)).collect()).collect();
            let groups = group(each.iter().map(Vec::as_slice), 4);
            prop_assert_eq!(groups.len(), usize::from(accounts).div_ceil(4));
        }
    }
}
