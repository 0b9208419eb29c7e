//! `grpc.health.v1`: the same as `/readyz`, in the words of gRPC.

use std::pin::Pin;
use std::sync::Arc;

use quota_proto::v1::{mode_service_server, override_service_server, quota_service_server};
use tokio::sync::Semaphore;
use tokio_stream::wrappers::WatchStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use super::authenticate::OpenCall;
use crate::readiness::Readiness;

/// The most that follow it at a time: it takes no token.
const MAX_WATCHERS: usize = 1024;

struct OfServer {
    readiness: Arc<Readiness>,
    watchers: Arc<Semaphore>,
}

pub(super) fn service(readiness: Arc<Readiness>) -> HealthServer<impl Health> {
    HealthServer::new(OfServer { readiness, watchers: Arc::new(Semaphore::new(MAX_WATCHERS)) })
}

#[tonic::async_trait]
impl Health for OfServer {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        if !is_known(&request.get_ref().service) {
            return Err(Status::not_found("no such service"));
        }
        Ok(Response::new(response(serving(self.readiness.probe().await.is_ok()))))
    }

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let call = request.extensions().get::<OpenCall>().cloned();
        let known = is_known(&request.get_ref().service);
        let place = Arc::clone(&self.watchers).try_acquire_owned();
        let place = place.map_err(|_| Status::resource_exhausted("as many follow as may"))?;
        let ready = self.readiness.follow().await.ok_or_else(|| Status::unavailable("the server stops"))?;
        let answer = move |ready| {
            // They are held as long as the stream is.
            let _ = (&place, &call);
            Ok(response(if known { serving(ready) } else { ServingStatus::ServiceUnknown }))
        };
        Ok(Response::new(Box::pin(WatchStream::new(ready).map(answer))))
    }
}

/// The server as a whole, or a service that it is for.
fn is_known(service: &str) -> bool {
    let services = [
        quota_service_server::SERVICE_NAME,
        override_service_server::SERVICE_NAME,
        mode_service_server::SERVICE_NAME,
    ];
    service.is_empty() || services.contains(&service)
}

const fn serving(ready: bool) -> ServingStatus {
    if ready { ServingStatus::Serving } else { ServingStatus::NotServing }
}

const fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status as i32 }
}
