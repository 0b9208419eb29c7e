//! Real cgroups: a process burns CPU and memory under a small limit, and pressure is seen to rise and to clear. They
//! are made in whatever hierarchies this machine has, v1, v2 or both; where they cannot be made, it says why, and fails
//! in CI.

mod group;

use std::path::Path;
use std::time::{Duration, Instant};

use self::group::Group;
use super::{Absent, Measured, Measurements, Reader, Settings, Signal};
use crate::pressure::files::Machine;

const MIB: u64 = 1 << 20;

/// Longer than anything takes that is not stuck. A stall of the last 10 s takes as long to be forgotten.
const LONG: Duration = Duration::from_secs(60);

const BURN: &str = "while :; do :; done";

/// A shell that holds so many MiB of anonymous memory until it is killed.
fn hold(mib: u64) -> String {
    format!("{{ head -c {} /dev/zero; exec sleep 600; }} | tail -c {}", mib * MIB, mib * MIB)
}

/// Samples until it is so.
fn until(reader: &mut Reader<Machine>, is_so: impl Fn(&Measurements) -> bool) {
    let deadline = Instant::now() + LONG;
    loop {
        std::thread::sleep(Duration::from_millis(250));
        let measured = reader.read(Instant::now());
        if is_so(&measured) {
            return;
        }
        assert!(Instant::now() < deadline, "{measured:?}");
    }
}

fn is_above(measured: &Measurements, signal: Signal) -> bool {
    let settings = Settings::default();
    measured.of(signal).as_ref().is_ok_and(|figure| figure.value >= signal.threshold(&settings))
}

fn is_below(measured: &Measurements, signal: Signal) -> bool {
    measured.of(signal).is_ok() && !is_above(measured, signal)
}

#[test]
fn this_machine_tells() {
    let mut reader = Reader::new(Machine, "/proc/self", Settings::default());
    let first = reader.read(Instant::now());
    assert!(
        first.of(Signal::Memory).as_ref().is_ok_and(|held| (0.0..=1.0).contains(&held.value)),
        "{first:?}"
    );
    assert!(
        first.cpu_millicores.is_some_and(|cpu| cpu > 0)
            && first.memory_bytes.is_some_and(|bytes| bytes > MIB)
    );
    until(&mut reader, |measured| measured.of(Signal::Cpu).is_ok());
}

#[test]
fn a_cpu_quota_is_seen_to_be_used_up_and_to_hold_back() {
    let Some(group) = Group::start("cpu") else { return };
    group.limit_cpu(0.2);
    let mut reader = group.reader();
    assert_eq!(reader.read(Instant::now()).cpu_millicores, Some(200));
    let burner = group.run(BURN);
    until(&mut reader, |measured| {
        is_above(measured, Signal::Cpu) && is_above(measured, Signal::CpuThrottled)
    });
    drop(burner);
    until(&mut reader, |measured| {
        is_below(measured, Signal::Cpu) && is_below(measured, Signal::CpuThrottled)
    });
}

#[test]
fn threads_that_wait_for_a_cpu_are_seen() {
    let Some(group) = Group::start("stalled") else { return };
    group.limit_cpu(0.1);
    let mut reader = group.reader();
    if let Err(Absent::Missing(why)) = reader.read(Instant::now()).of(Signal::CpuStalled) {
        return eprintln!("skipped: this kernel has no pressure stalls: {why}");
    }
    let burner = group.run(BURN);
    until(&mut reader, |measured| is_above(measured, Signal::CpuStalled));
    drop(burner);
    until(&mut reader, |measured| is_below(measured, Signal::CpuStalled));
}

#[test]
fn anonymous_memory_is_seen_and_is_gone_when_it_is_freed() {
    let Some(group) = Group::start("memory") else { return };
    group.limit_memory(64 * MIB);
    let mut reader = group.reader();
    assert!(is_below(&reader.read(Instant::now()), Signal::Memory));
    let holder = group.run(&hold(52));
    until(&mut reader, |measured| is_above(measured, Signal::Memory));
    drop(holder);
    until(&mut reader, |measured| is_below(measured, Signal::Memory));
}

#[test]
fn f14_page_cache_up_to_the_limit_is_no_pressure() {
    let Some(group) = Group::start("cache") else { return };
    group.limit_memory(64 * MIB);
    // Memory files would be held indeed.
    let file = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
    let writer =
        group.run(&format!("head -c {} /dev/zero > {}; exec sleep 600", 128 * MIB, file.path().display()));
    let mut reader = group.reader();
    until(&mut reader, |measured| {
        assert!(!is_above(measured, Signal::Memory), "{measured:?}");
        group.memory_usage() >= 60 * MIB
    });
    drop(writer);
}

#[test]
fn a_kill_for_want_of_memory_is_counted() {
    let Some(group) = Group::start("oom") else { return };
    group.limit_memory(32 * MIB);
    let mut reader = group.reader();
    until(&mut reader, |measured| matches!(measured.of(Signal::OomKill), Ok(kills) if kills.value == 0.0));
    let _killed = group.run(&hold(96));
    until(&mut reader, |measured| is_above(measured, Signal::OomKill));
    until(&mut reader, |measured| is_below(measured, Signal::OomKill));
}

/// The process's own cgroup has no limit, its parent has, and a sibling uses it up. The sibling, as the cgroup of a
/// repository, has a limit of its own.
#[test]
fn f16_a_limit_of_the_parent_is_used_up_by_a_sibling() {
    let Some(parent) = Group::start("parent") else { return };
    parent.limit_memory(64 * MIB);
    let (own, sibling) = (parent.child("own"), parent.child("repository"));
    sibling.limit_memory(60 * MIB);
    own.adopt(parent.process());
    let settings = Settings { repositories: parent.path(), ..Settings::default() };
    let mut reader = Reader::new(Machine, Path::new("/proc").join(parent.process().to_string()), settings);
    assert!(is_below(&reader.read(Instant::now()), Signal::Memory));
    let holder = sibling.run(&hold(52));
    let both = [Signal::Memory, Signal::RepositoryMemory];
    until(&mut reader, |measured| both.iter().all(|signal| is_above(measured, *signal)));
    let source = |measured: &Measured| measured.as_ref().unwrap().source.clone();
    let measured = reader.read(Instant::now());
    assert!(source(measured.of(Signal::RepositoryMemory)).starts_with(source(measured.of(Signal::Memory))));
    assert_eq!(measured.memory_bytes, Some(64 * MIB));
    drop(holder);
    until(&mut reader, |measured| both.iter().all(|signal| is_below(measured, *signal)));
}
