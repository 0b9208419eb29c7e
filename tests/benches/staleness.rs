//! What shares that lie idle cost: a user wants twice its limit, and moves from one half of the fileservers to the other when
//! half of the limit is used. What is left of the shares of the first half cannot be used by the others until these end. The
//! longer a share lasts, the longer that takes; the service tells how long, and here something between says another time.

mod between;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures::future::join_all;
use quota_client::{Admission, CheckMode, CheckSettings, Client, Decision, Request};
use quota_tests::chart::{Axis, Chart, Line, Scale};
use quota_tests::server::{MEMORY, ServerProcess};
use quota_tests::wait::{PATIENCE, until};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::growth::tell_pressure;
use crate::plan::Plan;

/// How long shares last, in seconds. The client believes in ten at most.
const LIFETIMES: [f64; 7] = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];

/// How long after as much was asked for as the limit, all of which would have been let in if each were asked about, in seconds.
const LATER: [f64; 3] = [0.0, 1.0, 5.0];

/// Fileservers of each lifetime.
const FILESERVERS: usize = 20;

/// What was admitted by shares that last so long, at each of [`LATER`].
struct Admitted {
    lasts: f64,
    counts: [u64; LATER.len()],
}

pub(crate) async fn measure(plan: &Plan) -> Chart {
    let limits = ["INITIAL", "MAX"].map(|name| format!("QUOTA__LIMITS__USER__CPU__{name}"));
    // Each request has a price of 10 ms of CPU.
    let amount = format!("{}ms", 10 * plan.staleness_limit);
    let limits = limits.iter().map(|key| (key.as_str(), amount.as_str()));
    let settings: Vec<_> = limits.chain([("QUOTA__STORE__URL", MEMORY)]).collect();
    let server = ServerProcess::start(&settings).await;
    // By their number the service divides what it grants.
    tell_pressure(&server, FILESERVERS).await;
    let of = |lasts| admitted(&server, lasts, plan);
    let all = join_all(LIFETIMES.map(of)).await;
    chart(&all, plan.staleness_limit)
}

/// Lets the user of this lifetime ask, for as much as its limit in the plan's time or, on a slow machine, in a longer one: all is
/// compared with what was asked, so that speed decides nothing.
async fn admitted(server: &ServerProcess, lasts: f64, plan: &Plan) -> Admitted {
    let (limit, time) = (plan.staleness_limit, plan.staleness_time);
    let address = between::serve(server.grpc.clone(), Duration::from_secs_f64(lasts)).await;
    let client = |number| {
        let checks = CheckSettings { mode: CheckMode::Local, ..CheckSettings::default() };
        Client::builder()
            .endpoints([format!("http://{address}")])
            .node(format!("gitaly-{:02}", number + 1))
            .deadline(PATIENCE)
            .checks(checks)
            .build()
            .expect("a client")
    };
    let user = Arc::new(User::of(lasts, limit));
    let pause = time * (FILESERVERS / 2) as u32 / limit;
    let mut asking = JoinSet::new();
    for number in 0..FILESERVERS {
        asking.spawn(ask(client(number), Arc::clone(&user), pause, number % 2 == 0));
    }
    until(PATIENCE, "the user has asked for its limit", async || {
        (user.asked() >= u64::from(limit)).then_some(())
    })
    .await;
    let full = Instant::now();
    let mut counts = [0; LATER.len()];
    for (counted, later) in counts.iter_mut().zip(LATER) {
        sleep_until(full + Duration::from_secs_f64(later)).await;
        *counted = user.admitted.load(Ordering::Relaxed);
    }
    user.is_over.store(true, Ordering::Relaxed);
    // Held until then, so that nothing is given back.
    let kept: Vec<Admission> = asking.join_all().await.into_iter().flatten().collect();
    let unchecked = kept.iter().filter(|admission| !admission.checked()).count();
    if unchecked > 0 {
        println!("Shares of {lasts} s: {unchecked} requests were not asked about in time, and are not drawn");
    }
    Admitted { lasts, counts }
}

/// Who asks, and how far it has come.
struct User {
    request: Request,
    limit: u64,
    asked: AtomicU64,
    admitted: AtomicU64,
    is_over: AtomicBool,
}

impl User {
    fn of(lasts: f64, limit: u32) -> Self {
        let request = Request::rpc("/gitaly.SSHService/SSHUploadPack").user(format!("user-{lasts}"));
        let (asked, admitted, is_over) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
        Self { request, limit: limit.into(), asked, admitted, is_over }
    }

    fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }
}

/// Asks at this pace while the user is here: for the first half of its limit, or after that. Keeps what is admitted, and counts it
/// as far as the service has said so.
async fn ask(client: Client, user: Arc<User>, pause: Duration, is_first: bool) -> Vec<Admission> {
    let mut pace = interval(pause);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut kept = Vec::new();
    while !user.is_over.load(Ordering::Relaxed) {
        pace.tick().await;
        if (user.asked() < user.limit / 2) != is_first {
            continue;
        }
        user.asked.fetch_add(1, Ordering::Relaxed);
        if let Decision::Allow(admission) = client.admit(&user.request).await {
            user.admitted.fetch_add(u64::from(admission.checked()), Ordering::Relaxed);
            kept.push(admission);
        }
    }
    kept
}

fn chart(all: &[Admitted], limit: u32) -> Chart {
    let limit = u64::from(limit);
    let percent = |count: u64| 100.0 * count as f64 / limit as f64;
    let points =
        |error: &dyn Fn(&Admitted) -> u64| all.iter().map(|it| (it.lasts, percent(error(it)))).collect();
    let mut lines: Vec<Line> = LATER
        .iter()
        .enumerate()
        .map(|(at, later)| Line {
            label: if *later > 0.0 {
                format!("short of it {later} s later")
            } else {
                "short of the limit".to_owned()
            },
            points: points(&|it| limit.saturating_sub(it.counts[at])),
        })
        .collect();
    let beyond = points(&|it| it.counts[LATER.len() - 1].saturating_sub(limit));
    lines.push(Line { label: "beyond the limit".to_owned(), points: beyond });
    let most = lines.iter().flat_map(|line| &line.points).map(|(_, error)| *error).fold(1.0, f64::max);
    let step = (most / 5.0).ceil();
    let percents = (0..=5).map(|number| step * f64::from(number));
    Chart {
        title: format!(
            "A user at its limit moves between {FILESERVERS} fileservers: what is let in by shares, against each being asked about"
        ),
        x: Axis {
            label: "a share lasts".to_owned(),
            scale: Scale::Logarithmic,
            ticks: LIFETIMES.map(|seconds| (seconds, format!("{seconds} s"))).into(),
        },
        y: Axis {
            label: "% of the limit".to_owned(),
            scale: Scale::Linear,
            ticks: percents.map(|percent| (percent, format!("{percent:.0}"))).collect(),
        },
        lines,
    }
}
