//! Where limits are found: per controller, in all ancestors, and in what a namespace shows.

use super::*;

const GIB: u64 = 1 << 30;

fn with_memory(files: Fixture, directory: &str, max: &str, anon: u64) -> Fixture {
    files
        .with(format!("{directory}/memory.max"), format!("{max}\n"))
        .with(format!("{directory}/memory.current"), format!("{}\n", anon + GIB))
        .with(
            format!("{directory}/memory.stat"),
            format!("inactive_file {GIB}\nactive_file 0\nslab_reclaimable 0\n"),
        )
}

fn limit(gib: u64) -> String {
    (gib * GIB).to_string()
}

/// What is held, and of what.
fn memory(files: &Fixture) -> (f64, String) {
    let measured = Probe::new(files).after(0.0).of(Signal::Memory).clone().unwrap();
    (measured.value, measured.source.to_str().unwrap().to_owned())
}

#[test]
fn f16_a_limit_of_an_ancestor_binds_with_what_all_its_children_hold() {
    let files = Fixture::v2("/pod/git");
    let files = with_memory(files, "/sys/fs/cgroup/pod/git", "max", GIB / 2);
    let files = with_memory(files, "/sys/fs/cgroup/pod/sibling", "max", 11 * GIB);
    let files = with_memory(files, "/sys/fs/cgroup/pod", &limit(12), 11 * GIB + GIB / 2);
    assert_eq!(memory(&files), (11.5 / 12.0, "/sys/fs/cgroup/pod".to_owned()));
    assert_eq!(Probe::new(&files).after(0.0).memory_bytes, Some(12 * GIB));
    // Of two limits that one counts which is nearer to being reached, though it is not the smaller.
    let files = with_memory(files, "/sys/fs/cgroup/pod/git", &limit(10), GIB / 2);
    assert_eq!(memory(&files), (11.5 / 12.0, "/sys/fs/cgroup/pod".to_owned()));
    assert_eq!(Probe::new(&files).after(0.0).memory_bytes, Some(10 * GIB));
}

#[test]
fn f16_in_a_namespace_of_its_own_the_limit_is_at_the_mount() {
    let files = with_memory(Fixture::v2("/"), "/sys/fs/cgroup", &limit(2), GIB);
    assert_eq!(memory(&files), (0.5, "/sys/fs/cgroup".to_owned()));
}

/// It is in no directory that can be read, and what can be seen of its ancestors stands for it.
#[test]
fn f16_a_cgroup_outside_of_the_mount_is_told_and_the_mount_stands_for_it() {
    let files = with_memory(Fixture::v2("/"), "/sys/fs/cgroup", &limit(2), GIB)
        .with("/proc/self/cgroup", "0::/../other\n");
    assert_eq!(memory(&files), (0.5, "/sys/fs/cgroup".to_owned()));
    let cgroups = find(&files);
    assert!(cgroups.faults().unwrap().contains("/../other is not shown, /sys/fs/cgroup is read instead"));
}

#[test]
fn f16_of_a_removed_cgroup_the_nearest_ancestor_is_read() {
    let files = with_memory(Fixture::v2("/pod"), "/sys/fs/cgroup/pod", &limit(4), GIB)
        .with("/proc/self/cgroup", "0::/pod/git (deleted)\n");
    assert_eq!(memory(&files), (0.25, "/sys/fs/cgroup/pod".to_owned()));
    assert!(find(&files).faults().unwrap().contains("git (deleted)"));
    assert_eq!(find(&Fixture::v2("/pod")).faults(), None);
}

