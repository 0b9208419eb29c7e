use tokio::time::Instant;

use super::*;
use crate::Request;
use crate::concurrency::calibrator::{Calibrator, Event, Moved};
use crate::concurrency::settings::tests::{rpc, set};
use crate::concurrency::{Calibration, LimitSettings, Limits, RpcSettings};

const DATA: &str = "/g.S/Data";
const PAGE: &str = "/g.S/Page";

const CPU: Event = Event { signal: "cpu", value: 0.95, threshold: 0.9 };
const MEMORY: Event = Event { signal: "memory", value: 0.9, threshold: 0.75 };

/// Two RPCs that adapt, one by its latency too, one with a stricter set; and one that does not.
fn calibrator() -> (Limits, Calibrator) {
    let data = LimitSettings::Adaptive { min: 10, initial: 40, max: 60 };
    let page = LimitSettings::Adaptive { min: 5, initial: 10, max: 20 };
    let stricter = set(LimitSettings::Adaptive { min: 1, initial: 2, max: 3 });
    let settings = [
        RpcSettings { unauthenticated: Some(stricter), ..rpc(DATA, data) },
        RpcSettings { latency: true, ..rpc(PAGE, page) },
        rpc("/g.S/Static", LimitSettings::Static(7)),
    ];
    let known: Vec<_> = settings.iter().map(|settings| settings.rpc.clone()).collect();
    let limits = Limits::new(&settings, &known).unwrap();
    let calibrator = Calibrator::new(limits.clone(), Calibration::default()).unwrap();
    (limits, calibrator)
}

/// Those of `Data`, of its stricter set, of `Page` and of `Static`.
fn current(limits: &Limits) -> [usize; 4] {
    let mut figures: Vec<_> =
        limits.figures().map(|(rpc, authenticated, figures)| (rpc, !authenticated, figures.limit)).collect();
    figures.sort_unstable();
    let limits: Vec<_> = figures.into_iter().map(|(_, _, limit)| limit).collect();
    limits.try_into().unwrap()
}

/// Ticks once a second for an interval, with these events in its first second.
fn interval(calibrator: &mut Calibrator, began: &mut Instant, events: &[Event]) -> Vec<Moved> {
    let mut moved = Vec::new();
    moved.extend(calibrator.tick(*began, events.iter().copied()));
    for _ in 0..30 {
        *began += Duration::from_secs(1);
        moved.extend(calibrator.tick(*began, []));
    }
    moved.into_iter().flat_map(|calibrated| calibrated.moved).collect()
}

#[tokio::test]
async fn every_interval_each_limit_takes_one_step_whatever_the_number_of_events() {
    let (limits, mut calibrator) = calibrator();
    let mut now = Instant::now();
    let moved = interval(&mut calibrator, &mut now, &[]);
    assert_eq!(current(&limits), [41, 3, 11, 7]);
    assert_eq!(moved.len(), 3);
    assert!(moved.iter().all(|moved| moved.reason == "calm" && moved.figures.is_none()), "{moved:?}");
    let moved = interval(&mut calibrator, &mut now, &[CPU, MEMORY, CPU, MEMORY]);
    assert_eq!(current(&limits), [30, 2, 8, 7]);
    assert!(
        moved.iter().all(|moved| moved.figures == Some((0.9, 0.75)) && moved.reason == "memory"),
        "{moved:?}"
    );
    for _ in 0..10 {
        interval(&mut calibrator, &mut now, &[CPU]);
    }
    assert_eq!(current(&limits), [10, 1, 5, 7]);
    assert!(interval(&mut calibrator, &mut now, &[CPU]).is_empty(), "what does not move is not told");
    for _ in 0..60 {
        interval(&mut calibrator, &mut now, &[]);
    }
    assert_eq!(current(&limits), [60, 3, 20, 7]);
    let events: Vec<_> = limits.backoff_events().into_iter().collect();
    assert_eq!(events, [("cpu", 12), ("memory", 1)]);
}

#[tokio::test(start_paused = true)]
async fn the_latency_of_an_rpc_cuts_its_own_limit() {
    let (limits, mut calibrator) = calibrator();
    let mut now = Instant::now();
    for held in [50, 50, 250] {
        for rpc in [PAGE, DATA] {
            for _ in 0..10 {
                let mut permits = Vec::new();
                for _ in 0..5 {
                    permits.push(
                        limits.acquire(&Request::rpc(rpc).repo("a").user("user-7"), None).await.unwrap(),
                    );
                }
                tokio::time::advance(millis(held)).await;
            }
        }
        let moved = interval(&mut calibrator, &mut now, &[]);
        let page = moved.iter().find(|moved| moved.rpc == PAGE).unwrap();
        if held == 250 {
            assert_eq!((page.reason, page.change.old, page.change.new), ("latency", 12, 9));
            let (short_term, long_term) = page.figures.unwrap();
            assert!((short_term - 0.25).abs() < 0.01 && (long_term - 0.05).abs() < 0.01, "{page:?}");
        } else {
            assert_eq!(page.reason, "calm");
        }
    }
    assert_eq!(current(&limits), [43, 3, 9, 7]);
    assert_eq!(limits.backoff_events().into_iter().collect::<Vec<_>>(), [("latency", 1)]);
}
