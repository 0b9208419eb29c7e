//! The same faults beside limitador, which keeps counters in the same kind of Redis: what its callers see, and whether it counts again.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use quota_tests::limitador::{Limitador, Mode, is_allowed};
use quota_tests::proxy::{Fault, Proxy};
use quota_tests::redis::RedisServer;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tonic::transport::{Channel, Endpoint};

/// Each asks every 50 ms.
const CALLERS: usize = 12;
const PACE: Duration = Duration::from_millis(50);

/// How long a fault lasts.
const LASTS: Duration = Duration::from_secs(10);

/// A caller gives up after this, and so does whoever waits for an end.
const GIVE_UP: Duration = Duration::from_secs(30);

/// What breaks.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    Frozen,
    Killed,
    Demoted,
    RepliesDropped,
}

impl Trouble {
    const ALL: [Self; 4] = [Self::Frozen, Self::Killed, Self::Demoted, Self::RepliesDropped];

    /// As the scenario of ours is called.
    const fn name(self) -> &'static str {
        match self {
            Self::Frozen => "Redis frozen for 10 s",
            Self::Killed => "Redis killed, fsync always",
            Self::Demoted => "Redis demoted",
            Self::RepliesDropped => "replies of Redis lost",
        }
    }
}

/// What callers saw.
#[derive(Default)]
struct Seen {
    answers: usize,
    errors: usize,
    longest: Duration,
    /// When the first request that was asked after the end of the fault was answered.
    back: Option<Instant>,
}

/// Rows of a table.
pub(crate) async fn rows(program: &Path) -> String {
    let mut rows = String::new();
    for trouble in Trouble::ALL {
        for mode in [Mode::Redis, Mode::RedisCached] {
            let row = measure(program, mode, trouble).await;
            println!("{row}");
            writeln!(rows, "{row}").expect("room");
        }
    }
    rows
}

async fn measure(program: &Path, mode: Mode, trouble: Trouble) -> String {
    let mut redis =
        RedisServer::options().appendonly().args(&["--repl-diskless-sync-delay", "0"]).start().await;
    let replica = RedisServer::start().await;
    replica.follow(&redis).await;
    let proxy = Proxy::to(redis.port()).await;
    let limitador = Limitador::start(program, mode, &proxy.redis_url(), &["user"], u64::from(u32::MAX)).await;
    let endpoint = Endpoint::from_shared(format!("http://{}", limitador.address)).expect("an address");
    let channel = endpoint.connect().await.expect("a server that listens");

    let (mended, mut callers) = (watch::Sender::new(None), JoinSet::new());
    for number in 0..CALLERS {
        callers.spawn(call(channel.clone(), number, mended.subscribe()));
    }
    sleep(LASTS).await;
    match trouble {
        Trouble::Frozen => redis.pause().await,
        Trouble::Killed => redis.kill().await,
        Trouble::Demoted => redis.command("REPLICAOF", &["127.0.0.1", "1"]).await,
        Trouble::RepliesDropped => proxy.set(Fault::DropReplies),
    }
    sleep(LASTS).await;
    match trouble {
        Trouble::Frozen => redis.resume().await,
        Trouble::Killed => redis.restart().await,
        Trouble::Demoted => {
            replica.command("REPLICAOF", &["NO", "ONE"]).await;
            proxy.lead_to(replica.port());
        }
        Trouble::RepliesDropped => proxy.set(Fault::None),
    }
    let end = Instant::now();
    mended.send_replace(Some(end));
    let seen = callers.join_all().await;
    let store = if matches!(trouble, Trouble::Demoted) { &replica } else { &redis };
    let counts = counts_again(&channel, store).await;

    let sum = |of: fn(&Seen) -> usize| seen.iter().map(of).sum::<usize>();
    let longest = seen.iter().map(|seen| seen.longest).max().unwrap_or_default();
    let back = seen.iter().map(|seen| seen.back).collect::<Option<Vec<_>>>();
    let back =
        back.and_then(|all| all.into_iter().max()).map(|last| format!("{} ms", (last - end).as_millis()));
    format!(
        "| {} | limitador, `{}` | {} | {} | {} | {} | {} |",
        trouble.name(),
        mode.name(),
        sum(|seen| seen.answers),
        sum(|seen| seen.errors),
        if longest >= GIVE_UP { "> 30 s".to_owned() } else { format!("{} ms", longest.as_millis()) },
        back.unwrap_or_else(|| "not within 30 s".to_owned()),
        if counts { "yes" } else { "not within 30 s" },
    )
}

/// Until it has had an answer to what it asked after the end of the fault, and a little longer.
async fn call(channel: Channel, number: usize, mended: watch::Receiver<Option<Instant>>) -> Seen {
    let mut seen = Seen::default();
    loop {
        let since = *mended.borrow();
        if since.is_some_and(|since| seen.back.is_some() || since.elapsed() > GIVE_UP) {
            return seen;
        }
        let asked = Instant::now();
        let answer =
            timeout(GIVE_UP, is_allowed(channel.clone(), vec![("user", format!("user-{number}"))])).await;
        seen.longest = seen.longest.max(asked.elapsed());
        if let Ok(Ok(_)) = answer {
            seen.answers += 1;
            seen.back = seen.back.or_else(|| since.map(|_| Instant::now()));
        } else {
            seen.errors += 1;
        }
        sleep(PACE).await;
    }
}

/// Whether what is asked now is counted in Redis: a user that nobody has asked for.
async fn counts_again(channel: &Channel, store: &RedisServer) -> bool {
    let before = keys(store).await;
    let until = Instant::now() + GIVE_UP;
    while Instant::now() < until {
        let _ = timeout(PACE, is_allowed(channel.clone(), vec![("user", "somebody new".to_owned())])).await;
        if keys(store).await > before {
            return true;
        }
        sleep(PACE).await;
    }
    false
}

async fn keys(store: &RedisServer) -> u64 {
    redis::cmd("DBSIZE").query_async(&mut store.client().await).await.expect("a Redis that tells")
}
