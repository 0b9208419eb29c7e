//! Requests in cgroups of their own, of whichever versions this machine has.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::Poll;
use std::time::Instant;

use rustix::process::Signal;

use super::children::{BURN, Shell, cpu};
use super::fake::{Heard, costs};
use super::*;
use crate::local::cuts::tests::cut;
use crate::{RequestCgroup, RequestCgroups};

/// Directories for cgroups, of one version, which are removed in the end with all that is in them.
struct Parents(Vec<PathBuf>);

impl Parents {
    /// Of v2, and of v1, where this machine has them.
    fn all() -> Vec<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mount = |is_it: &dyn Fn(&str, &str) -> bool| {
            mounts.lines().find_map(|line| {
                let (mount, source) = line.split_once(" - ")?;
                let (kind, options) = source.split_once(' ')?;
                is_it(kind, options).then(|| mount.split(' ').nth(4).map(PathBuf::from))?
            })
        };
        let v1 = |controller: &str| {
            mount(&|kind, options| {
                kind == "cgroup"
                    && options.rsplit(' ').next().unwrap().split(',').any(|name| name == controller)
            })
        };
        let v2 = mount(&|kind, _| kind == "cgroup2").map(|v2| vec![v2]);
        let shares = v1("cpu").filter(|cpu| v1("cpuacct").as_ref() != Some(cpu));
        let v1 = v1("cpuacct")
            .zip(v1("memory"))
            .map(|(cpu, memory)| [cpu, memory].into_iter().chain(shares).collect());
        for (version, mounts) in [("v2", &v2), ("v1", &v1)] {
            if mounts.is_none() {
                println!("this machine has no cgroup {version} mounted: that version is not tested");
            }
        }
        [v2, v1].into_iter().flatten().filter_map(Self::below).collect()
    }

    fn below(mounts: Vec<PathBuf>) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("quota-client-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        for mount in &mounts {
            // Only of v2, and only in vain where this machine has the controller in v1.
            let _ = fs::write(mount.join("cgroup.subtree_control"), "+cpu");
        }
        let parents = Self(mounts.into_iter().map(|mount| mount.join(&name)).collect());
        for path in &parents.0 {
            if let Err(error) = fs::create_dir(path) {
                let why = format!("no cgroup can be made, so nothing is tested: {}: {error}", path.display());
                assert!(std::env::var("CI").as_deref() != Ok("true"), "{why}");
                println!("{why}");
                return None;
            }
        }
        Some(parents)
    }

    fn cgroups(&self) -> RequestCgroups {
        RequestCgroups::below(&self.0).unwrap()
    }

    /// How many cgroups are in it. One that is being made or removed may be in one directory and not in the other.
    fn count(&self) -> usize {
        self.0.iter().map(|path| directories(path).count()).max().unwrap()
    }

    /// What all that ran in it used.
    fn cpu(&self) -> Duration {
        if let Ok(nanos) = fs::read_to_string(self.0[0].join("cpuacct.usage")) {
            return Duration::from_nanos(nanos.trim().parse().unwrap());
        }
        let stat = fs::read_to_string(self.0[0].join("cpu.stat")).unwrap();
        let micros = stat.lines().find_map(|line| line.strip_prefix("usage_usec ")).unwrap();
        Duration::from_micros(micros.parse().unwrap())
    }
}

impl Drop for Parents {
    fn drop(&mut self) {
        for path in &self.0 {
            for cgroup in directories(path).chain([path.clone()]) {
                remove(&cgroup);
            }
        }
    }
}

fn directories(path: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir())
}

/// Who was killed may still be about to leave.
fn remove(cgroup: &Path) {
    let deadline = Instant::now() + LONG;
    while fs::remove_dir(cgroup).is_err_and(|error| error.kind() != ErrorKind::NotFound) {
        if Instant::now() > deadline {
            println!("a cgroup is left behind: {}", cgroup.display());
            return;
        }
        std::thread::yield_now();
    }
}

fn script(cgroup: &RequestCgroup, script: &str) -> Command {
    let mut command = cgroup.command("sh");
    command.args(["-c", script]);
    command
}

/// Collects until the cgroups of all requests are removed.
async fn removed(client: &Client, parents: &Parents) {
    tokio::time::timeout(LONG, async {
        while parents.count() > 0 {
            assert!(client.shutdown(LONG).await);
        }
    })
    .await
    .unwrap();
    assert!(client.shutdown(LONG).await);
}

