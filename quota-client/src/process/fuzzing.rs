use super::{Family, Process, Stat, parse, parse_anonymous_pages, time};

/// Lines of `/proc/PID/stat`, of as many processes, and of `statm`.
///
/// Whatever they say: a family is its members, each once, and what they use together is no less than what one of them
/// does.
pub(crate) fn processes(text: &str) {
    let stats: Vec<Stat> = text.lines().filter_map(stat).collect();
    let read = |pid| stats.iter().find(|stat| stat.process.pid == pid).copied();
    let family = Family::new(stats.iter().copied());
    for Stat { process, ticks, .. } in stats.iter().filter(|stat| read(stat.process.pid) == Some(**stat)) {
        let Some(members) = family.members(*process, read) else { continue };
        let mut processes: Vec<_> = members.iter().map(|stat| stat.process).collect();
        processes.sort_unstable_by_key(|process| (process.pid, process.started));
        processes.dedup();
        assert_eq!(processes.len(), members.len(), "each once");
        let all = members.iter().fold(0_u64, |sum, stat| sum.saturating_add(stat.ticks));
        assert!(time(all) >= time(*ticks));
        assert_eq!(process.to_string().parse(), Ok(*process));
    }
    for line in text.lines() {
        let pages = parse_anonymous_pages(line).unwrap_or_default();
        let whole = line.split_ascii_whitespace().nth(1).and_then(|resident| resident.parse().ok());
        assert!(pages <= whole.unwrap_or_default(), "more than what is resident");
        let _ = line.parse::<Process>();
    }
}

/// Its first field is the pid.
fn stat(line: &str) -> Option<Stat> {
    parse(line.split_ascii_whitespace().next()?.parse().ok()?, line)
}
