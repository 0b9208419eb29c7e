use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use crate::caller::Caller;
use crate::git::Service;

/// How long after its admission the requests of a conversation are not asked about: git may compress for minutes
/// before it sends a push.
const LIFETIME: Duration = Duration::from_secs(300);

/// How many requests follow an admission without a question; the next one is asked about, and where it is admitted, so
/// many follow it. Without a bound one cheap admission would buy any amount of work.
///
/// A push sends two: an empty probe, and the pack. A fetch lists the references in one (protocol v2), and says what
/// it has in further ones: 16 commits in the first, twice as many in each up to 16,384, then a tenth more in each
/// (git's fetch-pack.c). So many requests are a history of a million commits of which the server has none (of 100,000
/// in the older protocols, which repeat what they said); one of which it has some takes a handful.
const REQUESTS: u32 = 32;

/// The most conversations that are remembered. The requests of one that was forgotten are asked about.
const MOST: usize = 4096;

/// One fetch or push: who, of which repository, and which of the two.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Conversation {
    pub(crate) caller: Caller,
    pub(crate) repo: String,
    pub(crate) service: Service,
}

/// The conversations that were admitted lately. Without them a client could skip the question by beginning in the
/// middle.
#[derive(Debug, Default)]
pub(crate) struct Conversations {
    admitted: HashMap<Conversation, Admitted>,
    /// In the order of their admission, with those that were admitted again since.
    order: VecDeque<(Instant, Conversation)>,
}

#[derive(Debug)]
struct Admitted {
    at: Instant,
    /// Requests that may follow.
    left: u32,
}

impl Conversations {
    /// One is admitted, or admitted again.
    pub(crate) fn admit(&mut self, conversation: Conversation, now: Instant) {
        self.expire(now);
        while self.order.len() >= MOST {
            self.forget_oldest();
        }
        self.admitted.insert(conversation.clone(), Admitted { at: now, left: REQUESTS });
        self.order.push_back((now, conversation));
    }

    /// Whether a request belongs to one that was admitted lately, which it then uses up a part of.
    pub(crate) fn goes_on(&mut self, conversation: &Conversation, now: Instant) -> bool {
        self.expire(now);
        let Some(admitted) = self.admitted.get_mut(conversation).filter(|admitted| admitted.left > 0) else {
            return false;
        };
        admitted.left -= 1;
        true
    }

    fn expire(&mut self, now: Instant) {
        while self.order.front().is_some_and(|(then, _)| now.saturating_duration_since(*then) >= LIFETIME) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((then, conversation)) = self.order.pop_front()
            && self.admitted.get(&conversation).is_some_and(|admitted| admitted.at == then)
        {
            self.admitted.remove(&conversation);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn fetch(user: &str) -> Conversation {
        let caller = Caller { user: user.to_owned(), ip: Ipv4Addr::LOCALHOST.into() };
        Conversation { caller, repo: "project".to_owned(), service: Service::UploadPack }
    }

    #[test]
    fn what_was_admitted_is_so_for_a_while() {
        let (mut conversations, now) = (Conversations::default(), Instant::now());
        conversations.admit(fetch("alice"), now);
        assert!(conversations.goes_on(&fetch("alice"), now));
        let push = Conversation { service: Service::ReceivePack, ..fetch("alice") };
        assert!(!conversations.goes_on(&push, now));
        assert!(!conversations.goes_on(&fetch("bob"), now));
        conversations.admit(fetch("alice"), now + LIFETIME / 2);
        assert!(conversations.goes_on(&fetch("alice"), now + LIFETIME));
        assert!(!conversations.goes_on(&fetch("alice"), now + LIFETIME / 2 + LIFETIME));
        assert!(conversations.admitted.is_empty() && conversations.order.is_empty());
    }

    #[test]
    fn an_admission_is_good_for_so_many_requests() {
        let (mut conversations, now) = (Conversations::default(), Instant::now());
        for _ in 0..3 {
            conversations.admit(fetch("alice"), now);
            for request in 0..REQUESTS {
                assert!(conversations.goes_on(&fetch("alice"), now), "{request}");
            }
            assert!(!conversations.goes_on(&fetch("alice"), now));
        }
    }

    #[test]
    fn the_oldest_are_forgotten_beyond_the_bound() {
        let (mut conversations, now) = (Conversations::default(), Instant::now());
        for user in 0..=MOST {
            conversations.admit(fetch(&user.to_string()), now);
        }
        for _ in 0..10 {
            conversations.admit(fetch("alice"), now);
        }
        assert_eq!(conversations.order.len(), MOST);
        assert!(conversations.admitted.len() <= MOST);
        assert!(!conversations.goes_on(&fetch("0"), now));
        assert!(conversations.goes_on(&fetch(&MOST.to_string()), now));
    }
}
