use super::*;
use crate::pressure::judge::{Judge, State};
use crate::pressure::measured::Figure;

fn measured(signal: Signal, measured: Measured) -> Measurements {
    let mut all = Measurements::all(&Absent::Unset);
    all.set(signal, measured);
    all
}

fn of(value: f64) -> Measured {
    Ok(Figure { value, source: "/cg".into() })
}

/// The states that a signal goes through, with the number of the sample at which each begins, and whether it is an
/// event after each sample.
fn states(signal: Signal, steps: &[Measured]) -> (Vec<(usize, State)>, Vec<bool>) {
    let mut judge = Judge::new(Settings::default());
    let (mut states, mut events) = (Vec::new(), Vec::new());
    for (at, step) in steps.iter().enumerate() {
        let (sample, changes) = judge.judge(&measured(signal, step.clone()));
        states.extend(changes.iter().map(|change| (at, change.state)));
        events.push(sample.events().any(|(event, _)| event == signal));
    }
    (states, events)
}

#[test]
fn f18_a_signal_is_an_event_from_its_threshold_on_and_each_change_is_told_once() {
    let (states, events) = states(Signal::Memory, &[of(0.74), of(0.75), of(0.9), of(0.75), of(0.1), of(0.0)]);
    assert_eq!(states, [(1, State::Reached), (4, State::Calm)]);
    assert_eq!(events, [false, true, true, true, false, false]);
}

#[test]
fn five_failures_in_a_row_of_what_was_read_before_are_an_event() {
    let missing = || Err(Absent::Missing("gone".to_owned()));
    let steps = [of(0.1), missing(), missing(), missing(), missing(), missing(), missing(), of(0.1)];
    let (changes, events) = states(Signal::Cpu, &steps);
    assert_eq!(changes, [(1, State::Absent), (5, State::Lost), (7, State::Calm)]);
    assert_eq!(events, [false, false, false, false, false, true, true, false]);
    let four = [of(0.1), missing(), missing(), missing(), missing(), of(0.1), missing()];
    assert_eq!(states(Signal::Cpu, &four).1, [false; 7]);
}

#[test]
fn f18_what_a_kernel_never_had_is_absent_for_ever_and_what_cannot_be_read_is_not() {
    let steps = |absent: Absent| (0..7).map(|_| Err(absent.clone())).collect::<Vec<_>>();
    let missing = states(Signal::CpuStalled, &steps(Absent::Missing("no such file".to_owned())));
    assert_eq!(missing, (vec![(0, State::Absent)], vec![false; 7]));
    let (changes, events) =
        states(Signal::CpuStalled, &steps(Absent::Failed("permission denied".to_owned())));
    assert_eq!(changes, [(0, State::Absent), (4, State::Lost)]);
    assert_eq!(events, [false, false, false, false, true, true, true]);
    assert_eq!(states(Signal::Network, &steps(Absent::Unset)), (vec![], vec![false; 7]));
}

#[test]
fn a_kill_is_an_event_and_told_to_the_service() {
    use quota_proto::v1::report_pressure_request::Event;
    let mut judge = Judge::new(Settings::default());
    let (sample, _) = judge.judge(&measured(Signal::OomKill, of(2.0)));
    assert_eq!(sample.events_to_tell(), [i32::from(Event::OomKill)]);
    let events: Vec<_> = sample.events().map(|(signal, reading)| format!("{signal} {reading}")).collect();
    assert_eq!(events, ["oom_kill 2.00 of 1.00 (/cg)"]);
    let (sample, _) = judge.judge(&measured(Signal::OomKill, of(0.0)));
    assert_eq!((sample.events_to_tell(), sample.events().count()), (vec![], 0));
}

#[test]
fn the_service_is_told_the_larger_of_what_is_used_and_what_is_held_back() {
    let mut judge = Judge::new(Settings { network_bytes_per_second: Some(9), ..Settings::default() });
    let mut all = measured(Signal::Cpu, of(0.7));
    all.set(Signal::Memory, of(0.2));
    all.memory_bytes = Some(0);
    let (sample, _) = judge.judge(&all);
    assert_eq!((sample.pressure().cpu, sample.pressure().memory), (Some(0.7), Some(0.2)));
    assert_eq!(sample.pressure().network, None);
    assert_eq!((sample.capacity.network_bytes_per_second, sample.capacity.memory_bytes), (Some(9), None));
    all.set(Signal::CpuThrottled, of(0.95));
    assert_eq!(judge.judge(&all).0.pressure().cpu, Some(0.95));
    let (sample, _) = judge.judge(&Measurements::all(&Absent::Missing(String::new())));
    assert_eq!((sample.pressure().cpu, sample.capacity.cpu_millicores), (None, None));
    // Which signals can be read is for a gauge.
    assert!(sample.readings().all(|(_, reading)| reading.value.is_none()));
    assert_eq!(sample.readings().count(), Signal::ALL.len());
    assert!(Signal::ALL.iter().enumerate().all(|(at, signal)| *signal as usize == at));
}
