use quota_core::{Heaviest, Kind, Resource};

use super::summary::Summary;

/// Whom another server calls the heaviest.
///
/// Whatever it says: it is read as it was written, and a list is no longer than is asked for, heaviest first.
pub(crate) fn post(content: &[u8]) {
    const MOST: usize = 4;
    let Ok(told) = serde_json::from_slice::<Summary>(content) else { return };
    let written = serde_json::to_vec(&told).unwrap_or_default();
    assert_eq!(serde_json::from_slice(&written).ok().as_ref(), Some(&told));
    for kind in Kind::ALL {
        for resource in Resource::ALL {
            let mut heaviest = Heaviest::new(MOST);
            heaviest.absorb(told.used(kind, resource), 0);
            heaviest.absorb(told.denied(kind), u64::MAX);
            let listed = heaviest.heaviest(MOST);
            assert!(
                listed.len() <= MOST && listed.is_sorted_by(|(_, one), (_, next)| one.amount >= next.amount)
            );
            assert!(listed.iter().all(|(account, _)| account.kind() == kind));
        }
    }
}
