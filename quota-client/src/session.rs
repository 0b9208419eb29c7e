//! The session with a server. While one is open, reports and pressure go by it, and what ends what was told before is heard as
//! soon as the server knows; else they go by calls of their own, and such news is heard when somebody asks again.
//! `docs/decisions/0021-sessions.md` says why it is so.

mod line;

use std::time::Duration;

use quota_proto::v1::session_response::Message as Told;
use quota_proto::v1::{self, session_request};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};

use crate::backoff;
use crate::local::Stale;
use crate::shared::Shared;

use self::line::Asked;
pub(crate) use self::line::Line;

/// How long a server may take to open one.
const OPEN: Duration = Duration::from_secs(5);

/// One that knows no sessions is asked again after so long: a newer one may have taken its place.
const NOT_KNOWN: Duration = Duration::from_secs(60);

/// A report and a pressure at most are on their way up; so neither waits for room.
const MAX_ON_THE_WAY: usize = 2;

/// Why there is no session any more.
enum End {
    /// The server has none.
    NotKnown,
    /// It could not be opened, broke before it answered anything, or is with a server that has lost its store.
    Failed,
    /// It has served, to its last answer.
    Served,
}

/// One that is open.
struct Session {
    up: mpsc::Sender<v1::SessionRequest>,
    down: Streaming<v1::SessionResponse>,
    /// Which endpoint it is with.
    endpoint: usize,
}

/// Keeps one open, with an endpoint that works.
pub(crate) async fn run(shared: &Shared) {
    // Fileservers that are started at once do not come at once.
    sleep(shared.settings.report_interval.mul_f64(fastrand::f64())).await;
    let mut failures = 0;
    loop {
        let end = match Session::open(shared).await {
            Ok(session) => session.serve(shared).await,
            Err(status) if status.code() == Code::Unimplemented => End::NotKnown,
            Err(error) => {
                tracing::debug!(%error, "no session");
                End::Failed
            }
        };
        let wait = match end {
            End::NotKnown => NOT_KNOWN,
            End::Served => {
                failures = 0;
                backoff::wait(1, fastrand::f64())
            }
            End::Failed => {
                failures += 1;
                backoff::wait(failures, fastrand::f64())
            }
        };
        sleep(wait).await;
    }
}

impl Session {
    async fn open(shared: &Shared) -> Result<Self, Status> {
        let Some((endpoint, mut service)) = shared.pool.working() else {
            return Err(Status::unavailable("no endpoint works"));
        };
        let (up, sent) = mpsc::channel(MAX_ON_THE_WAY);
        let hello = v1::Hello {
            node: shared.settings.node.clone(),
            version: concat!("quota-client/", env!("CARGO_PKG_VERSION")).to_owned(),
            standings: shared.settings.checks.is_any_local(),
        };
        // There is room, and somebody takes it.
        let _ = up.try_send(request(session_request::Message::Hello(hello)));
        let opening = async move { service.session(shared.pool.request(ReceiverStream::new(sent))).await };
        let down = timeout(OPEN, opening).await.map_err(|_| Status::deadline_exceeded("late"))??;
        Ok(Self { up, down: down.into_inner(), endpoint })
    }

    async fn serve(mut self, shared: &Shared) -> End {
        let (asks, mut asked) = mpsc::channel(MAX_ON_THE_WAY);
        shared.line.opened(asks);
        let mut end = End::Failed;
        let (mut report, mut pressure) = (None::<oneshot::Sender<Told>>, None::<oneshot::Sender<Told>>);
        loop {
            tokio::select! {
                ask = asked.recv() => {
                    // Who asked has waited too long.
                    let Some(Asked { message, answer }) = ask else { break };
                    match message {
                        session_request::Message::Report(_) => report = Some(answer),
                        _ => pressure = Some(answer),
                    }
                    if self.up.send(request(message)).await.is_err() {
                        break;
                    }
                }
                told = self.down.message() => {
                    let Ok(Some(v1::SessionResponse { message: Some(told) })) = told else { break };
                    let is_lost = line::has_lost_its_store(&told);
                    let waiting = match &told {
                        Told::Report(outcome) => {
                            shared.learn(&outcome.standings);
                            report.take()
                        }
                        Told::Pressure(_) => pressure.take(),
                        Told::Changed(changed) => {
                            shared.doubt(&Stale::read(changed));
                            None
                        }
                        Told::Drain(_) => {
                            shared.pool.pass_over(self.endpoint);
                            end = End::Served;
                            break;
                        }
                    };
                    end = if is_lost { End::Failed } else { End::Served };
                    if let Some(waiting) = waiting {
                        // Who asked may have gone.
                        let _ = waiting.send(told);
                    }
                    if is_lost {
                        // Another server may have it: reports are not kept waiting for this one.
                        shared.pool.pass_over(self.endpoint);
                        break;
                    }
                    if report.is_none() && pressure.is_none() && shared.pool.has_returned(self.endpoint) {
                        break;
                    }
                }
            }
        }
        shared.line.closed();
        end
    }
}

const fn request(message: session_request::Message) -> v1::SessionRequest {
    v1::SessionRequest { message: Some(message) }
}
