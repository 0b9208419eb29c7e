use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use crate::caller::Caller;
use crate::git::Service;

/// How long after its admission the requests of a conversation are not asked about: git may compress for minutes
/// before it sends a push.
const LIFETIME: Duration = Duration::from_secs(300);

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
    admitted: HashMap<Conversation, Instant>,
    /// In the order of their admission, with those that were admitted again since.
    order: VecDeque<(Instant, Conversation)>,
}

impl Conversations {
    /// One is admitted.
    pub(crate) fn admit(&mut self, conversation: Conversation, now: Instant) {
        self.expire(now);
        while self.order.len() >= MOST {
            self.forget_oldest();
        }
        self.admitted.insert(conversation.clone(), now);
        self.order.push_back((now, conversation));
    }

    /// Whether one was admitted lately.
    pub(crate) fn is_admitted(&mut self, conversation: &Conversation, now: Instant) -> bool {
        self.expire(now);
        self.admitted.contains_key(conversation)
    }

    fn expire(&mut self, now: Instant) {
        while self.order.front().is_some_and(|(then, _)| now.saturating_duration_since(*then) >= LIFETIME) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((then, conversation)) = self.order.pop_front()
            && self.admitted.get(&conversation) == Some(&then)
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
        assert!(conversations.is_admitted(&fetch("alice"), now));
        let push = Conversation { service: Service::ReceivePack, ..fetch("alice") };
        assert!(!conversations.is_admitted(&push, now));
        assert!(!conversations.is_admitted(&fetch("bob"), now));
        conversations.admit(fetch("alice"), now + LIFETIME / 2);
        assert!(conversations.is_admitted(&fetch("alice"), now + LIFETIME));
        assert!(!conversations.is_admitted(&fetch("alice"), now + LIFETIME / 2 + LIFETIME));
        assert!(conversations.admitted.is_empty() && conversations.order.is_empty());
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
        assert!(!conversations.is_admitted(&fetch("0"), now));
        assert!(conversations.is_admitted(&fetch(&MOST.to_string()), now));
    }
}
