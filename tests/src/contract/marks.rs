//! A report with a mark counts once.

use futures::future::join_all;
use futures::join;
use quota_core::{Mark, Source};
use quota_server::store::{Settlement, StoreError};

use super::{Fixture, LENGTH, SECOND};
use crate::values::{mark, spending};

/// As many sources as an account remembers.
const MAX_SOURCES: u64 = 1024;

/// Every behaviour of this topic.
pub async fn all(fixture: &Fixture) {
    a_report_counts_once_whatever_its_copies_say(fixture).await;
    a_sequence_that_is_no_higher_has_been_counted(fixture).await;
    sources_do_not_know_of_each_other(fixture).await;
    a_report_without_a_mark_counts_each_time(fixture).await;
    a_resend_counts_where_the_report_had_not_arrived(fixture).await;
    a_mark_lives_two_windows(fixture).await;
    sources_are_bounded_and_age_out(fixture).await;
    reports_that_arrive_together_count_once_each(fixture).await;
    one_of_several_copies_that_arrive_together_counts(fixture).await;
    sequences_that_arrive_together_count_in_their_order(fixture).await;
}

fn outcome(settlement: Settlement) -> (u32, u32) {
    (settlement.applied, settlement.duplicates)
}

async fn a_report_counts_once_whatever_its_copies_say(fixture: &Fixture) {
    let account = fixture.account();
    let send = async |micros| {
        outcome(fixture.settle(mark("once", 7), vec![spending(&account, &[(0, micros)])]).await)
    };
    assert_eq!(send(10).await, (1, 0));
    for micros in [10, 999, 0] {
        assert_eq!(send(micros).await, (0, 1));
        fixture.clock.advance(SECOND).await;
    }
    assert_eq!(fixture.used(&account).await, 10);
}

async fn a_sequence_that_is_no_higher_has_been_counted(fixture: &Fixture) {
    let account = fixture.account();
    let last = Mark::SEQUENCE_END - 1;
    for (sequence, counts) in
        [(0, 1), (0, 0), (1, 1), (0, 0), (1, 0), (300, 1), (299, 0), (1 << 48, 1), (last, 1), (last, 0)]
    {
        let entries = vec![spending(&account, &[(0, 1)])];
        let settlement = fixture.settle(mark("sequence", sequence), entries).await;
        assert_eq!(outcome(settlement), (counts, 1 - counts), "{sequence}");
    }
    assert_eq!(fixture.used(&account).await, 5);
}

async fn sources_do_not_know_of_each_other(fixture: &Fixture) {
    let account = fixture.account();
    let source = |identity, name| Some(Mark { source: Source::new(identity, name), sequence: 1 });
    for mark in [source("a", "bc"), source("ab", "c"), source("b", "bc"), source("a", "d")] {
        for counts in [1, 0] {
            let settlement = fixture.settle(mark, vec![spending(&account, &[(0, 1)])]).await;
            assert_eq!(outcome(settlement), (counts, 1 - counts), "{mark:?}");
        }
    }
    assert_eq!(fixture.used(&account).await, 4);
}

async fn a_report_without_a_mark_counts_each_time(fixture: &Fixture) {
    let account = fixture.account();
    for _ in 0..3 {
        assert_eq!(outcome(fixture.settle(None, vec![spending(&account, &[(0, 1)])]).await), (1, 0));
    }
    assert_eq!(fixture.used(&account).await, 3);
}

/// As after an error in the middle of a report.
async fn a_resend_counts_where_the_report_had_not_arrived(fixture: &Fixture) {
    let accounts = fixture.new_accounts(3);
    let entry = |index: usize| spending(&accounts[index], &[(0, 5)]);
    fixture.settle(mark("resend", 1), vec![entry(1)]).await;
    let settlement = fixture.settle(mark("resend", 1), vec![entry(0), entry(1), entry(2)]).await;
    assert_eq!(outcome(settlement), (2, 1));
    for account in &accounts {
        assert_eq!(fixture.used(account).await, 5);
    }
}

async fn a_mark_lives_two_windows(fixture: &Fixture) {
    let account = fixture.account();
    let send = async |source, sequence| {
        outcome(fixture.settle(mark(source, sequence), vec![spending(&account, &[(0, 1)])]).await)
    };
    fixture.next_bucket().await;
    assert_eq!(send("early", 5).await, (1, 0));
    assert_eq!(send("renewed", 5).await, (1, 0));
    fixture.clock.advance(LENGTH).await;
    assert_eq!(send("renewed", 6).await, (1, 0));
    fixture.clock.advance(LENGTH - SECOND / 1000).await;
    assert_eq!(send("early", 5).await, (0, 1), "a moment before, and asking does not renew it");
    fixture.clock.advance(SECOND / 1000).await;
    assert_eq!(send("renewed", 6).await, (0, 1), "renewed by its next report");
    assert_eq!(send("early", 5).await, (1, 0));
}

