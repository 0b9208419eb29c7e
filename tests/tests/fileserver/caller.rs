//! Users whose requests come one after the other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quota_client::{Client, Decision};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::books::Books;
use crate::cluster::by;

/// From one request of a user to the next.
const PACE: Duration = Duration::from_millis(5);

/// A fileserver whose users ask.
#[derive(Clone)]
pub(crate) struct Fileserver {
    pub(crate) client: Client,
    pub(crate) books: Arc<Books>,
}

/// What became of the requests of a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answers {
    /// Allowed by the service.
    pub(crate) checked: u64,
    /// Allowed without it.
    pub(crate) unchecked: u64,
    pub(crate) refused: u64,
}

impl Fileserver {
    /// One request, which costs this much where it is allowed.
    pub(crate) async fn ask(&self, user: &str, cpu: Duration) -> Decision {
        let decision = self.client.admit(&by(user)).await;
        if let Decision::Allow(admission) = &decision {
            admission.meter().cpu(cpu);
            self.books.spend(user, cpu);
        }
        decision
    }

    /// What costs this much is done, and nobody is asked.
    pub(crate) fn spend(&self, user: &str, cpu: Duration) {
        self.client.meter(&by(user)).cpu(cpu);
        self.books.spend(user, cpu);
    }

    /// What was spent until now is made ready to be reported, and dated by this moment; the service is away.
    pub(crate) async fn collect(&self) {
        let is_reported = self.client.shutdown(Duration::from_millis(10)).await;
        assert!(!is_reported, "somebody has taken the reports: {:?}", self.client.stats());
    }

    /// So many requests of each of these users, one after the other, each of another cost below 1 ms.
    pub(crate) async fn work(
        &self,
        users: &[&'static str],
        requests: u16,
    ) -> BTreeMap<&'static str, Answers> {
        let mut callers = JoinSet::new();
        for &user in users {
            let fileserver = self.clone();
            callers.spawn(async move { (user, fileserver.work_of(user, requests).await) });
        }
        callers.join_all().await.into_iter().collect()
    }

    async fn work_of(&self, user: &str, requests: u16) -> Answers {
        let mut answers = Answers::default();
        let mut pace = interval(PACE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for number in 0..requests {
            pace.tick().await;
            match self.ask(user, Duration::from_micros(1 + u64::from(number))).await {
                Decision::Allow(admission) if admission.checked() => answers.checked += 1,
                Decision::Allow(_) => answers.unchecked += 1,
                Decision::Deny(_) => answers.refused += 1,
            }
        }
        answers
    }
}
