//! From what the machine is like to what becomes of limits and of requests in flight.

use std::sync::Arc;

use parking_lot::Mutex;

use super::machine::{Log, Machine, calm, hot};
use super::*;
use crate::{Cause, Permit, PressureSample, PressureSignal};

/// One that moves, and one that does not.
const SETTINGS: &str = r#"
    [[concurrency]]
    rpc = "/gitaly.SSHService/SSHUploadPack"
    per = "repo"
    adaptive = { min = 10, initial = 40, max = 60 }
    max_queue = 300
    max_wait = "60s"
    unauthenticated = { adaptive = { min = 5, initial = 8, max = 10 } }

    [[concurrency]]
    rpc = "/g.S/Other"
    per = "ip"
    limit = 15
    max_queue = 200
    max_wait = "5m"
"#;

/// Of users, of others, and the one that does not move.
fn limits(machine: &Machine) -> [usize; 3] {
    let of = |rpc: &str, authenticated: bool| {
        let mut figures = machine.client.shared().limits.figures();
        figures.find(|(name, of, _)| (*name, *of) == (rpc, authenticated)).unwrap().2.limit
    };
    [of(FETCH, true), of(FETCH, false), of("/g.S/Other", true)]
}

fn events(machine: &Machine) -> Vec<(&'static str, u64)> {
    machine.client.shared().limits.backoff_events().into_iter().collect()
}

#[tokio::test(start_paused = true)]
async fn a_hot_interval_cuts_each_limit_once_and_a_calm_one_raises_it_by_one() {
    let machine = Machine::new(SETTINGS);
    machine.is(&hot(), 30).await;
    assert_eq!(limits(&machine), [40, 8, 15], "the interval is not over");
    machine.is(&hot(), 1).await;
    assert_eq!(limits(&machine), [30, 6, 15], "thirty events are one cut");
    machine.is(&hot(), 30).await;
    assert_eq!(limits(&machine), [22, 5, 15]);
    machine.is(&calm(), 30).await;
    assert_eq!(limits(&machine), [23, 6, 15]);
    machine.is(&hot(), 300).await;
    assert_eq!(limits(&machine), [10, 5, 15], "never below min");
    machine.is(&calm(), 30 * 60).await;
    assert_eq!(limits(&machine), [60, 10, 15], "nor above max");
    assert_eq!(events(&machine), [("cpu", 12)], "each interval once");
}

#[tokio::test(start_paused = true)]
async fn each_change_is_a_line_with_limit_old_new_reason_and_figures() {
    let (machine, log) = (Machine::new(SETTINGS), Log::start());
    machine.is_for(&hot(), 1).await;
    let mut cuts = log.take("a concurrency limit is cut");
    cuts.sort();
    assert_eq!(cuts.len(), 2, "{cuts:?}");
    let of_others = "rpc=/gitaly.SSHService/SSHUploadPack authenticated=false old=8 new=6 reason=\"cpu\"";
    assert!(cuts[0].contains(of_others), "{}", cuts[0]);
    assert!(cuts[1].contains("authenticated=true old=40 new=30"), "{}", cuts[1]);
    assert!(cuts.iter().all(|line| line.contains("value=0.99 usual=0.9")), "{cuts:?}");
    machine.is(&calm(), 30).await;
    let raised = log.take("a concurrency limit is raised");
    assert!(raised.iter().any(|line| line.contains("old=30 new=31 reason=\"calm\"")), "{raised:?}");
}

