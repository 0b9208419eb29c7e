//! Sessions: a stream of reports and pressure up, and down their answers and what ends what was told before.
//! `docs/decisions/0021-sessions.md` says why it is so.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use quota_core::Account;
use quota_proto::Invalid;
use quota_proto::v1::report_outcome::Outcome as OfReport;
use quota_proto::v1::{
    Changed, Drain, Failure, Hello, PressureOutcome, ReportOutcome, ReportPressureRequest, ReportRequest,
    SessionRequest, SessionResponse, pressure_outcome, session_request, session_response,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;
use tonic::{Status, Streaming};

use super::status::status;
use super::{convert, pressure_of, report_of};
use crate::auth::{Auth, Caller, Nodes};
use crate::places::{Place, Places};
use crate::quota::{Change, ChargeRequest, Following, Label, Quota};
use crate::readiness::Readiness;

/// The most that are open at a time.
const MAX_SESSIONS: usize = 4096;

/// The most of one caller who is bound to nodes.
const MAX_OF_CALLER: usize = 256;

/// How long the first message may take.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);

/// The most accounts of a report whose standings are told.
const MAX_STANDINGS: usize = 64;

/// The longest version that a caller may tell, in bytes.
const MAX_VERSION: usize = 64;

/// Answers that wait for the connection. While they do, nothing more is read: who does not read is not read.
const MAX_UNREAD: usize = 1;

pub(super) type Answers = mpsc::Sender<Result<SessionResponse, Status>>;

/// Opens sessions.
pub(super) struct Sessions {
    places: Arc<Semaphore>,
    of_callers: Places<Arc<str>>,
    readiness: Arc<Readiness>,
    auth: Arc<Auth>,
}

/// One that is open.
struct Session {
    quota: Arc<Quota>,
    caller: Caller,
    node: Label,
    standings: bool,
}

impl Sessions {
    pub(super) fn new(readiness: Arc<Readiness>, auth: Arc<Auth>) -> Self {
        let places = Arc::new(Semaphore::new(MAX_SESSIONS));
        Self { places, of_callers: Places::default(), readiness, auth }
    }

    /// Answers what comes in, until it ends, nobody reads the answers, others are known than before, or the server is about to
    /// stop.
    pub(super) fn open(
        &self,
        quota: Arc<Quota>,
        caller: Caller,
        incoming: Streaming<SessionRequest>,
    ) -> Result<mpsc::Receiver<Result<SessionResponse, Status>>, Status> {
        let place = Arc::clone(&self.places).try_acquire_owned();
        let place = place.map_err(|_| Status::resource_exhausted("as many sessions are open as may be"))?;
        let most = if matches!(caller.nodes, Nodes::Named(_)) { MAX_OF_CALLER } else { MAX_SESSIONS };
        let of_caller = self.of_callers.take(Arc::clone(&caller.name), most);
        let of_caller = of_caller.ok_or_else(|| {
            Status::resource_exhausted("as many sessions of this caller are open as may be")
        })?;
        let mut known = self.auth.changes();
        let readiness = Arc::clone(&self.readiness);
        let (answers, read) = mpsc::channel(MAX_UNREAD);
        tokio::spawn(async move {
            let _open = Open::new(&quota, place, of_caller);
            let serving = serve(Arc::clone(&quota), &readiness, caller, incoming, &answers);
            tokio::select! {
                end = serving => if let Err(status) = end {
                    let _ = answers.send(Err(status)).await;
                },
                () = answers.closed() => {}
                // Whoever is at the other end may not be known any more. One who is comes back.
                _ = known.changed() => {}
            }
        });
        Ok(read)
    }
}

/// Counts one that is open.
struct Open<'a> {
    quota: &'a Quota,
    _places: (OwnedSemaphorePermit, Place<Arc<str>>),
}

impl<'a> Open<'a> {
    fn new(quota: &'a Quota, place: OwnedSemaphorePermit, of_caller: Place<Arc<str>>) -> Self {
        quota.metrics.sessions.inc();
        Self { quota, _places: (place, of_caller) }
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.quota.metrics.sessions.dec();
    }
}

