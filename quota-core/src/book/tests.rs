use super::*;

const DAY: u64 = 24 * 3600 * SECOND;
const SECOND: u64 = 1_000_000;

fn at(micros: u64) -> Timestamp {
    Timestamp::from_micros(DAY + micros)
}

fn say(book: &mut Book, now: u64, name: &str, text: &str) -> Said {
    book.say(at(now), name, Some(text.as_bytes()), None, 3)
}

fn withdraw(book: &mut Book, now: u64, name: &str) -> Said {
    book.say(at(now), name, None, None, 3)
}

fn held(book: &Book, now: u64) -> Vec<(&str, &str)> {
    let holding = book.iter().filter(|(_, word)| word.holds(at(now)));
    holding.map(|(name, word)| (name, std::str::from_utf8(word.text.as_ref().unwrap()).unwrap())).collect()
}

#[test]
fn the_last_word_holds_until_it_is_withdrawn_or_ends() {
    let mut book = Book::default();
    assert_eq!(say(&mut book, 0, "a", "one"), Said::Done { before: None });
    let one = book.words["a"].clone();
    assert_eq!(say(&mut book, 1, "a", "two"), Said::Done { before: Some(one) });
    book.say(at(2), "b", Some(b"brief"), Some(Duration::from_secs(1)), 3);
    assert_eq!(held(&book, SECOND + 1), [("a", "two"), ("b", "brief")]);
    assert_eq!(held(&book, SECOND + 2), [("a", "two")]);
    assert!(matches!(withdraw(&mut book, 3, "a"), Said::Done { before: Some(_) }));
    assert_eq!(held(&book, SECOND + 2), []);
    let version = book.version();
    assert_eq!(withdraw(&mut book, 4, "a"), Said::Nothing, "it is withdrawn");
    assert_eq!(withdraw(&mut book, 2 * SECOND, "b"), Said::Nothing, "it has ended");
    assert_eq!(withdraw(&mut book, 4, "never"), Said::Nothing);
    assert_eq!(book.version(), version);
}

#[test]
fn every_word_is_later_than_those_before_it_even_where_the_clock_steps_back() {
    let mut book = Book::default();
    let mut versions = Vec::new();
    for now in [10, 10, 3, 20] {
        say(&mut book, now, "a", "x");
        versions.push(book.version() - DAY);
        assert_eq!(book.words["a"].said, Timestamp::from_micros(book.version()));
    }
    assert_eq!(versions, [10, 11, 12, 20]);
}

#[test]
fn names_are_bounded_and_what_ended_long_ago_makes_room() {
    let mut book = Book::default();
    for name in ["a", "b", "c"] {
        say(&mut book, 0, name, "x");
    }
    assert_eq!(say(&mut book, 1, "d", "x"), Said::Full);
    withdraw(&mut book, 10, "a");
    assert_eq!(say(&mut book, DAY + 10, "d", "x"), Said::Full, "its end is a day old, and no more");
    assert!(matches!(say(&mut book, DAY + 10, "b", "y"), Said::Done { .. }));
    assert_eq!(say(&mut book, DAY + 11, "d", "x"), Said::Done { before: None });
    assert_eq!(book.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["b", "c", "d"]);
}

#[test]
fn what_the_store_has_lost_is_restored_and_what_was_withdrawn_is_not() {
    let mut stored = Book::default();
    say(&mut stored, 0, "kept", "x");
    say(&mut stored, 1, "withdrawn", "x");
    let old = stored.clone();
    withdraw(&mut stored, 2, "withdrawn");
    let new = stored.clone();
    assert_eq!(old.lost_by(&stored, at(3)).count(), 0, "the store knows better");

    // Everything is gone, something is said, and both copies come back, whichever first.
    for copies in [[&old, &new], [&new, &old]] {
        let mut stored = Book::default();
        say(&mut stored, 3, "kept", "newer");
        for copy in copies {
            let lost: Vec<_> = copy.lost_by(&stored, at(4)).map(|(n, w)| (n.into(), w.clone())).collect();
            let version = stored.version();
            let restored = stored.restore(at(4), lost, 3);
            assert_eq!(stored.version() > version, restored > 0);
        }
        assert_eq!(held(&stored, 5), [("kept", "newer")]);
    }
}

#[test]
fn what_ended_is_not_restored_for_ever_and_never_beyond_the_bound() {
    let mut copy = Book::default();
    for name in ["a", "b", "c"] {
        say(&mut copy, 0, name, "x");
    }
    withdraw(&mut copy, 10, "a");
    let empty = Book::default();
    assert_eq!(copy.lost_by(&empty, at(DAY + 10)).count(), 3);
    assert_eq!(copy.lost_by(&empty, at(DAY + 11)).count(), 2);
    let mut stored = Book::default();
    say(&mut stored, 2, "d", "x");
    let words: Vec<_> = copy.words.clone().into_iter().collect();
    assert_eq!(stored.restore(at(3), words, 3), 2);
    assert_eq!(stored.words.len(), 3);
}
