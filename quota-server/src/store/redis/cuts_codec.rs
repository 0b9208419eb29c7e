//! Who uses what on a node, and who is cut there, as `lua/blame.lua` describes them.

use quota_core::{
    Account, Adaptations, Blamed, Cut, Cuts, Kind, Load, NodeReport, PerKind, PerResource, Ratio, Rule,
    Timestamp,
};

use super::codec::{push, read};

const VERSION: u8 = 1;

/// Stands for how many accounts are active where that is not told.
const UNTOLD: u64 = (1 << 32) - 1;

/// Kinds of account are numbered from 1.
const KINDS: [Kind; 3] = [Kind::Repo, Kind::User, Kind::Ip];

/// Who uses what of each resource under the rule `blame`; empty where no rule asks.
pub(super) fn load(report: &NodeReport, adaptations: &Adaptations) -> Vec<u8> {
    let loads = PerResource::from_fn(|resource| {
        let adaptation = adaptations[resource].as_ref()?;
        let Rule::Blame(_) = adaptation.rule else { return None };
        Some((report.observation(resource, adaptation.rule).load?, adaptation.intervals_in_window()))
    });
    let mut packed = Vec::new();
    if loads.iter().all(|(_, load)| load.is_none()) {
        return packed;
    }
    for (_, load) in loads.iter() {
        match load {
            None => packed.resize(packed.len() + 23, 0),
            Some((load, intervals)) => push_load(&mut packed, load, *intervals),
        }
    }
    packed
}

fn push_load(packed: &mut Vec<u8>, load: &Load, intervals: u64) {
    packed.push(1);
    push(packed, load.capacity, 6);
    for (_, active) in load.active.iter() {
        push(packed, active.map_or(UNTOLD, |active| u64::from(active).min(UNTOLD - 1)), 4);
    }
    push(packed, intervals, 2);
    push(packed, load.accounts.len() as u64, 2);
    for (account, spending) in &load.accounts {
        push_account(packed, account);
        push(packed, spending.used, 6);
        push(packed, spending.rate, 6);
    }
}

fn push_account(packed: &mut Vec<u8>, account: &Account) {
    let kind = KINDS.iter().position(|kind| *kind == account.kind()).map_or(0, |at| at as u64 + 1);
    push(packed, kind, 1);
    push(packed, account.id().len() as u64, 2);
    packed.extend_from_slice(account.id().as_bytes());
}

/// Who is cut of each resource; `None` where it is no such thing.
pub(super) fn read_cuts(packed: &[u8]) -> Option<PerResource<Cuts>> {
    let mut rest = packed;
    if take(&mut rest, 1)? != [VERSION] {
        return None;
    }
    let cuts = PerResource::new(cuts_of(&mut rest)?, cuts_of(&mut rest)?, cuts_of(&mut rest)?);
    rest.is_empty().then_some(cuts)
}

fn cuts_of(rest: &mut &[u8]) -> Option<Cuts> {
    let mean = number(rest, 6)?;
    let levels = PerKind::new(number(rest, 6)?, number(rest, 6)?, number(rest, 6)?);
    let mut cuts = Cuts { mean, levels, ..Cuts::default() };
    for _ in 0..number(rest, 2)? {
        let (account, cut) = (account(rest)?, cut(rest)?);
        // The script knows kinds and lengths, not names: one that is none is nobody's.
        if let Some(account) = account {
            cuts.accounts.insert(account, cut);
        }
    }
    Some(cuts)
}

fn account(rest: &mut &[u8]) -> Option<Option<Account>> {
    let kind = *KINDS.get(usize::try_from(number(rest, 1)?).ok()?.checked_sub(1)?)?;
    let length = usize::try_from(number(rest, 2)?).ok()?;
    let name = std::str::from_utf8(take(rest, length)?).ok();
    Some(name.and_then(|name| Account::from_spelling(kind, name).ok()))
}

fn cut(rest: &mut &[u8]) -> Option<Cut> {
    Some(Cut {
        limit: number(rest, 6)?,
        since: Timestamp::from_micros(number(rest, 7)?),
        blamed: Blamed {
            share: Ratio::from_millionths(number(rest, 4)?),
            tenths_of_fair_share: u32::try_from(number(rest, 4)?).ok()?,
            pressure: Ratio::from_millionths(number(rest, 4)?),
        },
    })
}

fn number(rest: &mut &[u8], bytes: usize) -> Option<u64> {
    take(rest, bytes).map(read)
}

fn take<'a>(rest: &mut &'a [u8], bytes: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(bytes)?;
    *rest = left;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_list_of_cuts_is_refused_without_a_panic() {
        for length in 0..200 {
            for byte in [0, 1, 2, 255] {
                assert_eq!(read_cuts(&vec![byte; length]), None, "{length} times {byte}");
            }
        }
        let nobody = [vec![VERSION], vec![0; 3 * 26]].concat();
        assert_eq!(read_cuts(&nobody), Some(PerResource::default()));
        assert_eq!(read_cuts(&nobody[1..]), None);
        let first = 1 + 6 + 3 * 6;
        let cut = [&[2, 2, 0, 0xff, 0xfe][..], &[1; 25]].concat();
        let one = [&nobody[..first], &[1, 0], &cut, &nobody[first + 2..]].concat();
        assert_eq!(read_cuts(&one), Some(PerResource::default()), "a name that is none is nobody's");
    }
}