/// Answers one message after the other, tells of changes between them, and ends when the server is about to stop.
async fn serve(
    quota: Arc<Quota>,
    readiness: &Readiness,
    caller: Caller,
    mut incoming: Streaming<SessionRequest>,
    answers: &Answers,
) -> Result<(), Status> {
    // From before it is said that it is open, so that nothing is missed.
    let mut changes = quota.changes.follow();
    let first = timeout(HELLO_TIMEOUT, incoming.message()).await;
    let Some(first) = first.map_err(|_| Status::deadline_exceeded("no hello"))?? else { return Ok(()) };
    let Some(session_request::Message::Hello(hello)) = first.message else { return Err(no_hello()) };
    let session = Session::new(quota, caller, hello)?;
    let mut drained = pin!(readiness.drained());
    loop {
        let answer = tokio::select! {
            message = incoming.message() => match message? {
                Some(message) => session.answer(message).await?,
                None => return Ok(()),
            },
            change = next(&mut changes) => changed(change),
            () = &mut drained => {
                let _ = answers.send(Ok(drain())).await;
                return Ok(());
            }
        };
        if answers.send(Ok(answer)).await.is_err() {
            return Ok(());
        }
    }
}

/// The next change. When there are none any more the server is gone, and this with it.
async fn next(changes: &mut Following) -> Change {
    match changes.next().await {
        Some(change) => change,
        None => std::future::pending().await,
    }
}

impl Session {
    fn new(quota: Arc<Quota>, caller: Caller, hello: Hello) -> Result<Self, Status> {
        let Hello { node, version, standings } = hello;
        let node = Label::new("hello.node", Some(&node)).map_err(status)?;
        quota.speaks_for(&caller, node.as_deref()).map_err(status)?;
        if version.len() > MAX_VERSION {
            let reason = format!("must be at most {MAX_VERSION} bytes");
            return Err(status(Invalid::new("hello.version", reason)));
        }
        tracing::debug!(node = node.as_str(), ?version, "a session begins");
        Ok(Self { quota, caller, node, standings })
    }

    /// What a message is answered, whatever becomes of it; an error ends the session.
    async fn answer(&self, message: SessionRequest) -> Result<SessionResponse, Status> {
        Ok(match message.message {
            Some(session_request::Message::Report(report)) => of_report(self.report(report).await),
            Some(session_request::Message::Pressure(pressure)) => of_pressure(self.pressure(pressure).await),
            Some(session_request::Message::Hello(_)) | None => return Err(no_hello()),
        })
    }

    async fn report(&self, report: ReportRequest) -> Result<ReportOutcome, Status> {
        let request = report_of(&self.quota, &self.caller, report)?;
        let charged = if self.standings { charged(&request.charges) } else { Vec::new() };
        let reported = self.quota.report(&self.caller, request).await.map_err(status)?;
        // What was reported counts, whether or not it is known what comes of it.
        let standings = self.quota.standings(&charged, &self.node).await.unwrap_or_default();
        Ok(ReportOutcome {
            outcome: Some(OfReport::Acknowledged(reported.into())),
            standings: standings.into_iter().map(Into::into).collect(),
        })
    }

    async fn pressure(&self, pressure: ReportPressureRequest) -> Result<PressureOutcome, Status> {
        let response = pressure_of(&self.quota, &self.caller, pressure).await?;
        Ok(PressureOutcome { outcome: Some(pressure_outcome::Outcome::Response(response)) })
    }
}

/// The first accounts of a report, each once.
fn charged(charges: &[ChargeRequest]) -> Vec<Account> {
    let mut charged = Vec::new();
    for account in charges.iter().flat_map(|charge| charge.accounts.as_slice()) {
        if charged.len() == MAX_STANDINGS {
            break;
        }
        if !charged.contains(account) {
            charged.push(account.clone());
        }
    }
    charged
}

fn of_report(outcome: Result<ReportOutcome, Status>) -> SessionResponse {
    let outcome = outcome.unwrap_or_else(|status| ReportOutcome {
        outcome: Some(OfReport::Failure(failure(&status))),
        standings: Vec::new(),
    });
    response(session_response::Message::Report(outcome))
}

fn of_pressure(outcome: Result<PressureOutcome, Status>) -> SessionResponse {
    let outcome = outcome.unwrap_or_else(|status| PressureOutcome {
        outcome: Some(pressure_outcome::Outcome::Failure(failure(&status))),
    });
    response(session_response::Message::Pressure(outcome))
}

fn changed(change: Change) -> SessionResponse {
    response(session_response::Message::Changed(match change {
        Change::All => Changed { accounts: Vec::new(), all: true },
        Change::Of(accounts) => {
            Changed { accounts: accounts.iter().map(convert::account).collect(), all: false }
        }
    }))
}

fn drain() -> SessionResponse {
    response(session_response::Message::Drain(Drain {}))
}

fn failure(status: &Status) -> Failure {
    Failure {
        code: status.code().into(),
        message: status.message().to_owned(),
        details: status.details().to_vec(),
    }
}

const fn response(message: session_response::Message) -> SessionResponse {
    SessionResponse { message: Some(message) }
}

fn no_hello() -> Status {
    Status::invalid_argument("a session begins with one hello, and goes on with reports and pressure")
}