async fn sources_are_bounded_and_age_out(fixture: &Fixture) {
    let accounts = fixture.new_accounts(3);
    let (before, full, after) = (&accounts[0], &accounts[1], &accounts[2]);
    for source in 0..MAX_SOURCES {
        let settlement =
            fixture.settle(mark(&format!("s{source}"), 1), vec![spending(full, &[(0, 1)])]).await;
        assert_eq!(outcome(settlement), (1, 0), "{source}");
    }
    let one_more = || [before, full, after].map(|account| spending(account, &[(0, 1)])).to_vec();
    for round in 0..2 {
        // Beside one of a source that is known, and of one that is not, on accounts with room.
        let elsewhere = vec![spending(&fixture.account(), &[(0, 1)])];
        let (refused, known, elsewhere) = join!(
            fixture.report(mark("one more", 1), one_more()),
            fixture.report(mark("s7", 2), vec![spending(full, &[(0, 1)])]),
            fixture.report(mark("one more", 1), elsewhere),
        );
        assert_eq!(outcome(known.expect("it has its place")), (u32::from(round == 0), u32::from(round > 0)));
        assert_eq!(outcome(elsewhere.expect("another account")), (1, 0));
        assert!(
            matches!(&refused, Err(StoreError::TooManySources(account)) if account == full),
            "{refused:?}"
        );
        assert_eq!(fixture.used(full).await, MAX_SOURCES + 1);
        assert_eq!(fixture.used(before).await, 1, "the others have it, once");
        assert_eq!(fixture.used(after).await, 1, "the others have it, once");
    }
    let known = fixture.settle(mark("s7", 3), vec![spending(full, &[(0, 1)])]).await;
    assert_eq!(outcome(known), (1, 0), "a source that is known has its place");
    fixture.clock.advance(2 * LENGTH).await;
    assert_eq!(outcome(fixture.settle(mark("one more", 1), one_more()).await), (3, 0));
}

async fn reports_that_arrive_together_count_once_each(fixture: &Fixture) {
    let accounts = fixture.new_accounts(20);
    // Each of all accounts but one, so that no two have the same.
    let send = |source: usize, sequence| {
        let entries = accounts.iter().enumerate().filter(move |(at, _)| *at != source);
        let entries = entries.map(|(_, account)| spending(account, &[(0, 1), (1, 10)])).collect();
        fixture.report(mark(&format!("together {source}"), sequence), entries)
    };
    for sequence in 1..3 {
        let settled = join_all((0..accounts.len()).map(|source| send(source, sequence))).await;
        for settlement in settled {
            assert_eq!(outcome(settlement.expect("a report that is stored")), (19, 0));
        }
    }
    // A copy of each beside what is new of others.
    let settled = join_all((0..accounts.len()).map(|source| send(source, 2 + source as u64 % 2))).await;
    for (source, settlement) in settled.into_iter().enumerate() {
        let expected = if source % 2 == 0 { (0, 19) } else { (19, 0) };
        assert_eq!(outcome(settlement.expect("a report that is stored")), expected);
    }
    for (at, account) in accounts.iter().enumerate() {
        let of_third = if at % 2 == 0 { 10 } else { 9 };
        assert_eq!(fixture.used(account).await, 11 * (2 * 19 + of_third), "{at}");
    }
}

async fn one_of_several_copies_that_arrive_together_counts(fixture: &Fixture) {
    let (account, other) = (fixture.account(), fixture.account());
    let copies = (0..5).map(|_| {
        let entries = [&account, &other].map(|account| spending(account, &[(0, 7)]));
        fixture.report(mark("copies", 1), entries.into())
    });
    let settled: Vec<_> =
        join_all(copies).await.into_iter().map(|settled| outcome(settled.unwrap())).collect();
    assert_eq!(settled.iter().filter(|&&outcome| outcome == (2, 0)).count(), 1, "{settled:?}");
    assert_eq!(settled.iter().filter(|&&outcome| outcome == (0, 2)).count(), 4, "{settled:?}");
    assert_eq!((fixture.used(&account).await, fixture.used(&other).await), (7, 7));
}

async fn sequences_that_arrive_together_count_in_their_order(fixture: &Fixture) {
    let account = fixture.account();
    let send = |sequence| fixture.report(mark("sequences", sequence), vec![spending(&account, &[(0, 1)])]);
    let settled = join_all([3, 4, 4, 2, 9].map(send)).await;
    let settled: Vec<_> = settled.into_iter().map(|settled| outcome(settled.unwrap())).collect();
    assert_eq!(settled, [(1, 0), (1, 0), (0, 1), (0, 1), (1, 0)]);
    assert_eq!(fixture.used(&account).await, 3);
}