fn is_close(charged: Duration, exact: Duration) -> bool {
    charged <= exact.mul_f64(1.05) && charged >= exact.mul_f64(0.95)
}

#[tokio::test]
async fn f20_a_killed_request_is_charged_what_its_cgroup_used() {
    for parents in Parents::all() {
        let fake = Fake::start().await;
        let client = builder([&fake]).build().unwrap();
        let cgroups = parents.cgroups();
        let before = parents.cpu();
        let meter = client.meter(&fetch());
        let cgroup = meter.cgroup(&cgroups).await.unwrap();
        let mut shell = Shell::start(script(&cgroup, &format!("({BURN}) & wait")));
        fake.hears(|heard| cpu(heard) >= Duration::from_millis(200)).await;
        shell.kill();
        drop((meter, cgroup));
        removed(&client, &parents).await;
        let (charged, used) = (cpu(&fake.heard()), parents.cpu() - before);
        assert!(charged <= used && is_close(charged, used), "{charged:?} of {used:?}");
        assert_eq!((client.stats().cost_clamped, client.stats().cgroups_left), (0, 0));
    }
}

#[tokio::test]
async fn f20_grandchildren_that_outlive_the_request_are_charged_to_their_end() {
    for parents in Parents::all() {
        let fake = Fake::start().await;
        let client = builder([&fake]).build().unwrap();
        let cgroups = parents.cgroups();
        let before = parents.cpu();
        let cgroup = client.meter(&fetch()).cgroup(&cgroups).await.unwrap();
        let mut shell = Shell::start(script(&cgroup, &format!("({BURN}) & ({BURN}) &")));
        shell.wait().unwrap();
        drop(cgroup);
        assert!(client.shutdown(LONG).await);
        let over = cpu(&fake.heard());
        fake.hears(|heard| cpu(heard) >= over + Duration::from_millis(200)).await;
        assert_eq!(parents.count(), 1);
        shell.kill();
        removed(&client, &parents).await;
        let (charged, used) = (cpu(&fake.heard()), parents.cpu() - before);
        assert!(charged <= used && is_close(charged, used), "{charged:?} of {used:?}");
    }
}

/// Some are metered by `/proc` and their wait status, some by a cgroup of their own; all are in one.
#[tokio::test]
async fn f20_the_sum_over_requests_is_at_most_the_usage_of_their_cgroup_and_a_twentieth() {
    for parents in Parents::all() {
        let fake = Fake::start().await;
        let client = builder([&fake]).build().unwrap();
        let cgroups = parents.cgroups();
        let before = parents.cpu();
        let shared =
            RequestCgroup::new(parents.0.iter().map(|path| path.join("shared")).collect(), Arc::default());
        parents.0.iter().for_each(|path| fs::create_dir(path.join("shared")).unwrap());
        let work = format!("({BURN}) & sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'; {BURN}");
        let mut children = Vec::new();
        for user in ["a", "b"] {
            let shell = Shell::start(script(&shared, &work));
            let child = client.meter(&Request::rpc("/x").user(user)).child(shell.pid());
            children.push((shell, child));
        }
        let mut in_cgroups = Vec::new();
        for user in ["c", "d"] {
            let cgroup = client.meter(&Request::rpc("/x").user(user)).cgroup(&cgroups).await.unwrap();
            in_cgroups.push((Shell::start(script(&cgroup, &work)), cgroup));
        }
        let all_have = |heard: &Heard| {
            ["a", "b", "c", "d"].iter().all(|user| {
                let costs = costs(heard).filter(|(name, _)| name == user);
                costs.map(|(_, cost)| cost.cpu_micros).sum::<u64>() >= 100_000
            })
        };
        fake.hears(all_have).await;
        for (mut shell, child) in children {
            // What it spends after its last sample is in nobody's wait status.
            shell.signal(Signal::STOP);
            child.sample();
            child.ended(shell.kill().unwrap());
        }
        drop(in_cgroups);
        parents.0.iter().for_each(|path| remove(&path.join("shared")));
        removed(&client, &parents).await;
        let (charged, used) = (cpu(&fake.heard()), parents.cpu() - before);
        assert!(charged <= used.mul_f64(1.05), "{charged:?} of {used:?}");
        assert!(charged >= used.mul_f64(0.8), "{charged:?} of {used:?}");
        assert_eq!(client.stats().cost_clamped, 0);
    }
}