#[test]
fn f16_a_bind_mount_may_be_the_cgroup_already() {
    let git = "/mnt/my cgroups/memory";
    let files = Fixture::machine()
        .with("/proc/self/cgroup", "11:memory:/docker/a b/c\n0::/\n")
        .with(
            "/proc/self/mountinfo",
            "40 39 0:37 /docker/a\\040b /mnt/my\\040cgroups/memory ro master:11 - cgroup cgroup rw,memory\n",
        )
        .with(format!("{git}/memory.limit_in_bytes"), limit(4))
        .with(format!("{git}/memory.stat"), format!("total_rss {}\n", 3 * GIB))
        .with(format!("{git}/c/memory.limit_in_bytes"), "-1");
    assert_eq!(memory(&files), (0.75, git.to_owned()));
    files.write("/proc/self/cgroup", "11:memory:/docker/a b\n0::/\n");
    assert_eq!(memory(&files), (0.75, git.to_owned()));
    let cgroups = find(&files);
    assert_eq!(
        cgroups.to_string(),
        "cpu: none, cpuacct: none, memory: v1 /mnt/my cgroups/memory, stalls: none"
    );
    assert_eq!(
        cgroups.faults().as_deref(),
        Some("cpu: no mount shows the hierarchy; cpuacct: no mount shows the hierarchy")
    );
}

#[test]
fn f16_the_mount_that_shows_most_ancestors_is_used() {
    let mountinfo =
        "1 0 0:1 /pod/git /run/git rw - cgroup2 none rw\n2 0 0:1 /pod /sys/fs/cgroup rw - cgroup2 none rw\n";
    let files = Fixture::machine().with("/proc/self/cgroup", "0::/pod/git\n");
    let files = files.with("/proc/self/mountinfo", mountinfo).with("/run/git/memory.max", "max");
    let files = with_memory(files, "/sys/fs/cgroup/git", "max", GIB);
    let files = with_memory(files, "/sys/fs/cgroup", &limit(2), GIB);
    assert_eq!(memory(&files), (0.5, "/sys/fs/cgroup".to_owned()));
}

#[test]
fn f17_on_a_hybrid_machine_each_controller_is_read_where_it_is() {
    for joint in [false, true] {
        let files = Fixture::hybrid(joint);
        let mut probe = Probe::new(&files);
        probe.after(0.0);
        let (cpu, cpuacct) = if joint { ("cpu,cpuacct", "cpu,cpuacct") } else { ("cpu", "cpuacct") };
        // 1.5 of 2 CPUs in nanoseconds, and half a second held back on each of them.
        files.write(format!("/sys/fs/cgroup/{cpuacct}/git/cpuacct.usage"), "1500000000\n");
        files.write(format!("/sys/fs/cgroup/{cpu}/git/cpu.stat"), fixture::v1_cpu_stat(1_000_000_000));
        let measured = probe.after(1.0);
        assert_near(measured.of(Signal::Cpu), 0.75);
        assert_near(measured.of(Signal::CpuThrottled), 0.5);
        assert_near(measured.of(Signal::Memory), 0.25);
        assert_near(measured.of(Signal::CpuStalled), 0.125);
        assert_near(measured.of(Signal::IoStalled), 0.01);
        assert_eq!(value(measured.of(Signal::OomKill)), 0.0);
        assert_eq!((measured.cpu_millicores, measured.memory_bytes), (Some(2000), Some(4 * GIB)));
        assert_eq!(
            find(&files).to_string(),
            format!(
                "cpu: v1 /sys/fs/cgroup/{cpu}/git, cpuacct: v1 /sys/fs/cgroup/{cpuacct}/git, \
                 memory: v1 /sys/fs/cgroup/memory/api/124e, stalls: v2 /sys/fs/cgroup/unified"
            )
        );
    }
}

