use std::path::PathBuf;

use super::*;

fn settings() -> Settings {
    Settings { repositories: Some(PathBuf::from("/gitaly/repos")), ..Settings::default() }
}

const REPOS: &str = "/sys/fs/cgroup/gitaly/repos";

fn with_repository(files: Fixture, name: &str, max: u64, current: u64, cache: u64) -> Fixture {
    let directory = format!("{REPOS}/{name}");
    files
        .with(format!("{directory}/cpu.max"), "50000 100000\n")
        .with(format!("{directory}/cpu.stat"), "usage_usec 0\nthrottled_usec 0\n")
        .with(format!("{directory}/memory.max"), format!("{max}\n"))
        .with(format!("{directory}/memory.current"), format!("{current}\n"))
        .with(
            format!("{directory}/memory.stat"),
            format!("inactive_file {cache}\nactive_file 0\nslab_reclaimable 0\n"),
        )
}

#[test]
fn the_repository_that_is_nearest_to_its_own_limit_is_told() {
    let files = with_repository(Fixture::v2("/gitaly/main"), "one", 1000, 700, 0);
    let files = with_repository(files, "two", 1000, 1000, 900);
    let files = with_repository(files, "six", 1000, 900, 100);
    let files = with_repository(files, "ten", u64::MAX, 5000, 0);
    let mut probe = Probe::with(&files, settings());
    let first = probe.after(0.0);
    assert_near(first.of(Signal::RepositoryMemory), 0.8);
    assert_eq!(first.of(Signal::RepositoryMemory).as_ref().unwrap().source, PathBuf::from(REPOS).join("six"));
    assert_eq!(first.of(Signal::RepositoryCpu), &Err(Absent::Unset));
    files.write(format!("{REPOS}/two/cpu.stat"), "usage_usec 480000\n");
    files.write(format!("{REPOS}/one/cpu.stat"), "usage_usec 100000\n");
    let second = probe.after(1.0);
    assert_near(second.of(Signal::RepositoryCpu), 0.96);
    assert_eq!(second.of(Signal::RepositoryCpu).as_ref().unwrap().source, PathBuf::from(REPOS).join("two"));
    // The process's own cgroup has no limit.
    assert_near(second.of(Signal::Memory), 0.25);
}

#[test]
fn a_repository_that_is_removed_meanwhile_is_no_failure() {
    let files = with_repository(Fixture::v2("/gitaly/main"), "one", 1000, 700, 0);
    let files = with_repository(files, "two", 1000, 800, 0);
    files.fail(format!("{REPOS}/two/memory.stat"), rustix::io::Errno::NODEV);
    files.remove(format!("{REPOS}/two/cpu.stat"));
    let mut probe = Probe::with(&files, settings());
    probe.after(0.0);
    let measured = probe.after(1.0);
    assert_near(measured.of(Signal::RepositoryMemory), 0.7);
    assert_eq!(value(measured.of(Signal::RepositoryCpu)), 0.0);
    files.fail(format!("{REPOS}/two/memory.stat"), rustix::io::Errno::ACCESS);
    assert_failed(probe.after(1.0).of(Signal::RepositoryMemory));
}

#[test]
fn without_such_a_setting_or_without_repositories_there_is_nothing_to_measure() {
    let files = with_repository(Fixture::v2("/gitaly/main"), "one", 1000, 900, 0);
    let measured = Probe::new(&files).after(0.0);
    assert_eq!(measured.of(Signal::RepositoryMemory), &Err(Absent::Unset));
    files.remove(format!("{REPOS}/one"));
    files.write(format!("{REPOS}/cgroup.procs"), "");
    let measured = Probe::with(&files, settings()).after(0.0);
    assert_eq!(measured.of(Signal::RepositoryMemory), &Err(Absent::Unset));
    files.remove(REPOS);
    assert_missing(Probe::with(&files, settings()).after(0.0).of(Signal::RepositoryMemory));
    assert_missing(Probe::with(&Fixture::machine(), settings()).after(0.0).of(Signal::RepositoryCpu));
}

/// Beside the process's own cgroup in v2, and in v1 always: there no cgroup counts for those below it.
#[test]
fn kills_in_repositories_count_once() {
    let v2 = Fixture::v2("/gitaly/main")
        .with("/sys/fs/cgroup/gitaly/main/memory.events", "oom_kill 1\n")
        .with(format!("{REPOS}/memory.events"), "oom_kill 1\n");
    let nested = Fixture::v2("/gitaly")
        .with("/sys/fs/cgroup/gitaly/memory.events", "oom_kill 1\n")
        .with(format!("{REPOS}/memory.events"), "oom_kill 1\n");
    let v1_one = "/sys/fs/cgroup/memory/gitaly/repos/one/memory.oom_control";
    let v1 = Fixture::hybrid(false).with(v1_one, "under_oom 0\noom_kill 1\n");
    for (files, killed) in [
        (v2, [format!("{REPOS}/memory.events"), String::new()]),
        (nested, [format!("{REPOS}/memory.events"), "/sys/fs/cgroup/gitaly/memory.events".to_owned()]),
        (v1, [v1_one.to_owned(), String::new()]),
    ] {
        let mut probe = Probe::with(&files, settings());
        probe.after(0.0);
        assert_eq!(value(probe.after(1.0).of(Signal::OomKill)), 0.0);
        for file in killed.iter().filter(|file| !file.is_empty()) {
            files.write(file.as_str(), "oom_kill 3\n");
        }
        assert_eq!(value(probe.after(1.0).of(Signal::OomKill)), 2.0);
    }
}

/// On a machine with the v1 hierarchies, a repository's CPU is counted in another directory than its quota is in.
#[test]
fn in_v1_quota_and_use_of_a_repository_are_in_two_hierarchies() {
    let files = Fixture::hybrid(false)
        .with("/sys/fs/cgroup/cpu/gitaly/repos/one/cpu.cfs_quota_us", "100000\n")
        .with("/sys/fs/cgroup/cpu/gitaly/repos/one/cpu.cfs_period_us", "100000\n")
        .with("/sys/fs/cgroup/cpuacct/gitaly/repos/one/cpuacct.usage", "0\n");
    let mut probe = Probe::with(&files, settings());
    probe.after(0.0);
    files.write("/sys/fs/cgroup/cpuacct/gitaly/repos/one/cpuacct.usage", "900000000\n");
    assert_near(probe.after(1.0).of(Signal::RepositoryCpu), 0.9);
}
