//! Data that is there in part. What is missing is absent, never 0, and the other signals go on.

use rustix::io::Errno;

use super::*;

const GIT: &str = "/sys/fs/cgroup/git";

fn git() -> Fixture {
    Fixture::v2("/git")
        .with(format!("{GIT}/cpu.max"), "100000 100000\n")
        .with(format!("{GIT}/cpu.stat"), "usage_usec 0\nthrottled_usec 0\n")
        .with(format!("{GIT}/cpu.pressure"), fixture::stalled("50.00"))
        .with(format!("{GIT}/memory.max"), "1000000\n")
        .with(format!("{GIT}/memory.current"), "600000\n")
        .with(format!("{GIT}/memory.stat"), "inactive_file 100000\nactive_file 0\nslab_reclaimable 0\n")
        .with(format!("{GIT}/memory.events"), "oom_kill 0\n")
}

/// After two samples.
fn read(files: &Fixture) -> Measurements {
    let mut probe = Probe::new(files);
    probe.after(0.0);
    probe.after(1.0)
}

#[test]
fn f18_without_the_controller_cpu_stat_does_not_tell_what_is_throttled() {
    let files = git().with(format!("{GIT}/cpu.stat"), "usage_usec 1\nuser_usec 1\nsystem_usec 0\n");
    let measured = read(&files);
    assert_missing(measured.of(Signal::CpuThrottled));
    assert_eq!(value(measured.of(Signal::Cpu)), 0.0);
    // As v1 writes it.
    let files = git().with(format!("{GIT}/cpu.stat"), "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n");
    let measured = read(&files);
    assert_missing(measured.of(Signal::CpuThrottled));
    assert_missing(measured.of(Signal::Cpu));
    assert_eq!(value(measured.of(Signal::Memory)), 0.5);
}

#[test]
fn f18_half_a_line_and_an_empty_file_are_absent() {
    for stat in ["", "usage_u", "usage_usec", "nr_periods 1\nusage_usec "] {
        let measured = read(&git().with(format!("{GIT}/cpu.stat"), stat));
        assert!(measured.of(Signal::Cpu).is_err(), "{stat:?}");
        assert_eq!(value(measured.of(Signal::Memory)), 0.5);
    }
    for stat in ["", "inactive_file 1\nactive_fi", "inactive_file \nactive_file 1"] {
        let measured = read(&git().with(format!("{GIT}/memory.stat"), stat));
        assert!(measured.of(Signal::Memory).is_err(), "{stat:?}");
        assert_eq!(value(measured.of(Signal::Cpu)), 0.0);
    }
    assert_failed(read(&git().with(format!("{GIT}/memory.current"), "")).of(Signal::Memory));
}

#[test]
fn f18_stalls_without_a_line_of_full_are_read() {
    let measured = read(&git().with(format!("{GIT}/cpu.pressure"), "some avg10=25.00 avg60=0 total=1\n"));
    assert_near(measured.of(Signal::CpuStalled), 0.25);
}

/// An error on a file is an error of its signals, and says nothing of a limit that is not there.
#[test]
fn f18_an_error_is_absent_for_its_own_signal_only() {
    type Assert = fn(&Measured);
    let errors: [(Errno, Assert); 4] = [
        (Errno::OPNOTSUPP, assert_missing),
        (Errno::NODEV, assert_missing),
        (Errno::ACCESS, assert_failed),
        (Errno::IO, assert_failed),
    ];
    for (error, assert) in errors {
        for (file, signals, other) in [
            ("cpu.max", vec![Signal::Cpu, Signal::CpuThrottled], Signal::Memory),
            ("cpu.stat", vec![Signal::Cpu, Signal::CpuThrottled], Signal::Memory),
            ("cpu.pressure", vec![Signal::CpuStalled], Signal::MemoryStalled),
            ("memory.max", vec![Signal::Memory], Signal::Cpu),
            ("memory.high", vec![Signal::Memory], Signal::Cpu),
            ("memory.current", vec![Signal::Memory], Signal::OomKill),
            ("memory.stat", vec![Signal::Memory], Signal::OomKill),
            ("memory.events", vec![Signal::OomKill], Signal::Memory),
        ] {
            let files = git();
            files.fail(format!("{GIT}/{file}"), error);
            let measured = read(&files);
            for signal in signals {
                assert(measured.of(signal));
            }
            assert!(measured.of(other).is_ok(), "{file} {error}");
        }
    }
}

#[test]
fn f18_what_is_not_there_at_all_is_missing() {
    let files = git();
    for file in ["memory.stat", "cpu.stat", "cpu.pressure"] {
        files.remove(format!("{GIT}/{file}"));
    }
    files.remove("/proc/pressure");
    let measured = read(&files);
    for signal in [Signal::Memory, Signal::Cpu, Signal::CpuThrottled, Signal::CpuStalled, Signal::IoStalled] {
        assert_missing(measured.of(signal));
    }
}

/// Which limits there are is not known then, and the machine's would be a guess.
#[test]
fn where_the_cgroups_cannot_be_found_nothing_is_known() {
    for file in ["/proc/self/cgroup", "/proc/self/mountinfo"] {
        let files = git();
        files.fail(file, Errno::ACCESS);
        let measured = read(&files);
        assert_failed(measured.of(Signal::Memory));
        assert_failed(measured.of(Signal::Cpu));
        assert_eq!(measured.of(Signal::Network), &Err(Absent::Unset));
        assert_eq!(measured.of(Signal::RepositoryCpu), &Err(Absent::Unset));
    }
}

#[test]
fn the_network_is_compared_with_the_line_rate_where_there_is_one() {
    let device = |received: u64, sent: u64| {
        format!(
            "Inter-| Receive\n face |bytes\n lo: 9 0 0 0 0 0 0 0 9\n eth0: {received} 0 0 0 0 0 0 0 {sent} 0\n"
        )
    };
    let files = git().with("/proc/self/net/dev", device(5, 5));
    let settings = Settings { network_bytes_per_second: Some(1000), ..Settings::default() };
    let mut probe = Probe::with(&files, settings);
    assert_eq!(probe.after(0.0).of(Signal::Network), &Err(Absent::Unset));
    for (received, sent, share) in [(205, 905, 0.45), (1205, 1005, 0.5), (5, 0, 0.0), (90_005, 0, 1.0)] {
        files.write("/proc/self/net/dev", device(received, sent));
        assert_near(probe.after(2.0).of(Signal::Network), share);
    }
    files.write("/proc/self/net/dev", "");
    assert_failed(probe.after(1.0).of(Signal::Network));
    files.remove("/proc/self/net/dev");
    assert_missing(probe.after(1.0).of(Signal::Network));
}