#[test]
fn f17_in_v2_all_is_in_one_place() {
    let git = "/sys/fs/cgroup/git";
    let files = with_memory(Fixture::v2("/git"), git, &limit(4), GIB)
        .with(format!("{git}/cpu.max"), "200000 100000\n")
        .with(format!("{git}/cpu.stat"), "usage_usec 0\nnr_throttled 0\nthrottled_usec 0\n")
        .with(format!("{git}/memory.events"), "oom_kill 0\n")
        .with(format!("{git}/io.pressure"), fixture::stalled("40.00"));
    let mut probe = Probe::new(&files);
    probe.after(0.0);
    files.write(format!("{git}/cpu.stat"), "usage_usec 3000000\nthrottled_usec 2000000\n");
    let measured = probe.after(2.0);
    assert_near(measured.of(Signal::Cpu), 0.75);
    assert_near(measured.of(Signal::CpuThrottled), 0.5);
    assert_near(measured.of(Signal::Memory), 0.25);
    assert_near(measured.of(Signal::IoStalled), 0.4);
    assert_near(measured.of(Signal::CpuStalled), 0.03);
    assert_eq!(measured.of(Signal::Network), &Err(Absent::Unset));
}

/// In v2 a parent need not hand a controller down.
#[test]
fn a_quota_of_an_ancestor_is_compared_with_its_own_use() {
    let pod = "/sys/fs/cgroup/pod";
    let files = Fixture::v2("/pod/git")
        .with(format!("{pod}/git/cpu.stat"), "usage_usec 0\n")
        .with(format!("{pod}/cpu.max"), "100000 100000 0\n")
        .with(format!("{pod}/cpu.stat"), "usage_usec 0\nthrottled_usec 0\n");
    let mut probe = Probe::new(&files);
    probe.after(0.0);
    files.write(format!("{pod}/git/cpu.stat"), "usage_usec 100000\n");
    files.write(format!("{pod}/cpu.stat"), "usage_usec 950000\nthrottled_usec 300000\n");
    let measured = probe.after(1.0);
    assert_near(measured.of(Signal::Cpu), 0.95);
    assert_near(measured.of(Signal::CpuThrottled), 0.3);
    assert_eq!(measured.cpu_millicores, Some(1000));
}

#[test]
fn f15_without_a_quota_the_machine_is_the_reference() {
    let git = "/sys/fs/cgroup/git";
    // 5 CPUs of 4 are no quota.
    for cpu_max in ["max 100000", "max 100000 0", "500000 100000", "-1 100000"] {
        let files = Fixture::v2("/git").with(format!("{git}/cpu.max"), cpu_max);
        let mut probe = Probe::new(&files);
        assert_eq!(probe.after(0.0).of(Signal::Cpu), &Err(Absent::Unset));
        let files = files.processors(1);
        let measured = probe.after(1.0);
        assert_near(measured.of(Signal::Cpu), 0.5);
        assert_eq!(measured.of(Signal::CpuThrottled), &Err(Absent::Unset));
        assert_eq!(measured.cpu_millicores, Some(4000), "{cpu_max}");
        // In a cpuset of the two that are busy.
        files.write("/proc/self/status", "Cpus_allowed_list:\t0-1\n");
        let mut probe = Probe::new(&files);
        probe.after(0.0);
        let _files = files.processors(2);
        let measured = probe.after(1.0);
        assert_near(measured.of(Signal::Cpu), 1.0);
        assert_eq!(measured.cpu_millicores, Some(2000));
    }
}

#[test]
fn f15_in_v1_any_negative_quota_is_none_and_a_period_of_0_is_garbage() {
    let git = "/sys/fs/cgroup/cpu/git";
    for quota in ["-1\n", "-111\n"] {
        let files = Fixture::hybrid(false).with(format!("{git}/cpu.cfs_quota_us"), quota);
        let mut probe = Probe::new(&files);
        probe.after(0.0);
        let _files = files.processors(1);
        let measured = probe.after(1.0);
        assert_near(measured.of(Signal::Cpu), 0.5);
        assert_eq!(measured.of(Signal::CpuThrottled), &Err(Absent::Unset));
        assert_eq!(measured.cpu_millicores, Some(4000), "{quota}");
    }
    let files = Fixture::hybrid(false).with(format!("{git}/cpu.cfs_period_us"), "0\n");
    let measured = Probe::new(&files).after(0.0);
    assert_failed(measured.of(Signal::Cpu));
    assert_failed(measured.of(Signal::CpuThrottled));
    assert_near(measured.of(Signal::Memory), 0.25);
}

