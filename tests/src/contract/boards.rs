//! What servers on one store tell each other.

use std::time::Duration;

use quota_server::store::Board;

use super::{Fixture, SECOND};

/// Every behaviour of this topic.
pub async fn all(fixture: &Fixture) {
    what_one_tells_the_others_know(fixture).await;
    what_is_old_is_not_told(fixture).await;
}

impl Fixture {
    async fn post(&self, board: Board, part: u64, content: &str) {
        self.store.post(board, part, content.as_bytes()).await.expect("a post that is taken");
    }

    /// What another server reads, sorted.
    async fn posts(&self, board: Board, within: Duration) -> Vec<String> {
        let posts = self.other.posts(board, within).await.expect("the posts");
        let text = |content| String::from_utf8(content).expect("text");
        let mut contents: Vec<String> = posts.contents.into_iter().map(text).collect();
        contents.sort();
        contents
    }
}

async fn what_one_tells_the_others_know(fixture: &Fixture) {
    fixture.post(Board::Denials, 1, "first").await;
    fixture.post(Board::Denials, 2, "second").await;
    fixture.post(Board::Denials, 1, "first, again").await;
    fixture.post(Board::Top, 0, "top").await;
    if fixture.is_shared() {
        assert_eq!(fixture.posts(Board::Denials, 60 * SECOND).await, ["first, again", "second"]);
        assert_eq!(fixture.posts(Board::Top, 60 * SECOND).await, ["top"]);
    }
    let own = fixture.store.posts(Board::Denials, 60 * SECOND).await.expect("the posts");
    assert_eq!(own.contents, Vec::<Vec<u8>>::new(), "what a server told itself it knows");
}

async fn what_is_old_is_not_told(fixture: &Fixture) {
    let long = 60 * SECOND;
    fixture.post(Board::Denials, 3, "third").await;
    fixture.clock.advance(long).await;
    assert_eq!(fixture.posts(Board::Denials, long).await.contains(&"third".to_owned()), fixture.is_shared());
    fixture.clock.advance(SECOND).await;
    assert!(!fixture.posts(Board::Denials, long).await.contains(&"third".to_owned()));
}
