//! Who calls: at random moments by a schedule that waits for no answer, and as often as they are told to come again.

use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use quota_tests::outage::{CLASSES, Fate, Outcome, PATIENCE, PER_SECOND, RETRIES, Times};
use reqwest::header::RETRY_AFTER;
use reqwest::{Client, StatusCode};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until};

use crate::web::Web;

/// Whoever calls the web processes, each in turn.
pub(crate) struct Callers {
    processes: Vec<Web>,
    client: Client,
}

/// A call, of a class, that comes in a second.
struct Call {
    class: usize,
    second: u64,
    due: Instant,
    url: String,
}

impl Callers {
    pub(crate) fn new(processes: Vec<Web>) -> Self {
        let client = Client::builder().timeout(PATIENCE).build().expect("a client");
        Self { processes, client }
    }

    /// Calls for as long as it takes, and tells what came of it.
    pub(crate) async fn call(self, times: &Times) -> Outcome {
        let started = Instant::now();
        let urls: Vec<_> = self.processes.iter().map(|web| format!("http://{}/work/", web.address)).collect();
        let (client, runtime, seconds) = (self.client, Handle::current(), times.seconds);
        // A thread of its own, since tokio's timers are no finer than a millisecond.
        let calling = tokio::task::spawn_blocking(move || {
            let mut fates = JoinSet::new();
            for call in schedule(started, seconds, &urls) {
                thread::sleep(call.due.saturating_duration_since(Instant::now()));
                let client = client.clone();
                let fate = async move { (call.class, call.second, fate(&client, &call).await) };
                fates.spawn_on(fate, &runtime);
            }
            fates
        });
        for (slow, second) in [(true, times.slow.start), (false, times.slow.end)] {
            sleep_until((started + Duration::from_secs(second)).into()).await;
            for web in &self.processes {
                web.is_slow(slow).await;
            }
        }
        let fates = calling.await.expect("a schedule that was kept");
        let mut outcome = Outcome::new(times);
        for (class, second, fate) in fates.join_all().await {
            outcome.add(class, second, fate);
        }
        for web in &self.processes {
            outcome.most_ci += web.most_ci().await;
        }
        outcome
    }
}

/// The calls of both classes, in order.
fn schedule(started: Instant, seconds: u64, urls: &[String]) -> impl Iterator<Item = Call> {
    let mut random = Rng::with_seed(seconds);
    let mut gap = move |class: usize| Duration::from_secs_f64(-(1.0 - random.f64()).ln() / PER_SECOND[class]);
    let mut next = [gap(0), gap(1)];
    (0..).map_while(move |number| {
        let class = usize::from(next[1] < next[0]);
        let after = next[class];
        next[class] += gap(class);
        let url = format!("{}{}", urls[number % urls.len()], CLASSES[class]);
        let call = Call { class, second: after.as_secs(), due: started + after, url };
        (call.second < seconds).then_some(call)
    })
}

/// What becomes of a call. What is told to come again does so when it is told to, or a little later, some times.
async fn fate(client: &Client, call: &Call) -> Fate {
    let mut asked = call.due;
    for _ in 0..=RETRIES {
        let Ok(answer) = client.get(&call.url).send().await else { return Fate::GivenUp };
        if answer.status() == StatusCode::OK {
            let worked = answer.text().await.expect("a whole answer").parse().expect("microseconds");
            return Fate::Served(asked.elapsed().saturating_sub(Duration::from_micros(worked)));
        }
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE, "it is no matter of quota");
        let after = answer.headers()[RETRY_AFTER].to_str().expect("a number").parse().expect("seconds");
        sleep(Duration::from_secs(after) + Duration::from_millis(fastrand::u64(..200))).await;
        asked = Instant::now();
    }
    Fate::Refused
}
