// The example takes this file from another place.
#[path = "fake/session.rs"]
mod session;

use std::collections::VecDeque;
use std::future::pending;
use std::net::{Shutdown, TcpStream as StdStream};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use quota_core::Cost;
use quota_proto::v1::quota_service_server::{QuotaService, QuotaServiceServer};
use quota_proto::v1::{self, check_response::Decision};
use quota_proto::{ACCOUNT_NOT_STORED, ERROR_DOMAIN, STORE_UNAVAILABLE};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_types::{ErrorDetails, StatusExt as _};

use super::LONG;

/// A quota service that answers as it is told, and remembers what it was asked.
pub(crate) struct Fake {
    port: u16,
    pub(crate) state: Arc<State>,
    server: JoinHandle<()>,
}

#[derive(Default)]
pub(crate) struct State {
    heard: watch::Sender<Heard>,
    /// To checks, in turn; the last one for ever.
    checks: Mutex<VecDeque<Check>>,
    /// To reports, in turn; then each is acknowledged.
    reports: Mutex<VecDeque<Report>>,
    /// To what is told of pressure; without one, it is taken.
    pressure: Mutex<Option<Code>>,
    /// Who has a limit of his own on the node.
    cut: Mutex<Vec<v1::AccountLimit>>,
    /// What is told by sessions unasked; without it, there are none.
    news: Mutex<Option<broadcast::Sender<v1::session_response::Message>>>,
    /// Told with each report that comes by a session.
    pub(crate) standings: Mutex<Vec<v1::Standing>>,
    /// Its connections, to be broken.
    connections: Mutex<Vec<StdStream>>,
}

/// It, as it is served.
#[derive(Clone)]
pub(crate) struct Served(Arc<State>);

/// What it was asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    pub(crate) checks: Vec<v1::CheckRequest>,
    pub(crate) reports: Vec<v1::ReportRequest>,
    pub(crate) pressures: Vec<v1::ReportPressureRequest>,
    pub(crate) authorization: Option<String>,
    /// Of each check, the place in a trace that it is said to have.
    pub(crate) traces: Vec<Option<String>>,
    /// With what sessions began.
    pub(crate) hellos: Vec<v1::Hello>,
    /// How many reports and pressures came by sessions.
    pub(crate) by_session: usize,
}

/// What was charged, and to which user.
pub(crate) fn costs(heard: &Heard) -> impl Iterator<Item = (&str, v1::Cost)> {
    let charges = heard.reports.iter().flat_map(|report| &report.charges);
    charges.map(|charge| (charge.accounts.as_ref().unwrap().user(), charge.cost.unwrap()))
}

/// How a check is answered.
#[derive(Clone, Debug)]
pub(crate) enum Check {
    Answer(Box<v1::CheckResponse>),
    Fail(Code),
    /// Refused with this `google.rpc.ErrorInfo.reason`; to be tried again in 700 ms.
    Refuse(Code, &'static str),
    Hang,
}

/// How a report is answered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Report {
    Fail(Code),
    /// The store is lost.
    NoStore,
    /// Stored, but for an account that cannot take it.
    NotStored,
    /// Refused for the charge of this index.
    Refuse(usize),
    Hang,
}

impl Check {
    pub(crate) fn answer(response: v1::CheckResponse) -> Self {
        Self::Answer(Box::new(response))
    }

    pub(crate) fn allow() -> Self {
        Self::allow_reserving(Cost::ZERO)
    }

    pub(crate) fn allow_reserving(price: Cost) -> Self {
        Self::answer(v1::CheckResponse {
            decision: Decision::Allow.into(),
            reserved: Some(price.into()),
            reservation: if price.is_zero() { String::new() } else { "r1.7".to_owned() },
            checked: true,
            ..v1::CheckResponse::default()
        })
    }

    /// The same with a share of so much, which lasts half a second.
    pub(crate) fn allow_sharing(price: Cost, share: Cost) -> Self {
        let Self::Answer(mut response) = Self::allow_reserving(price) else { unreachable!() };
        response.share = Some(v1::Share {
            reservation: "r1.share".to_owned(),
            amounts: Some(share.into()),
            lasts: Some(prost_types::Duration { seconds: 0, nanos: 500_000_000 }),
        });
        Self::Answer(response)
    }
}

