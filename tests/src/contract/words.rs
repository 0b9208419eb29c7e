//! What operators say is known to every server, until it is withdrawn or ends.

use std::time::Duration;

use quota_core::{Book, Said, Word};
use quota_server::store::{Saying, Words};

use super::{Fixture, SECOND};

/// Every behaviour of this topic.
pub async fn all(fixture: &Fixture) {
    nothing_is_said_at_first(fixture).await;
    what_one_server_is_told_another_knows(fixture).await;
    what_is_withdrawn_or_has_ended_does_not_hold(fixture).await;
    a_word_that_was_lost_is_put_back_unless_a_later_one_is_there(fixture).await;
    any_text_under_any_name_is_kept_as_it_is(fixture).await;
    // The last: no further name finds room before a day has passed.
    names_are_bounded_and_what_ended_a_day_ago_makes_room(fixture).await;
}

impl Fixture {
    async fn say(&self, name: &str, text: &str) -> Said {
        self.say_for(name, Some(text.as_bytes()), None).await
    }

    async fn withdraw(&self, name: &str) -> Said {
        self.say_for(name, None, None).await
    }

    async fn say_for(&self, name: &str, text: Option<&[u8]>, lasts: Option<Duration>) -> Said {
        let heard = self.store.say(Saying { name, text, lasts }).await.expect("a word that is heard");
        assert_eq!(heard.now, self.clock.now());
        heard.said
    }

    /// Which both servers know alike.
    async fn book(&self) -> Book {
        let words = self.store.words(0).await.expect("what is said");
        assert_eq!(self.other.words(0).await.expect("what is said"), words);
        assert_eq!((words.now, words.unreadable), (self.clock.now(), 0));
        words.book.unwrap_or_default()
    }

    /// The texts that hold, by name.
    async fn held(&self) -> Vec<(String, String)> {
        let (book, now) = (self.book().await, self.clock.now());
        let text = |word: &Word| String::from_utf8(word.text.clone().expect("a text").into()).expect("UTF-8");
        book.iter()
            .filter(|(_, word)| word.holds(now))
            .map(|(name, word)| (name.into(), text(word)))
            .collect()
    }

    async fn word(&self, name: &str) -> Word {
        let book = self.book().await;
        book.iter().find(|(other, _)| *other == name).expect("a word").1.clone()
    }
}