#[tokio::test]
async fn memory_is_charged_until_the_request_is_over() {
    const HELD: u64 = 16 << 20;
    let byte_seconds = |heard: &Heard| costs(heard).map(|(_, cost)| cost.memory_byte_seconds).sum::<u64>();
    for parents in Parents::all() {
        let fake = Fake::start().await;
        let client = builder([&fake]).build().unwrap();
        let cgroup = client.meter(&fetch()).cgroup(&parents.cgroups()).await.unwrap();
        let holds = format!("x=$(head -c {HELD} /dev/zero | tr '\\0' x); echo held; {BURN}");
        let began = Instant::now();
        let mut shell = Shell::start(script(&cgroup, &holds));
        assert_eq!(shell.line(), "held");
        let held = Instant::now();
        let before = byte_seconds(&fake.heard());
        fake.hears(|heard| byte_seconds(heard) >= before + HELD / 10).await;
        let least = held.elapsed();
        drop(cgroup);
        shell.kill();
        let most = began.elapsed();
        removed(&client, &parents).await;
        let charged = byte_seconds(&fake.heard()) as f64;
        assert!(charged >= HELD as f64 * least.as_secs_f64() * 0.9, "{charged} in {least:?}");
        // The shell holds it twice while it puts it together.
        assert!(charged <= HELD as f64 * most.as_secs_f64() * 4.0, "{charged} in {most:?}");
    }
}

#[tokio::test]
async fn nothing_is_left_of_a_request_that_started_nothing_or_was_cancelled() {
    for parents in Parents::all() {
        let fake = Fake::start().await;
        let client = builder([&fake]).report_interval(LONG).build().unwrap();
        let cgroups = parents.cgroups();
        assert_eq!(parents.count(), 0, "it was tried out");
        let meter = client.meter(&fetch());
        let cgroup = meter.cgroup(&cgroups).await.unwrap();
        assert_eq!(parents.count(), 1);
        drop(cgroup);
        removed(&client, &parents).await;

        let mut cancelled = Box::pin(meter.cgroup(&cgroups));
        // Asked once: it is being made, or made already.
        std::future::poll_fn(|cx| Poll::Ready(cancelled.as_mut().poll(cx).is_pending())).await;
        drop(cancelled);
        drop(meter);
        tokio::time::timeout(LONG, async {
            while parents.count() == 0 {
                tokio::task::yield_now().await;
            }
        })
        .await
        .unwrap();
        removed(&client, &parents).await;
        assert_eq!(fake.heard().reports.len(), 0);
    }
}

/// Whoever empties the directory, the request that was in it ends, and other requests go on.
#[tokio::test]
async fn a_cgroup_that_somebody_else_removes_is_over_and_one_that_cannot_be_removed_is_left() {
    for parents in Parents::all() {
        let fake = Fake::start().await;
        let client = builder([&fake]).report_interval(LONG).build().unwrap();
        let cgroups = parents.cgroups();
        let cgroup = client.meter(&fetch()).cgroup(&cgroups).await.unwrap();
        parents.0.iter().flat_map(|path| directories(path)).for_each(|path| remove(&path));
        assert!(client.shutdown(LONG).await);
        drop(cgroup);
        assert!(client.shutdown(LONG).await);

        let cgroup = client.meter(&fetch()).cgroup(&cgroups).await.unwrap();
        let within: Vec<_> =
            parents.0.iter().flat_map(|path| directories(path)).map(|path| path.join("within")).collect();
        within.iter().for_each(|path| fs::create_dir(path).unwrap());
        drop(cgroup);
        for _ in 0..59 {
            assert!(client.shutdown(LONG).await);
        }
        assert_eq!(client.stats().cgroups_left, 0);
        assert!(client.shutdown(LONG).await);
        assert_eq!((client.stats().cgroups_left, parents.count()), (1, 1));
        within.iter().for_each(|path| remove(path));
    }
}

/// The weight of a cgroup's CPU: of v2, or of v1; none where the kernel shares it out otherwise.
fn weight(cgroup: &RequestCgroup) -> Option<String> {
    let command = cgroup.command("true");
    let files = command.get_args().map(Path::new).filter(|word| word.ends_with("cgroup.procs"));
    let weights = files.flat_map(|file| ["cpu.weight", "cpu.shares"].map(|name| file.with_file_name(name)));
    weights.into_iter().find_map(|file| fs::read_to_string(file).ok()).map(|text| text.trim().to_owned())
}

const WHOLE: [&str; 2] = ["100", "1024"];
const TENTH: [&str; 2] = ["10", "102"];

fn is(weights: [&str; 2], cgroup: &RequestCgroup) -> bool {
    weights.contains(&weight(cgroup).unwrap().as_str())
}

