use super::*;

fn stat(pid: u32, parent: u32, ticks: u64) -> Stat {
    Stat { process: Process { pid, started: u64::from(pid) }, parent, ticks }
}

fn ticks(then: &[Stat], now: &[Stat], root: Process) -> Option<u64> {
    let members = Family::new(then.iter().copied())
        .members(root, |pid| now.iter().find(|stat| stat.process.pid == pid).copied())?;
    Some(members.iter().map(|stat| stat.ticks).sum())
}

#[test]
fn a_name_with_parentheses_and_spaces_is_no_trouble() {
    let text = "42 (a) b (c) S 7 42 42 0 -1 4194304 99 0 0 0 11 22 33 44 20 0 1 0 987 1 2 3\n";
    let expected = Stat { process: Process { pid: 42, started: 987 }, parent: 7, ticks: 110 };
    assert_eq!(parse(42, text), Some(expected));
    for garbage in ["", "42 (git) S 7", "42 git S", "42 (git) S 7 42 42 0 -1 0 0 0 0 0 -1 0 0 0 20 0 1 0 9"] {
        assert_eq!(parse(42, garbage), None, "{garbage}");
    }
}

#[test]
fn the_tree_is_summed_and_its_neighbours_are_not() {
    let all = [stat(10, 1, 1), stat(11, 10, 2), stat(12, 11, 4), stat(13, 10, 8), stat(20, 1, 1000)];
    assert_eq!(ticks(&all, &all, all[0].process), Some(15));
}

#[test]
fn a_pid_that_is_used_again_is_another_process() {
    let then = [stat(10, 1, 1), stat(11, 10, 2)];
    let mut reused = then[1];
    reused.process.started += 1;
    assert_eq!(ticks(&then, &[then[0], reused], then[0].process), Some(1));
    assert_eq!(ticks(&then, &[reused], then[0].process), None);
}

#[test]
fn a_child_that_is_waited_for_between_two_reads_is_counted_once() {
    let then = [stat(10, 1, 1), stat(11, 10, 5)];
    assert_eq!(ticks(&then, &[stat(10, 1, 6)], then[0].process), Some(6));
}

#[test]
fn a_circle_of_parents_ends() {
    let all = [stat(10, 11, 1), stat(11, 10, 2)];
    assert_eq!(ticks(&all, &all, all[0].process), Some(3));
}

#[test]
fn this_process_is_read() {
    let this = Process::of(std::process::id()).unwrap();
    assert!(this.exists());
    assert!(Family::read().usage(this).unwrap().memory > 0);
    assert_eq!(Process::of(u32::MAX), None);
    assert_eq!(anonymous_memory([u32::MAX]), 0);
}

#[test]
fn anonymous_memory_is_what_is_resident_without_files_and_what_is_shared() {
    assert_eq!(parse_anonymous_pages("5000 1200 900 10 0 400 0\n"), Some(300));
    assert_eq!(parse_anonymous_pages("0 0 0 0 0 0 0\n"), Some(0), "a zombie");
    assert_eq!(parse_anonymous_pages("5000 900 1200 10 0 400 0\n"), Some(0), "never below nothing");
    for garbage in ["", "5000", "5000 1200", "5000 1200 x", "5000 -1 1"] {
        assert_eq!(parse_anonymous_pages(garbage), None, "{garbage}");
    }
}

#[test]
fn the_name_of_a_process_tells_which_it_is() {
    let this = Process::of(std::process::id()).unwrap();
    assert_eq!(this.to_string().parse(), Ok(this));
    let other = Process { started: this.started + 1, ..this };
    assert!(!other.exists(), "one of before had its pid");
    for garbage in ["", "-", "42", "42-", "-7", "42-7-9", "a-b"] {
        assert!(garbage.parse::<Process>().is_err(), "{garbage}");
    }
}

#[test]
fn a_process_is_not_older_than_the_machine() {
    let this = Process::of(std::process::id()).unwrap();
    let first = Process { started: 0, ..this };
    assert!(this.age() <= first.age());
    assert_eq!(Process { started: u64::MAX, ..this }.age(), Duration::ZERO);
}
