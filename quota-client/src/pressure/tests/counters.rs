//! Counters that go down, and times that do not go on.

use super::*;

#[test]
fn f19_a_counter_that_goes_down_is_no_use_and_no_panic() {
    let git = "/sys/fs/cgroup/git";
    let stat = |usage: u64, throttled: u64| format!("usage_usec {usage}\nthrottled_usec {throttled}\n");
    let files = Fixture::v2("/git")
        .with(format!("{git}/cpu.max"), "100000 100000\n")
        .with(format!("{git}/cpu.stat"), stat(16_405_214, 500_000));
    let mut probe = Probe::new(&files);
    probe.after(0.0);
    let mut at = |seconds, usage, throttled| {
        probe.files.write(format!("{git}/cpu.stat"), stat(usage, throttled));
        let measured = probe.after(seconds);
        (measured.of(Signal::Cpu).clone(), measured.of(Signal::CpuThrottled).clone())
    };
    let (used, throttled) = at(1.0, 781_274, 600_000);
    assert_near(&used, 0.0);
    assert_near(&throttled, 0.1);
    let (used, throttled) = at(1.0, 900_000, 5);
    assert_near(&used, 0.118_726);
    assert_near(&throttled, 0.0);
    assert_eq!(at(0.0, 950_000, 10), (Err(Absent::Unset), Err(Absent::Unset)));
    let (used, _) = at(1.0, u64::MAX, 10);
    assert_near(&used, 1.0);
}

#[test]
fn f19_a_cgroup_that_is_made_anew_begins_anew() {
    let files = Fixture::hybrid(false).with("/sys/fs/cgroup/cpuacct/git/cpuacct.usage", "16405214000\n");
    let mut probe = Probe::new(&files);
    probe.after(0.0);
    for (usage, share) in [("781274000\n", 0.0), ("900000000\n", 0.118_726 / 2.0)] {
        files.write("/sys/fs/cgroup/cpuacct/git/cpuacct.usage", usage);
        assert_near(probe.after(1.0).of(Signal::Cpu), share);
    }
}