async fn of(client: &Client, user: &str, cgroups: &RequestCgroups) -> RequestCgroup {
    client.meter(&Request::rpc(FETCH).user(user)).cgroup(cgroups).await.unwrap()
}

#[tokio::test]
async fn requests_of_an_account_that_is_cut_have_a_tenth_of_the_weight_for_as_long_as_it_is() {
    let mut tested = 0;
    for parents in Parents::all() {
        let fake = Fake::start().await;
        let client = builder([&fake]).build().unwrap();
        let cgroups = parents.cgroups();
        let (noisy, quiet) = (of(&client, "noisy", &cgroups).await, of(&client, "quiet", &cgroups).await);
        if weight(&noisy).is_none() {
            println!("no CPU weight in {:?}: that version is not tested", parents.0);
            continue;
        }
        tested += 1;
        assert!(is(WHOLE, &noisy) && is(WHOLE, &quiet));
        fake.cuts([cut("noisy", 1)]).await;
        assert!(client.shutdown(LONG).await);
        assert!(is(TENTH, &noisy) && is(WHOLE, &quiet), "what runs already");
        let next = of(&client, "noisy", &cgroups).await;
        assert!(is(TENTH, &next), "before anything runs in it");
        assert_eq!(client.shared().yielding(), 2);
        drop(next);
        fake.cuts([]).await;
        assert!(client.shutdown(LONG).await);
        assert!(is(WHOLE, &noisy), "it is cut no more");
        assert_eq!(client.shared().yielding(), 0);
        drop((noisy, quiet));
        removed(&client, &parents).await;
    }
    let ci = std::env::var("CI").as_deref() == Ok("true");
    assert!(tested > 0 || !ci, "no version of cgroups has a CPU weight here");
}

#[tokio::test]
async fn requests_of_an_account_that_is_cut_yield_nothing_where_that_is_switched_off() {
    for parents in Parents::all() {
        let fake = Fake::start().await;
        let settings = format!("request_cgroups = {:?}\ncgroup.yield = false", parents.0);
        let settings = crate::Settings::from_toml(&settings).unwrap();
        let client = builder([&fake]).settings(settings).build().unwrap();
        fake.cuts([cut("noisy", 1)]).await;
        let noisy = of(&client, "noisy", client.request_cgroups().unwrap()).await;
        assert!(client.shutdown(LONG).await);
        assert!(weight(&noisy).is_none_or(|weight| WHOLE.contains(&weight.as_str())));
        assert_eq!(client.shared().yielding(), 0);
        drop(noisy);
        removed(&client, &parents).await;
    }
}

#[tokio::test]
async fn what_an_earlier_process_left_is_removed_and_nothing_else() {
    for parents in Parents::all() {
        let this = crate::process::Process::of(std::process::id()).unwrap();
        let names =
            ["quota-1-7-0".to_owned(), format!("quota-{this}-x"), "quota-other".to_owned(), "x".to_owned()];
        for (path, name) in parents.0.iter().flat_map(|path| names.iter().map(move |name| (path, name))) {
            fs::create_dir(path.join(name)).unwrap();
        }
        parents.cgroups();
        assert_eq!(parents.count(), 3);
        assert!(parents.0.iter().all(|path| !path.join(&names[0]).exists()));
    }
}

#[test]
fn what_is_no_cgroup_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let kind = |paths: &[&Path]| RequestCgroups::below(paths).unwrap_err().kind();
    assert_eq!(kind(&[folder.path()]), ErrorKind::Unsupported);
    assert_eq!(kind(&[]), ErrorKind::Unsupported);
    assert_eq!(kind(&[&folder.path().join("nothing")]), ErrorKind::NotFound);
    assert_eq!(directories(folder.path()).count(), 0, "nothing is left");
}

#[tokio::test]
async fn a_program_that_is_not_there_fails_and_what_is_there_runs_as_it_is_told() {
    for parents in Parents::all() {
        let fake = Fake::start().await;
        let client = builder([&fake]).build().unwrap();
        let cgroup = client.meter(&fetch()).cgroup(&parents.cgroups()).await.unwrap();
        let failed = cgroup.command("/no such program").output().unwrap();
        assert!(!failed.status.success() && !failed.stderr.is_empty());
        let mut command = cgroup.command("printf");
        let output = command.args(["%s|", "a b", "", "$x;'"]).current_dir("/").output().unwrap();
        assert_eq!(output.stdout, b"a b||$x;'|");
        drop(cgroup);
        removed(&client, &parents).await;
    }
}
