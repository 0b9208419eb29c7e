//! What children cost, against what the kernel says of them: F19 and F20 without cgroups.

use std::time::Instant;

use quota_core::Cost;
use rustix::process::Signal;

use super::children::{BURN, Shell, cpu, process_cpu};
use super::fake::{Heard, costs};
use super::*;

fn request(user: &str) -> Request {
    Request::rpc("/x").user(user)
}

fn cpu_of(user: &str, heard: &Heard) -> Duration {
    let costs = costs(heard).filter(|(name, _)| *name == user);
    Duration::from_micros(costs.map(|(_, cost)| cost.cpu_micros).sum())
}

fn byte_seconds(heard: &Heard) -> u64 {
    costs(heard).map(|(_, cost)| cost.memory_byte_seconds).sum()
}

/// A quarter of the 2 CPU-seconds of the one and of the 1 of the other.
#[tokio::test]
async fn f20_parallel_requests_pay_their_own_children_once_though_killed_stopped_or_outlived() {
    const A: Duration = Duration::from_millis(500);
    const B: Duration = Duration::from_millis(250);
    let fake = Fake::start().await;
    let client = builder([&fake]).build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let go_on = folder.path().join("go-on");
    let mut a = Shell::run(BURN);
    let a_meter = client.meter(&request("a")).child(a.pid());
    let script = "for i in 1 2; do (while :; do :; done) & echo $!; done; while ! [ -e $0 ]; do :; done";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script]).arg(&go_on);
    let mut b = Shell::start(command);
    let b_meter = client.meter(&request("b")).child(b.pid());
    let grandchildren = [b.line(), b.line()].map(|pid| pid.parse().unwrap());

    fake.hears(|heard| cpu_of("a", heard) >= A / 2).await;
    a.signal(Signal::STOP);
    fake.hears(|heard| cpu_of("b", heard) >= B).await;
    std::fs::write(go_on, "").unwrap();
    let b_alone = b.wait().unwrap();
    b_meter.ended(b_alone);
    let b_all = b_alone + grandchildren.map(process_cpu).iter().sum::<Duration>();
    a.signal(Signal::CONT);
    fake.hears(|heard| cpu_of("a", heard) >= A).await;
    let a_all = a.kill().unwrap();
    a_meter.ended(a_all);
    assert!(client.shutdown(LONG).await);

    let heard = fake.heard();
    assert_eq!(cpu_of("a", &heard).as_micros(), a_all.as_micros());
    assert!(a_all >= A, "{a_all:?}");
    let b_charged = cpu_of("b", &heard);
    assert!(B.max(b_alone) <= b_charged && b_charged <= b_all, "{b_alone:?} {b_charged:?} {b_all:?}");
    assert_eq!(client.stats().cost_clamped, 0);
}

#[tokio::test]
async fn f20_a_request_that_is_cancelled_or_panics_reports_its_child() {
    let fake = Fake::start().await;
    let client = builder([&fake]).build().unwrap();
    for (user, panics) in [("cancelled", false), ("panics", true)] {
        let meter = client.meter(&request(user));
        let (tell, told) = tokio::sync::oneshot::channel::<()>();
        let work = tokio::spawn(async move {
            let shell = Shell::run(BURN);
            let _child = meter.child(shell.pid());
            told.await.unwrap();
            assert!(!panics, "as it should");
            std::future::pending::<()>().await;
        });
        let heard = fake.hears(|heard| cpu_of(user, heard) >= Duration::from_millis(50)).await;
        if panics {
            tell.send(()).unwrap();
        } else {
            work.abort();
        }
        assert_eq!(work.await.unwrap_err().is_panic(), panics);
        assert!(client.shutdown(LONG).await);
        assert!(cpu_of(user, &fake.heard()) >= cpu_of(user, &heard));
        let after = fake.heard().reports.len();
        assert!(client.shutdown(LONG).await);
        assert_eq!(fake.heard().reports.len(), after, "{user}: it is over");
    }
}

