use std::future::ready;
use std::net::SocketAddr;
use std::time::Duration;

use futures::StreamExt as _;
use quota_proto::v1;
use quota_proto::v1::quota_service_server::{QuotaService, QuotaServiceServer};
use quota_tests::server::Grpc;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};

/// Passes on what a client of the service asks, and says of shares that they last so long.
struct Between {
    service: Grpc,
    lasts: Duration,
}

/// Serves it until the end of the process. Returns where.
pub(super) async fn serve(service: Grpc, lasts: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let serving = Server::builder()
        .add_service(QuotaServiceServer::new(Between { service, lasts }))
        .serve_with_incoming(TcpListenerStream::new(listener));
    tokio::spawn(async { serving.await.expect("a server that goes on") });
    address
}

/// No client of this experiment asks this.
fn not_asked<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("not passed on"))
}

#[tonic::async_trait]
impl QuotaService for Between {
    type SessionStream = Streaming<v1::SessionResponse>;

    async fn check(&self, request: Request<v1::CheckRequest>) -> Result<Response<v1::CheckResponse>, Status> {
        let mut answer = self.service.clone().check(request).await?;
        if let Some(share) = &mut answer.get_mut().share {
            share.lasts = Some(self.lasts.try_into().map_err(|_| Status::internal("too long"))?);
        }
        Ok(answer)
    }

    async fn report(
        &self,
        request: Request<v1::ReportRequest>,
    ) -> Result<Response<v1::ReportResponse>, Status> {
        self.service.clone().report(request).await
    }

    async fn report_pressure(
        &self,
        request: Request<v1::ReportPressureRequest>,
    ) -> Result<Response<v1::ReportPressureResponse>, Status> {
        self.service.clone().report_pressure(request).await
    }

    async fn session(
        &self,
        request: Request<Streaming<v1::SessionRequest>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        // It ends where it cannot be read.
        let asked = request
            .into_inner()
            .take_while(|message| ready(message.is_ok()))
            .filter_map(|message| ready(message.ok()));
        self.service.clone().session(asked).await
    }

    async fn get_standing(
        &self,
        _: Request<v1::GetStandingRequest>,
    ) -> Result<Response<v1::Standing>, Status> {
        not_asked()
    }

    async fn backoff(&self, _: Request<v1::BackoffRequest>) -> Result<Response<v1::BackoffResponse>, Status> {
        not_asked()
    }

    async fn batch_backoff(
        &self,
        _: Request<v1::BatchBackoffRequest>,
    ) -> Result<Response<v1::BatchBackoffResponse>, Status> {
        not_asked()
    }

    async fn list_nodes(
        &self,
        _: Request<v1::ListNodesRequest>,
    ) -> Result<Response<v1::ListNodesResponse>, Status> {
        not_asked()
    }

    async fn list_top(
        &self,
        _: Request<v1::ListTopRequest>,
    ) -> Result<Response<v1::ListTopResponse>, Status> {
        not_asked()
    }

    async fn list_denials(
        &self,
        _: Request<v1::ListDenialsRequest>,
    ) -> Result<Response<v1::ListDenialsResponse>, Status> {
        not_asked()
    }

    async fn acquire_slots(
        &self,
        _: Request<v1::AcquireSlotsRequest>,
    ) -> Result<Response<v1::Slots>, Status> {
        not_asked()
    }

    async fn renew_slots(&self, _: Request<v1::RenewSlotsRequest>) -> Result<Response<v1::Slots>, Status> {
        not_asked()
    }

    async fn list_classes(
        &self,
        _: Request<v1::ListClassesRequest>,
    ) -> Result<Response<v1::ListClassesResponse>, Status> {
        not_asked()
    }
}
