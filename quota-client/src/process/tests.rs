use super::*;

fn stat(pid: u32, parent: u32, ticks: u64) -> Stat {
    Stat { process: Process { pid, started: u64::from(pid) }, parent, ticks }
}

fn ticks(then: &[Stat], now: &[Stat], root: Process) -> Option<u64> {
    Family::new(then.iter().copied())
        .ticks(root, |pid| now.iter().find(|stat| stat.process.pid == pid).copied())
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
    assert!(Family::read().cpu(this).is_some());
    assert_eq!(Process::of(u32::MAX), None);
}