#[tokio::test]
async fn f19_a_wait_status_that_cannot_be_is_cut_down_and_counted() {
    for is_readable in [true, false] {
        let fake = Fake::start().await;
        let client = builder([&fake]).report_interval(LONG).build().unwrap();
        let before = Instant::now();
        let mut shell = Shell::run("exit 0");
        let child = client.meter(&request("a")).child(if is_readable { shell.pid() } else { u32::MAX });
        shell.wait().unwrap();
        child.ended(Duration::MAX);
        // A child's start is known to one tick of the kernel's clock.
        let elapsed = before.elapsed() + Duration::from_millis(10);
        assert!(client.shutdown(LONG).await);
        let most = elapsed * crate::pressure::processors() * 11 / 10;
        let charged = cpu(&fake.heard());
        assert!(charged > Duration::ZERO && charged <= most, "{charged:?} of {most:?}");
        assert_eq!(client.stats().cost_clamped, 1);
    }
}

/// Their sums are bounded, and none wraps around.
#[tokio::test]
async fn what_a_caller_tells_is_held_down_to_the_most_that_a_charge_has() {
    let fake = Fake::start().await;
    let client = builder([&fake]).report_interval(LONG).build().unwrap();
    let meter = client.meter(&request("a"));
    for _ in 0..2 {
        meter.cpu(Duration::MAX);
        meter.memory(u64::MAX);
        meter.sent(u64::MAX);
    }
    drop(meter);
    assert!(client.shutdown(LONG).await);
    let heard = fake.heard();
    let [(_, cost)] = costs(&heard).collect::<Vec<_>>()[..] else { panic!("one charge") };
    let charged = (cost.cpu_micros, cost.memory_byte_seconds, cost.network_bytes);
    assert_eq!(charged, (Cost::MAX, Cost::MAX * 1024, Cost::MAX), "memory counts in KiB");
    assert_eq!(client.stats().cost_clamped, 0);
}

#[tokio::test]
async fn anonymous_memory_is_charged_for_as_long_as_it_is_held() {
    const HELD: usize = 16 << 20;
    let fake = Fake::start().await;
    let client = builder([&fake]).build().unwrap();
    let mut shell = Shell::run(&format!("x=$(head -c {HELD} /dev/zero | tr '\\0' x); echo held; {BURN}"));
    assert_eq!(shell.line(), "held");
    let began = Instant::now();
    let child = client.meter(&request("a")).child(shell.pid());
    let begun = Instant::now();
    fake.hears(|heard| byte_seconds(heard) >= HELD as u64 / 10).await;
    let process = format!("/proc/{}/status", shell.pid());
    let status = std::fs::read_to_string(process).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    let least = begun.elapsed();
    drop(child);
    let most = began.elapsed();
    assert!(client.shutdown(LONG).await);
    let charged = byte_seconds(&fake.heard()) as f64;
    assert!(charged >= HELD as f64 * least.as_secs_f64() * 0.99, "{charged} in {least:?}");
    assert!(charged <= (peak * 1024) as f64 * most.as_secs_f64() + 1024.0, "{charged} in {most:?}");
}

#[tokio::test]
async fn what_is_less_than_a_kibibyte_second_waits_and_is_not_lost() {
    let fake = Fake::start().await;
    let client = builder([&fake]).report_interval(LONG).build().unwrap();
    let meter = client.meter(&request("a"));
    for (more, charged) in [(1000, 0), (1000, 1024), (1000, 2048), (73, 3072)] {
        meter.memory(more);
        assert!(client.shutdown(LONG).await);
        assert_eq!(byte_seconds(&fake.heard()), charged);
    }
    drop(meter);
    assert!(client.shutdown(LONG).await);
    assert_eq!(byte_seconds(&fake.heard()), 4096, "the last is rounded up");
}
