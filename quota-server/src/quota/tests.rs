//! An account that loads a node, from its cut to the end of it, second by second, on two servers with one store.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use quota_core::{
    Accounts, Charge, Cost, Kind, Limit, NodeReport, PerKind, PerResource, Ratio, Resource, Scope,
};
use tracing_subscriber::fmt::MakeWriter;

use super::*;
use crate::auth::Caller;
use crate::config::Config;
use crate::history::Look;
use crate::store::{Clock, Entry, MemoryStore, Report};

const NODE: &str = "gitaly-01";

/// 12:03:00 on some day.
const START: u64 = (20_000 * 86_400 + 43_380) * 1_000_000;

/// What alice has of the CPU: of 4 cores 3, since ten seconds ago at the latest.
const WHY: &str = "(held 75 % of the CPU, 8.3x the fair share, while pressure was 1.00)";

/// Everything that is said in the log of this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn lines(&self, message: &str) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().clone()).unwrap();
        text.lines().filter(|line| line.contains(message)).map(str::to_owned).collect()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

struct World {
    clock: Arc<AtomicU64>,
    store: Arc<MemoryStore>,
    servers: [Quota; 2],
    log: Log,
    _listening: tracing::subscriber::DefaultGuard,
}

fn server(store: &Arc<MemoryStore>) -> Quota {
    Quota::bare(Arc::clone(store) as Arc<dyn Store>)
}

