//! How many decisions may wait for a server at a time: as many as it answers in half of the time that they have. Were there more, each
//! would wait behind the others until it is too late for all of them, and Redis would work for nobody. Those beyond are refused at
//! once, and the fail policy answers.
//!
//! The number rises by an eighth for each time as many were answered, and falls to three quarters of what waits when one is late. From one
//! answer to the next it thus passes what is right by an eighth, and half of the time is left for that.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::store::{Cause, StoreError};

/// So many may always wait: at a rate of 2,000 a second a server that takes 30 ms for each has as many.
const LEAST: usize = 64;

/// After so many answers in time there is room for one more.
const RISE: usize = 8;

/// Room for decisions at a server.
#[derive(Clone)]
pub(super) struct Room(Arc<Mutex<State>>);

struct State {
    most: usize,
    limit: usize,
    waiting: usize,
    /// Answers in time since the limit has risen.
    in_time: usize,
    /// When it last fell: what began before says nothing of the limit since.
    fell: Option<Instant>,
}

/// The place of a decision, until it is dropped.
pub(super) struct Place {
    room: Room,
    began: Instant,
    end: Instant,
}

impl Room {
    /// Room for at most so many.
    pub(super) fn new(most: usize) -> Self {
        let most = most.max(LEAST);
        Self(Arc::new(Mutex::new(State { most, limit: most, waiting: 0, in_time: 0, fell: None })))
    }

    /// A place for a decision that begins and must end at these moments.
    pub(super) fn enter(&self, began: Instant, end: Instant) -> Result<Place, StoreError> {
        let mut state = self.0.lock();
        if state.waiting >= state.limit {
            let reason =
                format!("{} decisions wait for it, which is as many as it answers in time", state.waiting);
            return Err(StoreError::Refused(reason, Cause::Overload));
        }
        state.waiting += 1;
        Ok(Place { room: self.clone(), began, end })
    }
}

impl State {
    fn leave(&mut self, began: Instant, end: Instant, now: Instant) {
        let waiting = self.waiting;
        self.waiting -= 1;
        if now - began > (end - began) / 2 {
            if self.fell.is_none_or(|fell| began >= fell) {
                self.limit = (waiting.min(self.limit) * 3 / 4).max(LEAST);
                (self.in_time, self.fell) = (0, Some(now));
            }
        } else if 2 * waiting > self.limit && self.limit < self.most {
            self.in_time += 1;
            if self.in_time == RISE {
                self.limit += 1;
                self.in_time = 0;
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.0.lock().leave(self.began, self.end, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{advance, sleep};

    use super::*;

    const DEADLINE: Duration = Duration::from_millis(50);
    const MOST: usize = 2048;

    fn enter(room: &Room) -> Result<Place, StoreError> {
        let now = Instant::now();
        room.enter(now, now + DEADLINE)
    }

    /// Fills it.
    fn fill(room: &Room) -> Vec<Place> {
        std::iter::from_fn(|| enter(room).ok()).collect()
    }

    fn limit(room: &Room) -> usize {
        room.0.lock().limit
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_wait_than_may_and_who_leaves_makes_room() {
        let room = Room::new(MOST);
        let mut places = fill(&room);
        assert_eq!(places.len(), MOST);
        let refused = enter(&room).err().unwrap();
        assert_eq!(refused.cause(), Cause::Overload);
        places.pop();
        assert_eq!(fill(&room).len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn many_that_are_late_together_lower_it_once() {
        let room = Room::new(MOST);
        let places = fill(&room);
        advance(DEADLINE).await;
        drop(places);
        assert_eq!(limit(&room), MOST * 3 / 4);
        let places = fill(&room);
        advance(DEADLINE / 2).await;
        drop(places);
        assert!(limit(&room) > MOST * 3 / 4, "that is in time");
        for _ in 0..100 {
            let place = enter(&room).unwrap();
            advance(DEADLINE).await;
            drop(place);
        }
        assert_eq!(limit(&room), LEAST, "however long nothing is answered");
        assert_eq!(fill(&room).len(), LEAST);
    }

    #[tokio::test(start_paused = true)]
    async fn it_rises_where_it_is_needed_alone() {
        let room = Room::new(MOST);
        let late = enter(&room).unwrap();
        advance(DEADLINE).await;
        drop(late);
        for _ in 0..10 * LEAST {
            drop(enter(&room).unwrap());
        }
        assert_eq!(limit(&room), LEAST);
        drop(fill(&room));
        // When less than half of them are left, more room is of no use.
        assert!((LEAST + 1..=LEAST + LEAST / 2 / RISE).contains(&limit(&room)), "{}", limit(&room));
        for _ in 0..MOST {
            drop(fill(&room));
        }
        assert_eq!(limit(&room), MOST);
    }

    /// A server that answers one after the other, a tenth of what is asked of it.
    #[tokio::test(start_paused = true)]
    async fn of_more_than_a_server_can_do_it_does_as_much_as_it_can() {
        const A_MILLISECOND: usize = 4;
        let room = Room::new(MOST);
        let (mut queue, mut in_time, mut late) = (std::collections::VecDeque::new(), 0, 0);
        for millisecond in 0..5000 {
            for _ in 0..10 * A_MILLISECOND {
                queue.extend(enter(&room));
            }
            for _ in 0..A_MILLISECOND {
                let Some(place) = queue.pop_front() else { continue };
                let Place { end, .. } = place;
                let is_measured = millisecond > 1000;
                in_time += usize::from(is_measured && Instant::now() < end);
                late += usize::from(is_measured && Instant::now() >= end);
            }
            sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(late, 0);
        assert!(in_time >= 3990 * A_MILLISECOND, "{in_time}");
    }
}