fn held(words: &[(&str, &str)]) -> Vec<(String, String)> {
    words.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

async fn nothing_is_said_at_first(fixture: &Fixture) {
    let words = fixture.store.words(0).await.expect("what is said");
    assert_eq!(words, Words { now: fixture.clock.now(), book: None, unreadable: 0 });
}

async fn what_one_server_is_told_another_knows(fixture: &Fixture) {
    assert_eq!(fixture.say("t:a", "one").await, Said::Done { before: None });
    assert_eq!(fixture.held().await, held(&[("t:a", "one")]));
    let one = fixture.word("t:a").await;
    assert_eq!((one.said, one.until), (fixture.clock.now(), None));
    assert_eq!(fixture.say("t:a", "two").await, Said::Done { before: Some(one) });
    fixture.say("t:b", "three").await;
    assert_eq!(fixture.held().await, held(&[("t:a", "two"), ("t:b", "three")]));

    let version = fixture.book().await.version();
    let known = fixture.other.words(version).await.expect("what is said");
    assert_eq!(known.book, None, "it is known");
    fixture.say("t:b", "four").await;
    let known = fixture.other.words(version).await.expect("what is said");
    assert_eq!(known.book, Some(fixture.book().await));
}

async fn what_is_withdrawn_or_has_ended_does_not_hold(fixture: &Fixture) {
    assert!(matches!(fixture.withdraw("t:a").await, Said::Done { before: Some(_) }));
    fixture.say_for("t:b", Some(b"brief"), Some(10 * SECOND)).await;
    assert_eq!(fixture.held().await, held(&[("t:b", "brief")]));
    let version = fixture.book().await.version();
    assert_eq!(fixture.withdraw("t:a").await, Said::Nothing);
    assert_eq!(fixture.withdraw("t:never").await, Said::Nothing);
    fixture.clock.advance(10 * SECOND - Duration::from_micros(1)).await;
    assert_eq!(fixture.held().await, held(&[("t:b", "brief")]));
    fixture.clock.advance(Duration::from_micros(1)).await;
    assert_eq!(fixture.held().await, []);
    assert_eq!(fixture.withdraw("t:b").await, Said::Nothing);
    assert_eq!(fixture.book().await.version(), version, "nothing of that is a change");
    assert_eq!(fixture.say("t:b", "again").await, Said::Done { before: None });
}

async fn a_word_that_was_lost_is_put_back_unless_a_later_one_is_there(fixture: &Fixture) {
    let restore =
        async |words: &[(Box<str>, Word)]| fixture.other.restore(words).await.expect("words taken in");
    fixture.say("t:a", "old").await;
    let old = fixture.word("t:a").await;
    fixture.withdraw("t:a").await;
    let withdrawn = fixture.word("t:a").await;
    let version = fixture.book().await.version();
    assert_eq!(restore(&[("t:a".into(), old.clone()), ("t:a".into(), withdrawn.clone())]).await, 0);
    assert_eq!(fixture.book().await.version(), version);

    let later =
        Word { said: withdrawn.said.after_micros(7), text: Some(b"later".as_slice().into()), ..old.clone() };
    let lost = [("t:a".into(), later.clone()), ("t:lost".into(), withdrawn.clone())];
    assert_eq!(restore(&lost).await, 2);
    assert_eq!(fixture.word("t:a").await, later);
    assert_eq!(fixture.word("t:lost").await, withdrawn, "that it does not hold is put back, too");
    let restored = fixture.book().await.version();
    assert!(restored > version);
    fixture.say("t:lost", "x").await;
    assert!(fixture.word("t:lost").await.said.as_micros() > restored, "what is said next is later than all");
    fixture.clock.advance(SECOND).await;
}

async fn any_text_under_any_name_is_kept_as_it_is(fixture: &Fixture) {
    let text: Vec<u8> = (0..=255).cycle().take(Saying::MAX_TEXT_BYTES).collect();
    let name = format!("t:{}", "n".repeat(Saying::MAX_NAME_BYTES - 2));
    for name in [name.as_str(), "t:version", "t:"] {
        fixture.say_for(name, Some(&text), None).await;
        assert_eq!(fixture.word(name).await.text.as_deref(), Some(&text[..]), "{name}");
        fixture.withdraw(name).await;
    }
}

async fn names_are_bounded_and_what_ended_a_day_ago_makes_room(fixture: &Fixture) {
    let known = fixture.book().await.iter().count();
    for number in known..Book::MOST {
        assert_eq!(fixture.say(&format!("n:{number}"), "x").await, Said::Done { before: None });
    }
    assert_eq!(fixture.say("one:more", "x").await, Said::Full);
    let number = known;
    assert!(matches!(fixture.say(&format!("n:{number}"), "y").await, Said::Done { before: Some(_) }));
    fixture.withdraw(&format!("n:{number}")).await;
    let lost = Word { text: Some(b"x".as_slice().into()), ..fixture.word(&format!("n:{number}")).await };
    assert_eq!(fixture.store.restore(&[("one:more".into(), lost)]).await.expect("words taken in"), 0);
    fixture.clock.advance(Book::MEMORY).await;
    assert_eq!(fixture.say("one:more", "x").await, Said::Full, "who missed it may still come back");
    fixture.clock.advance(SECOND).await;
    assert_eq!(fixture.say("one:more", "x").await, Said::Done { before: None });
    let names: Vec<_> = fixture.held().await.into_iter().map(|(name, _)| name).collect();
    assert!(names.contains(&"one:more".to_owned()) && !names.contains(&format!("n:{number}")));
}
