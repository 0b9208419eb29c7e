//! Sessions of the service: what comes by them is answered as what comes by calls.

use quota_proto::v1::session_request::Message as Said;
use quota_proto::v1::session_response::Message as Told;
use quota_proto::v1::{pressure_outcome, report_outcome};
use tokio::sync::mpsc;

use super::*;

impl Fake {
    /// From now on it has sessions.
    pub(crate) fn has_sessions(&self) {
        *self.state.news.lock() = Some(broadcast::Sender::new(16));
    }

    /// Tells this by the sessions that are open.
    pub(crate) fn tells(&self, news: Told) {
        self.state.news.lock().as_ref().unwrap().send(news).unwrap();
    }
}

impl Served {
    pub(super) fn open(
        &self,
        mut said: Streaming<v1::SessionRequest>,
    ) -> Result<ReceiverStream<Result<v1::SessionResponse, Status>>, Status> {
        let news = self.news.lock().as_ref().map(broadcast::Sender::subscribe);
        let mut news = news.ok_or_else(|| Status::unimplemented("no sessions"))?;
        let (down, told) = mpsc::channel(1);
        let served = self.clone();
        tokio::spawn(async move {
            loop {
                let told = tokio::select! {
                    said = said.message() => match said {
                        Ok(Some(v1::SessionRequest { message: Some(message) })) => served.answer(message).await,
                        _ => return,
                    },
                    news = news.recv() => Some(news.unwrap()),
                };
                let Some(told) = told else { continue };
                let ends = matches!(told, Told::Drain(_));
                let told = v1::SessionResponse { message: Some(told) };
                if down.send(Ok(told)).await.is_err() || ends {
                    return;
                }
            }
        });
        Ok(ReceiverStream::new(told))
    }

    async fn answer(&self, said: Said) -> Option<Told> {
        if let Said::Hello(hello) = said {
            self.heard.send_modify(|heard| heard.hellos.push(hello));
            return None;
        }
        self.heard.send_modify(|heard| heard.by_session += 1);
        Some(match said {
            Said::Report(report) => {
                let outcome = match self.report(Request::new(report)).await {
                    Ok(response) => report_outcome::Outcome::Acknowledged(response.into_inner()),
                    Err(status) => report_outcome::Outcome::Failure(failure(&status)),
                };
                let standings = self.standings.lock().clone();
                Told::Report(v1::ReportOutcome { outcome: Some(outcome), standings })
            }
            Said::Pressure(pressure) => {
                let outcome = match self.report_pressure(Request::new(pressure)).await {
                    Ok(response) => pressure_outcome::Outcome::Response(response.into_inner()),
                    Err(status) => pressure_outcome::Outcome::Failure(failure(&status)),
                };
                Told::Pressure(v1::PressureOutcome { outcome: Some(outcome) })
            }
            Said::Hello(_) => unreachable!(),
        })
    }
}

fn failure(status: &Status) -> v1::Failure {
    v1::Failure {
        code: status.code().into(),
        message: status.message().to_owned(),
        details: status.details().to_vec(),
    }
}