/// Throttled time adds up over CPUs, and must say the same of a small machine and of a large one.
#[test]
fn f18_the_throttled_share_is_of_the_cpus_that_the_quota_allows() {
    for (cpu_max, throttled_usec, share) in [
        ("200000 100000", 1_000_000, 0.5),
        ("300000 100000", 1_500_000, 0.5),
        ("100000 100000", 500_000, 0.5),
        // A single thread is held back for 139.381 ms of a second.
        ("50000 100000", 139_381, 0.139_381),
        ("100000 100000", 3_000_000, 1.0),
    ] {
        let git = "/sys/fs/cgroup/git";
        let files = Fixture::v2("/git")
            .with(format!("{git}/cpu.max"), cpu_max)
            .with(format!("{git}/cpu.stat"), "usage_usec 0\nthrottled_usec 0\n");
        let mut probe = Probe::new(&files);
        probe.after(0.0);
        files.write(format!("{git}/cpu.stat"), format!("usage_usec 0\nthrottled_usec {throttled_usec}\n"));
        assert_near(probe.after(1.0).of(Signal::CpuThrottled), share);
    }
}

/// Such a cgroup of cpuacct may be anybody's.
#[test]
fn f17_use_is_not_taken_from_a_cgroup_that_the_process_is_not_in() {
    let files = Fixture::hybrid(false).with("/proc/self/cgroup", "2:cpuacct:/\n1:cpu:/git\n");
    let mut probe = Probe::new(&files);
    probe.after(0.0);
    files.write("/sys/fs/cgroup/cpu/git/cpu.stat", fixture::v1_cpu_stat(127_918_677));
    let measured = probe.after(1.0);
    assert_missing(measured.of(Signal::Cpu));
    assert_near(measured.of(Signal::CpuThrottled), 0.127_918_677 / 2.0);
}

#[test]
fn a_process_that_is_moved_is_followed() {
    let files = with_memory(Fixture::v2("/one"), "/sys/fs/cgroup/one", &limit(2), GIB);
    let files = with_memory(files, "/sys/fs/cgroup/two", &limit(4), GIB);
    let mut probe = Probe::new(&files);
    assert_near(probe.after(0.0).of(Signal::Memory), 0.5);
    files.write("/proc/self/cgroup", "0::/two\n");
    assert_near(probe.after(1.0).of(Signal::Memory), 0.25);
}

/// A kernel without cgroups, and a container without their mount.
#[test]
fn without_cgroups_the_machine_is_the_reference() {
    let hidden = Fixture::machine().with("/proc/self/cgroup", "4:memory:/a\n0::/a\n");
    for files in
        [Fixture::machine(), hidden.with("/proc/self/mountinfo", "1 0 8:1 / / rw - ext4 /dev/vda rw\n")]
    {
        let mut probe = Probe::new(&files);
        probe.after(0.0);
        let _files = files.processors(1);
        let measured = probe.after(1.0);
        assert_near(measured.of(Signal::Cpu), 0.5);
        assert_near(measured.of(Signal::Memory), 0.25);
        assert_near(measured.of(Signal::MemoryStalled), 0.02);
        assert_eq!(value(measured.of(Signal::OomKill)), 0.0);
    }
    assert_eq!(
        find(
            &Fixture::machine()
                .with("/proc/self/cgroup", "4:memory:/a\n0::/a\n")
                .with("/proc/self/mountinfo", "")
        )
        .faults()
        .as_deref(),
        Some(
            "cpu: no mount shows the hierarchy; cpuacct: no mount shows the hierarchy; \
             memory: no mount shows the hierarchy"
        )
    );
}

fn find(files: &Fixture) -> crate::pressure::cgroup::Cgroups {
    use crate::pressure::files::Files;
    let text = |file: &str| files.read(file.as_ref()).unwrap();
    crate::pressure::cgroup::Cgroups::find(files, &text("/proc/self/mountinfo"), &text("/proc/self/cgroup"))
}