/// What cannot be read is not healthy, but is no event before its fifth failure.
#[tokio::test(start_paused = true)]
async fn f18_a_signal_that_is_lost_cuts_limits_after_five_failures() {
    let machine = Machine::new(SETTINGS);
    machine.is_for(&calm().losing(PressureSignal::Memory, 4), 1).await;
    assert_eq!(limits(&machine), [41, 9, 15]);
    machine.is(&calm().losing(PressureSignal::Memory, 5), 30).await;
    assert_eq!(limits(&machine), [30, 6, 15]);
    assert_eq!(events(&machine), [("memory", 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_kill_for_want_of_memory_in_one_second_counts_for_its_interval() {
    let (machine, log) = (Machine::new(SETTINGS), Log::start());
    machine.is(&calm(), 7).await;
    machine.is(&PressureSample::with(&[(PressureSignal::OomKill, 1.0)]), 1).await;
    machine.is(&calm(), 23).await;
    assert_eq!(limits(&machine), [30, 6, 15]);
    let cuts = log.take("a concurrency limit is cut");
    assert!(cuts.iter().all(|line| line.contains("reason=\"oom_kill\" value=1.0 usual=1.0")), "{cuts:?}");
}

/// As the settings say: after three in a row, two in each interval, the most harmful first.
#[tokio::test(start_paused = true)]
async fn requests_are_ended_after_hot_calibrations_in_a_row() {
    let machine = Machine::new("[shedding]\nmode = \"enforce\"\n");
    let ended = Arc::new(Mutex::new(Vec::new()));
    for seconds in [1, 4, 2, 3] {
        let meter = machine.client.meter(&fetch());
        meter.cpu(Duration::from_secs(seconds));
        let ended = Arc::clone(&ended);
        tokio::spawn(async move {
            let denial = meter.is_shed().await;
            ended.lock().push((seconds, denial));
        });
    }
    let who = || ended.lock().iter().map(|(seconds, _)| *seconds).collect::<Vec<_>>();
    machine.is_for(&hot(), 2).await;
    machine.is(&calm(), 30).await;
    machine.is(&hot(), 60).await;
    assert_eq!(who(), [] as [u64; 0], "not in a row");
    machine.is(&hot(), 30).await;
    assert_eq!(who(), [4, 3]);
    machine.is(&hot(), 30).await;
    assert_eq!(who(), [4, 3, 2, 1]);
    assert_eq!(machine.client.stats().shed, 4);
    let (_, denial) = ended.lock()[0].clone();
    assert_eq!(denial.cause(), &Cause::Shed);
    let wait = denial.retry_after();
    assert!((Duration::from_secs(30)..=Duration::from_secs(36)).contains(&wait), "{wait:?}");
}

/// Of a limit that is cut to 6, 4, 3 and 2.
const ABOVE_LIMIT: &str = r#"
    [[concurrency]]
    rpc = "/gitaly.SSHService/SSHUploadPack"
    per = "repo"
    adaptive = { min = 2, initial = 9, max = 9 }
    max_queue = 0
    max_wait = "1s"

    [shedding]
    mode = "enforce"
    after = 1000
    above_limit_for = "45s"
    most = 1
"#;

/// As many as run at once.
async fn permits(machine: &Machine) -> Vec<Permit> {
    let mut permits = Vec::new();
    while let Ok(permit) = machine.client.acquire(&fetch(), None).await {
        permits.extend(permit);
    }
    permits
}

/// More run than the limit that is left, and do not end.
#[tokio::test(start_paused = true)]
async fn requests_are_ended_when_a_lowered_limit_is_exceeded_for_long() {
    let machine = Machine::new(ABOVE_LIMIT);
    let permits = permits(&machine).await;
    let meter = machine.client.meter(&fetch());
    let work = tokio::spawn(async move { meter.is_shed().await });
    machine.is_for(&hot(), 2).await;
    assert!(!work.is_finished(), "above for 30 s");
    machine.is(&hot(), 30).await;
    assert!(work.is_finished(), "above for 60 s");
    assert_eq!(machine.client.stats().shed, 1);
    drop(permits);
}

/// Each interval ends with more than its cut leaves room for, which has gone some seconds later.
#[tokio::test(start_paused = true)]
async fn what_ends_between_two_cuts_does_not_exceed_the_limit_for_long() {
    let machine = Machine::new(ABOVE_LIMIT);
    let meter = machine.client.meter(&fetch());
    let work = tokio::spawn(async move { meter.is_shed().await });
    machine.is(&hot(), 1).await;
    for limit in [9, 6, 4, 3] {
        machine.is(&hot(), 20).await;
        let permits = permits(&machine).await;
        assert_eq!(permits.len(), limit);
        machine.is(&hot(), 10).await;
    }
    machine.is(&hot(), 1).await;
    assert_eq!(machine.client.stats().shed, 0);
    assert!(!work.is_finished());
}

/// One that hangs, and one that only meters, do not keep others alive.
#[tokio::test(start_paused = true)]
async fn what_would_not_end_takes_no_place_of_what_would() {
    let machine = Machine::new("[shedding]\nmode = \"enforce\"\nafter = 1\nmost = 1\n");
    let deaf = machine.client.meter(&fetch());
    deaf.cpu(Duration::from_secs(9));
    let hangs = machine.client.meter(&fetch());
    hangs.cpu(Duration::from_secs(8));
    let told = tokio::spawn({
        let hangs = hangs.clone();
        async move { hangs.is_shed().await }
    });
    let light = machine.client.meter(&fetch());
    let ended = tokio::spawn(async move { light.is_shed().await });
    machine.is_for(&hot(), 1).await;
    assert!(told.is_finished() && !ended.is_finished());
    machine.is(&hot(), 30).await;
    assert!(ended.is_finished());
    assert_eq!(machine.client.stats().shed, 2);
}
