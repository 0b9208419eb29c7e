//! How long the messages of a stream may take to come. Between two of them there may be any time; who sends half of one would have it
//! kept for as long as he likes, since a stream as a whole has no deadline.

use axum::BoxError;
use axum::body::Body;
use axum::extract::Request;
use futures::TryStreamExt as _;
use futures::stream::try_unfold;
use tokio::time::{Instant, timeout_at};
use tonic::Status;

use crate::REQUEST_TIMEOUT;

/// The call that is a stream of messages.
const SESSION: &str = "/quota.v1.QuotaService/Session";

/// Before each message: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// Where a stream is, by the lengths that stand before its messages.
#[derive(Debug, Default, PartialEq, Eq)]
struct Framing {
    prefix: [u8; PREFIX],
    /// Bytes of the prefix that have come.
    begun: usize,
    /// Bytes of the message that have not come yet, once its prefix has.
    left: usize,
}

impl Framing {
    /// Takes in what comes next. Whether a message ended with it, or within it.
    fn advance(&mut self, mut bytes: &[u8]) -> bool {
        let mut ended = false;
        while !bytes.is_empty() {
            if self.begun < PREFIX {
                let more = bytes.len().min(PREFIX - self.begun);
                self.prefix[self.begun..self.begun + more].copy_from_slice(&bytes[..more]);
                self.begun += more;
                bytes = &bytes[more..];
                let [_, length @ ..] = self.prefix;
                self.left = if self.begun == PREFIX { u32::from_be_bytes(length) as usize } else { 0 };
            } else {
                let more = bytes.len().min(self.left);
                self.left -= more;
                bytes = &bytes[more..];
            }
            if self.begun == PREFIX && self.left == 0 {
                self.begun = 0;
                ended = true;
            }
        }
        ended
    }

    const fn is_within_a_message(&self) -> bool {
        self.begun > 0
    }
}

/// Ends a session of which a message does not come to its end.
pub(super) async fn pace(request: Request) -> Request {
    if request.uri().path() == SESSION { request.map(paced) } else { request }
}

fn paced(body: Body) -> Body {
    let begin = (body.into_data_stream(), Framing::default(), None);
    Body::from_stream(try_unfold(begin, |(mut body, mut framing, mut deadline)| async move {
        let next = match deadline {
            Some(deadline) => timeout_at(deadline, body.try_next()).await.map_err(|_| late())?,
            None => body.try_next().await,
        };
        let Some(bytes) = next? else { return Ok::<_, BoxError>(None) };
        if framing.advance(&bytes) {
            deadline = None;
        }
        if framing.is_within_a_message() {
            deadline.get_or_insert_with(|| Instant::now() + REQUEST_TIMEOUT);
        }
        Ok(Some((bytes, (body, framing, deadline))))
    }))
}

fn late() -> Status {
    Status::deadline_exceeded(format!("a message comes within {} s", REQUEST_TIMEOUT.as_secs()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use tokio::sync::mpsc;
    use tokio::time::sleep;
    use tokio_stream::wrappers::ReceiverStream;

    use super::*;

    fn message(length: usize) -> Vec<u8> {
        let mut message = vec![0];
        message.extend((length as u32).to_be_bytes());
        message.resize(PREFIX + length, 7);
        message
    }

    proptest! {
        #[test]
        fn wherever_it_is_cut_it_is_known_where_messages_end(
            lengths in prop::collection::vec(0..20_usize, 1..20),
            cuts in prop::collection::vec(1..30_usize, 1..200),
        ) {
            let stream: Vec<u8> = lengths.iter().flat_map(|length| message(*length)).collect();
            let mut ends = vec![0];
            ends.extend(lengths.iter().scan(0, |end, length| { *end += PREFIX + length; Some(*end) }));
            let (mut framing, mut at) = (Framing::default(), 0);
            for cut in cuts.iter().cycle() {
                let next = (at + cut).min(stream.len());
                let ended = framing.advance(&stream[at..next]);
                prop_assert_eq!(ended, ends.iter().any(|end| at < *end && *end <= next));
                prop_assert_eq!(framing.is_within_a_message(), !ends.contains(&next));
                at = next;
                if at == stream.len() {
                    break;
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_who_is_in_the_middle_of_a_message_is_late() {
        let (send, receive) = mpsc::channel::<Result<Vec<u8>, BoxError>>(1);
        let mut body = paced(Body::from_stream(ReceiverStream::new(receive))).into_data_stream();
        let sending = async {
            sleep(100 * REQUEST_TIMEOUT).await;
            send.send(Ok(message(9))).await.unwrap();
            sleep(100 * REQUEST_TIMEOUT).await;
            // Each begins as the one before ends.
            let all = [message(3), message(4), message(5)].concat();
            for part in [&all[..7], &all[7..12], &all[12..18]] {
                send.send(Ok(part.to_vec())).await.unwrap();
                sleep(Duration::from_secs(9)).await;
            }
            send.send(Ok(vec![all[18]])).await.unwrap();
            std::future::pending().await
        };
        let began = Instant::now();
        let reading = async {
            let mut read = 0;
            loop {
                match body.try_next().await {
                    Ok(Some(bytes)) => read += bytes.len(),
                    end => break (read, end.map_err(|error| error.to_string())),
                }
            }
        };
        let (read, end) = tokio::select! {
            end = reading => end,
            () = sending => unreachable!("it goes on for ever"),
        };
        assert!(end.is_err_and(|error| error.contains("a message comes within 10 s")));
        assert_eq!(read, 14 + 19);
        // The third message began with the 18th byte.
        assert_eq!(began.elapsed().as_secs(), (2 * 100 * REQUEST_TIMEOUT).as_secs() + 2 * 9 + 10);
    }
}