impl World {
    fn new() -> Self {
        let clock = Arc::new(AtomicU64::new(START));
        let store =
            Arc::new(MemoryStore::new(WindowLength::default(), 1000, Clock::Manual(Arc::clone(&clock))));
        let log = Log::default();
        let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).with_ansi(false).finish();
        Self {
            servers: [server(&store), server(&store)],
            clock,
            store,
            log,
            _listening: tracing::subscriber::set_default(subscriber),
        }
    }

    /// Each second, what alice used within a minute and the last ten seconds beside nine others of 5 s each, told to the
    /// first server.
    async fn pass(&self, seconds: u64, pressure: f64, used: u64, recent: u64) {
        for _ in 0..seconds {
            self.clock.fetch_add(1_000_000, Ordering::Relaxed);
            let mut report = NodeReport {
                pressure: PerResource::new(Some(Ratio::try_from(pressure).unwrap()), None, None),
                capacity: PerResource::new(Some(4000), None, None),
                active: PerKind::new(Some(10), Some(10), Some(10)),
                ..NodeReport::default()
            };
            let cpu = |seconds: u64| PerResource::new(Some(seconds * 1_000_000), None, None);
            report.add_heaviest(user("alice"), cpu(used), Some(cpu(recent)));
            for number in 0..9 {
                report.add_heaviest(user(&format!("light-{number}")), cpu(5), Some(cpu(1)));
            }
            let request = PressureRequest { node: NODE.into(), report };
            self.servers[0].report_pressure(request).await.unwrap();
        }
    }

    async fn spend(&self, name: &str, seconds: u64) {
        let cost = Cost::ZERO.with_cpu_micros(seconds * 1_000_000).unwrap();
        let charges = vec![Charge { age: Duration::ZERO, cost }];
        let entry = Entry { account: user(name), charges, releases: Vec::new() };
        self.store.settle(&Report { mark: None, entries: vec![entry] }).await.unwrap();
    }

    async fn node(&self) -> NodeStanding {
        self.servers[1].list_nodes(&node()).await.unwrap().pop().unwrap()
    }

    fn metrics(&self) -> Vec<String> {
        let text = String::from_utf8(self.servers[0].metrics.encode().unwrap()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn assert_metric(&self, series: &str, value: &str) {
        let line = format!("{series} {value}");
        assert!(self.metrics().contains(&line), "no {line} in {:#?}", self.metrics());
    }
}

fn user(name: &str) -> Account {
    Account::new(Kind::User, name, Ipv6Prefix::default()).unwrap()
}

fn node() -> Label {
    Label::new("node", Some(NODE)).unwrap()
}

async fn check(server: &Quota, name: &str) -> CheckResponse {
    let request = CheckRequest {
        node: node(),
        rpc: Label::default(),
        accounts: Accounts::new(None, Some(name), None, Ipv6Prefix::default()).unwrap(),
        class: Label::default(),
        price: Some(Cost::ZERO),
        used_here: UsedHere::default(),
        share_wanted: Cost::ZERO,
    };
    server.check(&Caller::anonymous(), request).await.unwrap()
}

fn denied(response: CheckResponse) -> Denial {
    match response.decision {
        Decision::Deny { denied_by, .. } => denied_by,
        allowed @ Decision::Allow { .. } => panic!("{allowed:?}"),
    }
}

fn is_allowed(response: &CheckResponse) -> bool {
    matches!(response.decision, Decision::Allow { shadow: None, .. })
}

#[tokio::test]
async fn who_loads_a_node_is_cut_and_the_others_are_not_and_why_is_told_everywhere() {
    let world = World::new();
    world.spend("alice", 90).await;
    world.spend("light-1", 30).await;
    assert!(is_allowed(&check(&world.servers[0], "alice").await), "below the limit of users");
    world.pass(7, 1.0, 90, 30).await;
    world.servers[0].refresh_nodes().await;
    let lines = world.log.lines("account cut");
    assert_eq!(lines.len(), 1, "once, by the server that was told: {lines:?}");
    assert!(lines[0].contains("node=\"gitaly-01\" kind=\"user\" id=\"alice\" resource=\"cpu\""), "{lines:?}");
    assert!(lines[0].contains(WHY), "{lines:?}");
    world.servers[1].refresh_nodes().await;

    let standing = world.node().await;
    assert_eq!(standing.limits[Kind::User][Resource::Cpu], Limit::At(100_000_000), "that of the kind stays");
    let [(limit, explanation)] = &standing.accounts[..] else { panic!("{:?}", standing.accounts) };
    assert_eq!((&limit.account, limit.resource), (&user("alice"), Resource::Cpu));
    let Limit::At(most) = limit.limit else { panic!("{limit:?}") };
    // Four cores of which 0.9 are shared by ten.
    assert!((21_600_000..=90_000_000).contains(&most), "{most}");
    let why =
        format!("user alice: {}.{} CPU-s/min on {NODE} since 12:03:0", most / 1_000_000, most / 100_000 % 10);
    let told = explanation.why.to_string();
    assert!(told.starts_with(&why) && told.ends_with(WHY), "{told}");
    assert!(explanation.since.unwrap() <= Duration::from_secs(2), "{:?}", explanation.since);

    for server in &world.servers {
        let denial = denied(check(server, "alice").await);
        assert_eq!((denial.breach.scope, denial.breach.limit), (Scope::Node, limit.limit));
        assert_eq!(denial.explanation.as_ref(), Some(explanation));
        assert!(denial_in_words(&denial, &node(), server.window.length()).ends_with(WHY));
        let accounts = Accounts::new(None, Some("alice"), None, Ipv6Prefix::default()).unwrap();
        let request = BackoffRequest { accounts, node: node(), attempt: 0 };
        let Backoff::Yes { denied_by, .. } = server.backoff(request).await.unwrap() else { panic!() };
        assert_eq!(denied_by, denial);
        let request = StandingRequest { account: user("alice"), node: node() };
        let standing = server.standing(request).await.unwrap();
        assert_eq!(standing.own[Resource::Cpu].as_ref(), Some(explanation));
        assert_eq!(standing.resources[Resource::Cpu].1.here.map(|here| here.limit), Some(limit.limit));

        let light = check(server, "light-1").await;
        assert!(is_allowed(&light));
        assert_eq!(light.standings[0].own, PerResource::default());
        // Elsewhere nobody is cut.
        let elsewhere = StandingRequest { account: user("alice"), node: Label::default() };
        assert_eq!(server.standing(elsewhere).await.unwrap().own, PerResource::default());
    }
    let lines = world.log.lines(" denied ");
    assert!(lines.len() == 2 && lines.iter().all(|line| line.contains(WHY)), "by both servers: {lines:?}");
}

/// What is kept of the node for plots.
fn look(world: &World) -> Look {
    let [(name, look)] = &world.servers[0].nodes.look()[..] else { panic!() };
    assert_eq!(&**name, NODE);
    look[Resource::Cpu]
}

#[tokio::test]
async fn metrics_show_who_is_cut_and_whose_requests_are_denied() {
    let world = World::new();
    let cpu = |name: &str| format!("{name}{{kind=\"user\",node=\"gitaly-01\",resource=\"cpu\"}}");
    let of_node = |name: &str| format!("{name}{{node=\"gitaly-01\",resource=\"cpu\"}}");
    world.spend("alice", 90).await;
    world.spend("bob", 100).await;
    world.pass(4, 1.0, 90, 30).await;
    world.assert_metric(&cpu("quota_node_cut_accounts"), "0");
    world.assert_metric(&of_node("quota_node_cut_share"), "0");
    assert_eq!(look(&world), Look { pressure: Some(1.0), lowest: Some(1.0) });
    world.pass(3, 1.0, 90, 30).await;
    world.assert_metric(&cpu("quota_node_cut_accounts"), "1");
    world.assert_metric(&of_node("quota_node_pressure_seconds_total"), "5");
    // 90 of the 240 s that four cores have in a minute.
    world.assert_metric(&of_node("quota_node_cut_share"), "0.375");
    let Limit::At(most) = world.node().await.accounts[0].0.limit else { panic!() };
    world.assert_metric(&cpu("quota_node_cut_limit_lowest"), &(most as f64 / 1e6).to_string());
    assert_eq!(look(&world).lowest, Some((most as f64 / 100e6) as f32), "of what users may have at most");

    denied(check(&world.servers[0], "alice").await);
    // On this node he used nothing to speak of: it is his own limit for all nodes.
    denied(check(&world.servers[0], "bob").await);
    denied(check(&world.servers[0], "bob").await);
    world.assert_metric("quota_denials_total{account=\"heavy\"}", "1");
    world.assert_metric("quota_denials_total{account=\"light\"}", "2");
}

#[tokio::test]
async fn an_account_that_has_come_to_rest_has_its_limit_back_and_that_is_told_once() {
    let world = World::new();
    world.spend("alice", 90).await;
    world.pass(7, 1.0, 90, 30).await;
    assert_eq!(world.node().await.accounts.len(), 1);
    let recovered = async {
        for second in 0..180 {
            if world.node().await.accounts.is_empty() {
                return second;
            }
            world.pass(1, 0.1, 0, 0).await;
        }
        panic!("{:?}", world.node().await.accounts)
    };
    // From 90 s to 100 s in two steps of 5 s, the first at the end of this interval.
    let seconds = recovered.await;
    assert!((8..=15).contains(&seconds), "{seconds}");
    assert!(is_allowed(&check(&world.servers[0], "alice").await));
    world.pass(60, 0.1, 0, 0).await;
    let lines = world.log.lines("limit of an account forgotten");
    let [line] = &lines[..] else { panic!("{lines:?}") };
    assert!(line.contains("id=\"alice\"") && line.contains(WHY), "{line}");
    assert_eq!(world.log.lines("account cut").len(), 1);
    let lowest = "quota_node_cut_limit_lowest{";
    assert!(!world.metrics().iter().any(|line| line.starts_with(lowest)), "{:#?}", world.metrics());
}

#[tokio::test]
async fn what_blame_left_behind_is_not_in_force_under_another_rule() {
    let world = World::new();
    world.spend("alice", 90).await;
    world.pass(7, 1.0, 90, 30).await;
    let aimd = "adapt.cpu.rule = \"aimd\"\nadapt.cpu.interval = \"60s\"";
    world.servers[1].adopt(&Config::from_toml(aimd).unwrap());
    world.servers[1].refresh_nodes().await;
    assert!(is_allowed(&check(&world.servers[1], "alice").await));
    assert_eq!(world.node().await.accounts, []);
}

#[tokio::test]
async fn a_limit_on_a_node_follows_the_account_s_own_and_what_it_was_cut_to_stays() {
    let world = World::new();
    world.spend("alice", 90).await;
    for name in ["alice", "light-1"] {
        let author: Arc<str> = "operator".into();
        let named = OverrideRequest::new(Kind::User, name, Ipv6Prefix::default(), author).unwrap();
        let word = Override::Weight(quota_core::Weight::try_from(4.0).unwrap());
        let put = PutOverride::new(named, word, "why", ("expires_in", None)).unwrap();
        world.servers[0].put_override(put).await.unwrap();
    }
    let server = &world.servers[1];
    let here = async |name: &str| {
        server.refresh_nodes().await;
        server.refresh_operators().await.unwrap();
        let request = StandingRequest { account: user(name), node: node() };
        let (_, comparison) = server.standing(request).await.unwrap().resources[Resource::Cpu];
        assert_eq!(comparison.ceiling.limit, Limit::At(400_000_000), "{name}");
        comparison.here.unwrap().limit
    };
    assert_eq!(here("alice").await, Limit::At(400_000_000));
    world.pass(7, 1.0, 90, 30).await;
    assert_eq!(here("light-1").await, Limit::At(400_000_000));
    assert_eq!(here("alice").await, world.node().await.accounts[0].0.limit);
    assert!(here("alice").await <= Limit::At(90_000_000));
}
