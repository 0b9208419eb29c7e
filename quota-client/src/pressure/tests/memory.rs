//! Page cache is not pressure.

use super::*;

const GIT: &str = "/sys/fs/cgroup/git";

fn v2(current: u64, anon: u64, inactive_file: u64) -> Fixture {
    Fixture::v2("/git")
        .with(format!("{GIT}/memory.max"), "5368709120\n")
        .with(format!("{GIT}/memory.high"), "max\n")
        .with(format!("{GIT}/memory.current"), format!("{current}\n"))
        .with(
            format!("{GIT}/memory.stat"),
            format!(
                "anon {anon}\nfile 3200000000\ninactive_file {inactive_file}\nactive_file 2300000000\n\
                 slab_reclaimable 150000000\nnew_field 1\n"
            ),
        )
}

fn held(files: &Fixture) -> Measured {
    Probe::new(files).after(0.0).of(Signal::Memory).clone()
}

#[test]
fn f14_page_cache_of_v2_is_not_held() {
    let held = held(&v2(5_100_273_664, 1_700_000_000, 900_000_000));
    assert_near(&held, 1_750_273_664.0 / 5_368_709_120.0);
    assert!(value(&held) < Settings::default().memory);
}

#[test]
fn f14_more_cache_than_there_is_memory_in_use_leaves_nothing() {
    assert_eq!(value(&held(&v2(5_100_273_664, 1_700_000_000, 6_000_000_000))), 0.0);
}

#[test]
fn f14_page_cache_of_v1_is_not_held() {
    let limit = 40_000_000_000u64;
    let git = "/sys/fs/cgroup/memory/api/124e";
    let files = Fixture::hybrid(false)
        .with(format!("{git}/memory.limit_in_bytes"), format!("{limit}\n"))
        .with(format!("{git}/memory.usage_in_bytes"), "39000000000\n")
        .with(
            format!("{git}/memory.stat"),
            "rss 1\ntotal_rss 204779520\ntotal_inactive_file 568246272\ntotal_active_file 37800000000\n",
        );
    assert_near(&held(&files), 204_779_520.0 / limit as f64);
    files.write(format!("{git}/memory.stat"), "total_rss 204779520\ntotal_shmem 1000000000\n");
    assert_near(&held(&files), 1_204_779_520.0 / limit as f64);
}

#[test]
fn f14_it_rises_with_a_spike_and_is_gone_with_it_at_the_next_sample() {
    let files = v2(5_300_000_000, 1_700_000_000, 900_000_000);
    let mut probe = Probe::new(&files);
    let calm = value(probe.after(0.0).of(Signal::Memory));
    files.write(
        format!("{GIT}/memory.stat"),
        "inactive_file 100000000\nactive_file 200000000\nslab_reclaimable 100000000\n",
    );
    let spike = value(probe.after(1.0).of(Signal::Memory));
    assert!(spike >= 0.75 && calm < 0.75, "{calm} {spike}");
    files.write(
        format!("{GIT}/memory.stat"),
        "inactive_file 900000000\nactive_file 2300000000\nslab_reclaimable 150000000\n",
    );
    assert_near(probe.after(1.0).of(Signal::Memory), calm);
}

#[test]
fn the_lower_of_high_and_max_binds() {
    let files = v2(4_000_000_000, 1, 0).with(format!("{GIT}/memory.high"), "2000000000\n");
    let measured = Probe::new(&files).after(0.0);
    assert_near(measured.of(Signal::Memory), 1_550_000_000.0 / 2e9);
    assert_eq!(measured.memory_bytes, Some(2_000_000_000));
}

#[test]
fn f15_a_limit_of_nothing_is_a_limit() {
    let files = v2(4_000_000_000, 1, 0).with(format!("{GIT}/memory.max"), "0\n");
    let measured = Probe::new(&files).after(0.0);
    assert_eq!(value(measured.of(Signal::Memory)), 1.0);
    assert_eq!(measured.memory_bytes, Some(0));
    files.write(format!("{GIT}/memory.current"), "0\n");
    assert_eq!(value(&held(&files)), 0.0);
}

/// Half of the machine's 64 GiB is no v1 sentinel, and all of it or more binds nobody.
#[test]
fn f15_without_a_limit_the_machine_is_the_reference() {
    for unlimited in ["max", "-1", "9223372036854771712", "18446744073709551615", "99999999999999999999"] {
        let files = v2(4_000_000_000, 1, 0).with(format!("{GIT}/memory.max"), format!("{unlimited}\n"));
        let measured = Probe::new(&files).after(0.0);
        assert_eq!(measured.of(Signal::Memory).as_ref().unwrap().source.to_str(), Some("/proc/meminfo"));
        assert_near(measured.of(Signal::Memory), 0.25);
        assert_eq!(measured.memory_bytes, Some(64 << 30), "{unlimited}");
        // Where the machine cannot be read either, such a limit is none all the same.
        files.remove("/proc/meminfo");
        let measured = Probe::new(&files).after(0.0);
        assert_missing(measured.of(Signal::Memory));
        assert_eq!(measured.memory_bytes, None);
    }
}

#[test]
fn f15_in_v1_what_stands_for_no_limit_is_none() {
    let git = "/sys/fs/cgroup/memory/api/124e";
    for unlimited in ["-1", "9223372036854771712", "18446744073709551615", "99999999999999999999"] {
        let files =
            Fixture::hybrid(false).with(format!("{git}/memory.limit_in_bytes"), format!("{unlimited}\n"));
        let measured = Probe::new(&files).after(0.0);
        assert_near(measured.of(Signal::Memory), 0.25);
        assert_eq!(measured.memory_bytes, Some(64 << 30), "{unlimited}");
    }
    for garbage in ["", "\n", "123junk"] {
        let files = Fixture::hybrid(false).with(format!("{git}/memory.limit_in_bytes"), garbage);
        assert_failed(&held(&files));
    }
}

#[test]
fn f15_what_is_not_understood_is_absent() {
    for garbage in ["", "\n", "123junk", "5 6"] {
        let files = v2(4_000_000_000, 1, 0).with(format!("{GIT}/memory.max"), garbage);
        assert_failed(&held(&files));
    }
}

#[test]
fn kills_are_counted_since_the_last_sample() {
    let files = v2(1, 1, 0).with(format!("{GIT}/memory.events"), "low 0\noom 5\noom_kill 4\n");
    let mut probe = Probe::new(&files);
    assert_eq!(probe.after(1.0).of(Signal::OomKill), &Err(Absent::Unset), "those of before are no news");
    for (count, killed) in [(4, 0.0), (6, 2.0), (1, 0.0), (2, 1.0)] {
        files.write(format!("{GIT}/memory.events"), format!("oom 9\noom_kill {count}\n"));
        assert_eq!(value(probe.after(1.0).of(Signal::OomKill)), killed);
    }
}

#[test]
fn outside_of_any_cgroup_kills_on_the_machine_count() {
    let v1_root = Fixture::hybrid(false)
        .with("/proc/self/cgroup", "4:memory:/\n0::/\n")
        .with("/sys/fs/cgroup/memory/memory.oom_control", "oom_kill 0\n");
    for files in [Fixture::v2("/"), v1_root] {
        let mut probe = Probe::new(&files);
        probe.after(1.0);
        files.write("/proc/vmstat", "oom_kill 4\n");
        assert_eq!(value(probe.after(1.0).of(Signal::OomKill)), 1.0);
    }
}
