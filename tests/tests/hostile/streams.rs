//! What HTTP/2 lets a client ask for without end.

use std::net::SocketAddr;

use quota_tests::wait::PATIENCE;
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use crate::frames;
use crate::victim::Victim;

const CHECK: &str = "/quota.v1.QuotaService/Check";

/// Kinds of frames.
const HEADERS: usize = 1;
const RST_STREAM: usize = 3;

/// The numbers of a client's streams.
fn streams(count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(|stream| 2 * stream + 1)
}

/// Sends this on a connection, as far as it is taken, reads along, and ends. Returns how much was taken.
async fn flood(address: SocketAddr, frames: impl Iterator<Item = Vec<u8>>) -> usize {
    let (mut reader, mut writer) = frames::connect(address).await.into_split();
    let writing = async {
        let mut taken = 0;
        for frame in frames {
            if writer.write_all(&frame).await.is_err() {
                break;
            }
            taken += 1;
        }
        // Where it is cut off already there is nothing to end.
        let _ = writer.shutdown().await;
        taken
    };
    let both = async { tokio::join!(writing, frames::count(&mut reader, |_| false)).0 };
    timeout(PATIENCE, both).await.expect("an end")
}

#[tokio::test]
async fn calls_that_are_reset_at_once_cost_others_nothing() {
    let mut victim = Victim::in_memory().await;
    let resets = streams(50_000).map(|stream| [frames::call(stream, CHECK), frames::reset(stream)].concat());
    let attack = flood(victim.server.grpc_address(), resets);
    victim.bears(32 << 10, attack).await;
    victim.assert_untouched("resets").await;
}

#[tokio::test]
async fn pings_and_settings_without_end_are_kept_nowhere() {
    let mut victim = Victim::in_memory().await;
    for frame in [frames::ping(), frames::settings()] {
        let attack = flood(victim.server.grpc_address(), std::iter::repeat_n(frame.repeat(1000), 200));
        victim.bears(16 << 10, attack).await;
    }
}

#[tokio::test]
async fn headers_without_end_are_not_kept() {
    const ALL: usize = 10_000;
    let mut victim = Victim::in_memory().await;
    let endless = std::iter::once(frames::endless_headers(1, CHECK));
    // 100 MB.
    let endless = endless.chain(std::iter::repeat_n(frames::continuation(1), ALL));
    let attack = flood(victim.server.grpc_address(), endless);
    let taken = victim.bears(16 << 10, attack).await;
    assert!(taken < ALL, "all of it was taken");
}

#[tokio::test]
async fn no_more_calls_run_on_a_connection_than_may() {
    const MOST: usize = 10;
    let victim = Victim::with(&[("QUOTA__GRPC__MAX_STREAMS", &MOST.to_string())]).await;
    let (mut reader, mut writer) = frames::connect(victim.server.grpc_address()).await.into_split();
    // They wait for their messages, but for the first ones.
    let calls = streams(3 * MOST as u32).map(|stream| frames::call(stream, CHECK));
    let messages = streams(MOST as u32).map(frames::message);
    let all: Vec<Vec<u8>> = calls.chain(messages).collect();
    writer.write_all(&all.concat()).await.unwrap();
    let answered = |counts: &frames::Counts| counts[HEADERS] >= MOST && counts[RST_STREAM] >= 2 * MOST;
    let counts = timeout(PATIENCE, frames::count(&mut reader, answered)).await.expect("answers and refusals");
    assert_eq!((counts[HEADERS], counts[RST_STREAM]), (MOST, 2 * MOST));
}
