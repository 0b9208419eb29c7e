//! How long messages may take to come, and how many large ones come at a time. Between two messages of a stream there may be any time; who
//! sends half of one would have it kept for as long as he likes, since a stream as a whole has no deadline.

use std::sync::Arc;

use axum::BoxError;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use futures::TryStreamExt as _;
use futures::stream::try_unfold;
use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};
use tonic::Status;

use crate::REQUEST_TIMEOUT;
use crate::large::Large;

/// The call that is a stream of messages: its answer begins with the first of them, and ends with the last.
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

/// The place of a large message.
type Place = Arc<Mutex<Option<OwnedSemaphorePermit>>>;

/// Ends a call of which a message does not come to its end, and keeps large ones back while others are read, or wait for their answer.
pub(super) async fn pace(State(large): State<Large>, request: Request, next: Next) -> Response {
    let (place, is_session) = (Place::default(), request.uri().path() == SESSION);
    let within = Arc::clone(&place);
    let response = next.run(request.map(|body| paced(body, large, within, is_session))).await;
    if !is_session {
        place.lock().take();
    }
    response
}

fn paced(body: Body, large: Large, place: Place, is_session: bool) -> Body {
    let begin = (body.into_data_stream(), Framing::default(), None);
    Body::from_stream(try_unfold(begin, move |(mut body, mut framing, mut deadline)| {
        let (large, place) = (large.clone(), Arc::clone(&place));
        async move {
            let next = match deadline {
                Some(deadline) => timeout_at(deadline, body.try_next()).await.map_err(|_| late())?,
                None => body.try_next().await,
            };
            let Some(bytes) = next? else { return Ok::<_, BoxError>(None) };
            if framing.advance(&bytes) {
                deadline = None;
                // A session is answered between its messages, each in its turn.
                if is_session {
                    place.lock().take();
                }
            }
            if framing.is_within_a_message() {
                let end = *deadline.get_or_insert_with(|| Instant::now() + REQUEST_TIMEOUT);
                if framing.left > Large::BYTES && place.lock().is_none() {
                    let entered = timeout_at(end, large.enter()).await.map_err(|_| late())?;
                    *place.lock() = entered;
                }
            }
            Ok(Some((bytes, (body, framing, deadline))))
        }
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
            let (mut stream, mut ends) = (Vec::new(), vec![0]);
            for length in lengths {
                stream.extend(message(length));
                ends.push(stream.len());
            }
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
        let body = Body::from_stream(ReceiverStream::new(receive));
        let mut body = paced(body, Large::default(), Place::default(), true).into_data_stream();
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
            std::future::pending::<()>().await;
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

    #[tokio::test(start_paused = true)]
    async fn of_many_large_ones_few_are_read_and_the_next_when_one_is_answered() {
        const ALL: usize = 50;
        let large = Large::default();
        let beginning = message(2 * Large::BYTES)[..100].to_vec();
        let begun = |place: &Place| {
            let body = Body::from_stream(futures::stream::iter([Ok::<_, BoxError>(beginning.clone())]));
            paced(body, large.clone(), Arc::clone(place), false).into_data_stream()
        };
        let mut places: Vec<Place> = (0..ALL).map(|_| Place::default()).collect();
        let mut bodies: Vec<_> = places.iter().map(begun).collect();
        let mut read = Vec::new();
        for body in &mut bodies {
            read.push(tokio::time::timeout(Duration::from_secs(1), body.try_next()).await.is_ok());
        }
        let count = read.iter().filter(|read| **read).count();
        assert!((1..ALL).contains(&count) && read.is_sorted_by(|one, next| one >= next), "{read:?}");
        places.remove(0).lock().take();
        let next = tokio::time::timeout(Duration::from_secs(1), bodies[count].try_next()).await;
        assert!(next.is_ok_and(|bytes| bytes.unwrap().is_some()));
    }
}
