use parking_lot::Mutex;
use quota_proto::v1::session_response::Message as Told;
use quota_proto::v1::{self, pressure_outcome, report_outcome, session_request};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};
use tonic::{Code, Status};

use crate::pool::NoAnswer;
use crate::status::has_no_store;

/// What goes by the session, while one is open.
#[derive(Default)]
pub(crate) struct Line(Mutex<Option<mpsc::Sender<Asked>>>);

/// A message, and where its answer goes.
pub(super) struct Asked {
    pub(super) message: session_request::Message,
    pub(super) answer: oneshot::Sender<Told>,
}

impl Line {
    pub(super) fn opened(&self, asks: mpsc::Sender<Asked>) {
        *self.0.lock() = Some(asks);
    }

    pub(super) fn closed(&self) {
        self.0.lock().take();
    }

    /// Sends a report, and waits for what becomes of it; `None` where no session is open. One that is not answered in time is
    /// closed.
    pub(crate) async fn report(
        &self,
        report: &v1::ReportRequest,
        deadline: Instant,
    ) -> Option<Result<v1::ReportResponse, NoAnswer>> {
        let told = self.ask(deadline, || session_request::Message::Report(report.clone())).await?;
        Some(told.and_then(|told| match told {
            Told::Report(v1::ReportOutcome { outcome: Some(outcome), .. }) => match outcome {
                report_outcome::Outcome::Acknowledged(response) => Ok(response),
                report_outcome::Outcome::Failure(failure) => Err(NoAnswer::Status(status(failure))),
            },
            _ => Err(malformed()),
        }))
    }

    /// The same of the pressure.
    pub(crate) async fn pressure(
        &self,
        pressure: &v1::ReportPressureRequest,
        deadline: Instant,
    ) -> Option<Result<v1::ReportPressureResponse, NoAnswer>> {
        let told = self.ask(deadline, || session_request::Message::Pressure(pressure.clone())).await?;
        Some(told.and_then(|told| match told {
            Told::Pressure(v1::PressureOutcome { outcome: Some(outcome) }) => match outcome {
                pressure_outcome::Outcome::Response(response) => Ok(response),
                pressure_outcome::Outcome::Failure(failure) => Err(NoAnswer::Status(status(failure))),
            },
            _ => Err(malformed()),
        }))
    }

    async fn ask(
        &self,
        deadline: Instant,
        message: impl FnOnce() -> session_request::Message,
    ) -> Option<Result<Told, NoAnswer>> {
        let asks = self.0.lock().clone()?;
        let (answer, answered) = oneshot::channel();
        let asking = async {
            asks.send(Asked { message: message(), answer }).await.ok()?;
            answered.await.ok()
        };
        Some(match timeout_at(deadline, asking).await {
            Ok(Some(told)) => Ok(told),
            Ok(None) => Err(NoAnswer::Status(Status::unavailable("the session broke"))),
            Err(_) => {
                // It ends when nobody can ask by it any more.
                self.0.lock().take_if(|open| open.same_channel(&asks));
                Err(NoAnswer::Late)
            }
        })
    }
}

/// Whether a server says that it has lost its store.
pub(super) fn has_lost_its_store(told: &Told) -> bool {
    let failure = match told {
        Told::Report(v1::ReportOutcome {
            outcome: Some(report_outcome::Outcome::Failure(failure)), ..
        }) => failure,
        Told::Pressure(v1::PressureOutcome {
            outcome: Some(pressure_outcome::Outcome::Failure(failure)),
        }) => failure,
        _ => return false,
    };
    has_no_store(&status(failure.clone()))
}

/// What the call of its own would have failed with.
fn status(v1::Failure { code, message, details }: v1::Failure) -> Status {
    Status::with_details(Code::from(code), message, details.into())
}

fn malformed() -> NoAnswer {
    NoAnswer::Status(Status::internal("the answer is malformed: it has no outcome"))
}
