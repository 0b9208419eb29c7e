use std::sync::Arc;
use std::time::Duration;

use quota_core::{Ipv6Prefix, Kind, Limit, Override, PerResource, Said, Weight};

use super::*;
use crate::quota::operators::overriding::text;

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_micros(1_764_500_000_000_000 + seconds * 1_000_000)
}

fn user(name: &str) -> Account {
    Account::new(Kind::User, name, Ipv6Prefix::default()).unwrap()
}

/// A book with these blocked from the beginning, until so many seconds after it.
fn book(blocked: &[(&str, Option<u64>)]) -> Book {
    let mut book = Book::default();
    for (name, seconds) in blocked {
        let account = user(name);
        let text = text(&account, &Override::Blocked, "why", "who");
        let said = book.say(at(0), &account.key(), Some(&text), seconds.map(Duration::from_secs), Book::MOST);
        assert!(matches!(said, Said::Done { .. }));
    }
    book
}

fn blocked(operators: &Operators) -> Vec<String> {
    operators.in_force().listed.iter().map(|said| said.account.id().to_owned()).collect()
}

#[test]
fn of_two_answers_the_one_counts_that_was_asked_for_later() {
    let operators = Operators::new(&[]);
    operators.learn(2, at(1), Some(book(&[("a", None), ("b", None)])));
    operators.learn(1, at(0), Some(book(&[("a", None)])));
    assert_eq!(blocked(&operators), ["a", "b"]);
    operators.learn(3, at(2), None);
    assert_eq!((blocked(&operators), operators.known_at()), (vec!["a".into(), "b".into()], at(2)));
}

#[test]
fn what_ends_is_noticed_where_nothing_else_has_changed() {
    let operators = Operators::new(&[]);
    operators.learn(1, at(0), Some(book(&[("a", Some(10)), ("b", Some(20))])));
    operators.learn(2, at(9), None);
    assert_eq!(blocked(&operators), ["a", "b"]);
    operators.learn(3, at(10), None);
    assert_eq!(blocked(&operators), ["b"]);
    operators.learn(4, at(20), None);
    assert_eq!(blocked(&operators), [""; 0]);
}

#[test]
fn only_what_was_read_can_be_lost() {
    let operators = Operators::new(&[]);
    assert_eq!(operators.lost_by(&Book::default(), at(0)), []);
    operators.learn(1, at(0), Some(book(&[("a", None)])));
    assert_eq!(operators.lost_by(&book(&[("a", None)]), at(1)), []);
    let lost = operators.lost_by(&Book::default(), at(1));
    assert_eq!(lost.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["user:a"]);
    operators.copy.lock().read = Instant::now().checked_sub(Book::MEMORY).map(|read| (read, at(0)));
    assert_eq!(operators.lost_by(&Book::default(), at(1)), [], "the copy is a day old");
}

#[test]
fn what_is_stored_is_read_as_it_was_and_garbage_is_noticed() {
    let limits = Override::Limits(PerResource::new(Some(Limit::At(7)), None, Some(Limit::Unlimited)));
    let account = Account::new(Kind::Ip, "2001:db8::1", Ipv6Prefix::default()).unwrap();
    for word in [limits, Override::Weight(Weight::try_from(2.5).unwrap()), Override::Exempt] {
        let stored = |text: &[u8]| Word { said: at(0), until: Some(at(9)), text: Some(text.into()) };
        let text = text(&account, &word, "why", "who");
        let read = Overriding::read(&account.key(), &stored(&text)).unwrap();
        assert_eq!(
            (&read.account, read.word, read.said, read.until),
            (&account, word, Some(at(0)), Some(at(9)))
        );
        assert_eq!((&*read.reason, &*read.author, read.origin), ("why", "who", OverrideOrigin::Api));
        assert!(!is_unreadable(&account.key(), &stored(&text)));
        for length in 0..text.len() {
            // It is shortened where a field is, or it says less; either way nothing panics.
            let _ = Overriding::read(&account.key(), &stored(&text[..length]));
        }
        assert!(is_unreadable(&account.key(), &stored(b"garbage")));
        assert!(is_unreadable("mode:system", &stored(b"garbage")));
        assert!(!is_unreadable("class:of-a-newer-server", &stored(b"garbage")));
    }
}

#[test]
fn the_file_holds_where_nothing_is_put() {
    let file = FileOverride { account: user("a"), word: Override::Exempt, reason: "why".into() };
    let operators = Operators::new(&[file]);
    let word = |operators: &Operators| operators.in_force().of(&user("a")).map(|said: &Arc<_>| said.word);
    assert_eq!(word(&operators), Some(Override::Exempt), "before anything is read");
    operators.learn(1, at(0), Some(book(&[("a", Some(10))])));
    assert_eq!(word(&operators), Some(Override::Blocked));
    operators.learn(2, at(10), None);
    assert_eq!(word(&operators), Some(Override::Exempt));
}