impl Fake {
    /// One that allows all that it is asked.
    pub(crate) async fn start() -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    /// One that is away: its port is closed.
    pub(crate) async fn away() -> Self {
        let mut fake = Self::start().await;
        fake.stop().await;
        fake
    }

    fn on(listener: TcpListener) -> Self {
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let fake = Self { port, server: serve(&state, listener), state };
        fake.answers([Check::allow()]);
        fake
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The service itself, to be served otherwise.
    pub(crate) fn service(&self) -> QuotaServiceServer<Served> {
        QuotaServiceServer::new(Served(Arc::clone(&self.state)))
    }

    /// As if it were killed: its port is closed, and its connections are.
    pub(crate) async fn stop(&mut self) {
        self.server.abort();
        let _ = (&mut self.server).await;
        for connection in self.state.connections.lock().drain(..) {
            // It may be closed already.
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    /// Comes back on its old port.
    pub(crate) async fn restart(&mut self) {
        let listener = TcpListener::bind(("127.0.0.1", self.port)).await.unwrap();
        self.server = serve(&self.state, listener);
    }

    /// Says how checks are answered: in turn, the last for ever.
    pub(crate) fn answers(&self, checks: impl IntoIterator<Item = Check>) {
        *self.state.checks.lock() = checks.into_iter().collect();
    }

    /// Says how the next reports are answered.
    pub(crate) fn answers_reports(&self, reports: impl IntoIterator<Item = Report>) {
        *self.state.reports.lock() = reports.into_iter().collect();
    }

    /// From now on, what is told of pressure is answered so.
    pub(crate) fn answers_pressure(&self, code: Code) {
        *self.state.pressure.lock() = Some(code);
    }

    /// From now on, these have limits of their own on the node. Waits until the client knows.
    pub(crate) async fn cuts(&self, cut: impl IntoIterator<Item = v1::AccountLimit>) {
        *self.state.cut.lock() = cut.into_iter().collect();
        let told = self.heard().pressures.len();
        // The next is told when the answer to the one before is known.
        self.hears(|heard| heard.pressures.len() >= told + 2).await;
    }

    pub(crate) fn heard(&self) -> Heard {
        self.state.heard.borrow().clone()
    }

    /// Waits until it has heard this.
    pub(crate) async fn hears(&self, condition: impl Fn(&Heard) -> bool) -> Heard {
        let mut heard = self.state.heard.subscribe();
        let waited = tokio::time::timeout(LONG, heard.wait_for(condition)).await;
        waited.unwrap_or_else(|_| panic!("not heard: {:#?}", self.heard())).unwrap().clone()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn serve(state: &Arc<State>, listener: TcpListener) -> JoinHandle<()> {
    let service = QuotaServiceServer::new(Served(Arc::clone(state)));
    let server = tonic::transport::Server::builder().add_service(service);
    let state = Arc::clone(state);
    let incoming = TcpListenerStream::new(listener).map(move |connection| {
        let connection = connection?.into_std()?;
        state.connections.lock().push(connection.try_clone()?);
        TcpStream::from_std(connection)
    });
    let serving = server.serve_with_incoming(incoming);
    tokio::spawn(async move { serving.await.unwrap() })
}

impl State {
    fn next_check(&self) -> Check {
        let mut checks = self.checks.lock();
        if checks.len() > 1 { checks.pop_front() } else { checks.front().cloned() }.unwrap()
    }
}

impl Deref for Served {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0
    }
}

#[tonic::async_trait]
impl QuotaService for Served {
    async fn check(&self, request: Request<v1::CheckRequest>) -> Result<Response<v1::CheckResponse>, Status> {
        let told = |name| request.metadata().get(name).map(|value| value.to_str().unwrap().to_owned());
        let (authorization, trace) = (told("authorization"), told("traceparent"));
        self.heard.send_modify(|heard| {
            heard.authorization = authorization;
            heard.traces.push(trace);
            heard.checks.push(request.into_inner());
        });
        match self.next_check() {
            Check::Answer(response) => Ok(Response::new(*response)),
            Check::Fail(code) => Err(Status::new(code, "as told")),
            Check::Refuse(code, reason) => {
                let mut details = ErrorDetails::with_retry_info(Some(Duration::from_millis(700)));
                details.set_error_info(reason, ERROR_DOMAIN, []);
                Err(Status::with_error_details(code, "as told", details))
            }
            Check::Hang => pending().await,
        }
    }

    async fn report(
        &self,
        request: Request<v1::ReportRequest>,
    ) -> Result<Response<v1::ReportResponse>, Status> {
        let report = request.into_inner();
        let applied = u32::try_from(report.charges.len()).unwrap();
        let answer = self.reports.lock().pop_front();
        self.heard.send_modify(|heard| heard.reports.push(report));
        match answer {
            None => Ok(Response::new(v1::ReportResponse { applied, ..v1::ReportResponse::default() })),
            Some(Report::Fail(code)) => Err(Status::new(code, "as told")),
            Some(Report::NoStore) => {
                let details = ErrorDetails::with_error_info(STORE_UNAVAILABLE, ERROR_DOMAIN, []);
                Err(Status::with_error_details(Code::Unavailable, "as told", details))
            }
            Some(Report::NotStored) => {
                let details = ErrorDetails::with_error_info(ACCOUNT_NOT_STORED, ERROR_DOMAIN, []);
                Err(Status::with_error_details(Code::Unavailable, "as told", details))
            }
            Some(Report::Refuse(index)) => {
                let details =
                    ErrorDetails::with_bad_request_violation(format!("charges[{index}].cost"), "as told");
                Err(Status::with_error_details(Code::InvalidArgument, "as told", details))
            }
            Some(Report::Hang) => pending().await,
        }
    }

    async fn get_standing(
        &self,
        _: Request<v1::GetStandingRequest>,
    ) -> Result<Response<v1::Standing>, Status> {
        Err(Status::unimplemented("not for fileservers"))
    }

    async fn backoff(&self, _: Request<v1::BackoffRequest>) -> Result<Response<v1::BackoffResponse>, Status> {
        Err(Status::unimplemented("not for fileservers"))
    }

    async fn batch_backoff(
        &self,
        _: Request<v1::BatchBackoffRequest>,
    ) -> Result<Response<v1::BatchBackoffResponse>, Status> {
        Err(Status::unimplemented("not for fileservers"))
    }

    async fn report_pressure(
        &self,
        request: Request<v1::ReportPressureRequest>,
    ) -> Result<Response<v1::ReportPressureResponse>, Status> {
        self.heard.send_modify(|heard| heard.pressures.push(request.into_inner()));
        match *self.pressure.lock() {
            Some(code) => Err(Status::new(code, "as told")),
            None => {
                let accounts = self.cut.lock().clone();
                Ok(Response::new(v1::ReportPressureResponse {
                    accounts,
                    ..v1::ReportPressureResponse::default()
                }))
            }
        }
    }

    async fn list_nodes(
        &self,
        _: Request<v1::ListNodesRequest>,
    ) -> Result<Response<v1::ListNodesResponse>, Status> {
        Err(Status::unimplemented("not for fileservers"))
    }
    async fn acquire_slots(
        &self,
        _: Request<v1::AcquireSlotsRequest>,
    ) -> Result<Response<v1::Slots>, Status> {
        Err(Status::unimplemented("a service of before"))
    }

    async fn renew_slots(&self, _: Request<v1::RenewSlotsRequest>) -> Result<Response<v1::Slots>, Status> {
        Err(Status::unimplemented("a service of before"))
    }

    async fn list_classes(
        &self,
        _: Request<v1::ListClassesRequest>,
    ) -> Result<Response<v1::ListClassesResponse>, Status> {
        Err(Status::unimplemented("a service of before"))
    }

    async fn list_top(
        &self,
        _: Request<v1::ListTopRequest>,
    ) -> Result<Response<v1::ListTopResponse>, Status> {
        Err(Status::unimplemented("not for fileservers"))
    }

    async fn list_denials(
        &self,
        _: Request<v1::ListDenialsRequest>,
    ) -> Result<Response<v1::ListDenialsResponse>, Status> {
        Err(Status::unimplemented("not for fileservers"))
    }

    type SessionStream = ReceiverStream<Result<v1::SessionResponse, Status>>;

    async fn session(
        &self,
        request: Request<Streaming<v1::SessionRequest>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        self.open(request.into_inner()).map(Response::new)
    }
}
