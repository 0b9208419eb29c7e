use std::time::Duration;

use quota_proto::v1;
use tokio::time::Instant;

use super::answer::Answer;
use super::holding::{Entry, Holding};

/// Two blocks of slots, as the service tells of them, and requests that want one.
///
/// Whatever it tells: no more of a class that has a cap run than it has leased.
pub(crate) fn slots(told: v1::Slots) {
    const REQUESTS: u32 = 8;
    let answer = Answer::from(told);
    let (now, leased) = (Instant::now(), answer.count.saturating_mul(2));
    let mut holding = Holding::default();
    for _ in 0..2 {
        holding.acquired(answer.clone(), 1, now, now);
    }
    let enter = |holding: &mut Holding| matches!(holding.enter(now, now, None), Entry::Runs(_));
    let running = (0..REQUESTS).filter(|_| enter(&mut holding)).count();
    assert!(running as u64 <= u64::from(leased), "{running} run in {leased} slots");
    let figures = holding.figures();
    assert!(figures.is_none_or(|(_, figures)| figures.in_progress == running));
    for later in [Duration::from_secs(1), Duration::from_secs(86_400)] {
        holding.plan(now + later);
        holding.sweep(now + later, "node");
    }
}
