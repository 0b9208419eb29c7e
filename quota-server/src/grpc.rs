//! The service over gRPC: every method extracts, delegates and converts.

mod convert;
mod health;
mod modes;
mod overrides;
mod status;

use std::sync::Arc;

use quota_proto::v1::mode_service_server::ModeServiceServer;
use quota_proto::v1::override_service_server::OverrideServiceServer;
use quota_proto::v1::quota_service_server::{QuotaService, QuotaServiceServer};
use quota_proto::v1::{
    BackoffRequest, BackoffResponse, CheckRequest, CheckResponse, GetStandingRequest, ListNodesRequest,
    ListNodesResponse, ReportPressureRequest, ReportPressureResponse, ReportRequest, ReportResponse,
    Standing,
};
use tonic::service::Routes;
use tonic::{Request, Response, Status};
use tonic_reflection::server::{Builder, Error};

use self::status::status;
use crate::MAX_BODY_BYTES;
use crate::quota::Quota;
use crate::readiness::Readiness;

/// The largest question about the server itself, in bytes: a name is asked for.
const MAX_QUESTION_BYTES: usize = 4096;

struct Grpc(Arc<Quota>);

/// Every service: the quota service, its health, and what describes them.
pub(crate) fn routes(quota: Arc<Quota>, readiness: Arc<Readiness>) -> Result<Routes, Error> {
    let described = || {
        Builder::configure()
            .register_encoded_file_descriptor_set(quota_proto::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let modes = ModeServiceServer::new(Grpc(Arc::clone(&quota)));
    let overrides = OverrideServiceServer::new(Grpc(Arc::clone(&quota)));
    let quota = QuotaServiceServer::new(Grpc(quota)).max_decoding_message_size(MAX_BODY_BYTES);
    Ok(Routes::new(quota)
        .add_service(modes.max_decoding_message_size(MAX_BODY_BYTES))
        .add_service(overrides.max_decoding_message_size(MAX_BODY_BYTES))
        .add_service(health::service(readiness).max_decoding_message_size(MAX_QUESTION_BYTES))
        .add_service(described().build_v1()?.max_decoding_message_size(MAX_QUESTION_BYTES))
        .add_service(described().build_v1alpha()?.max_decoding_message_size(MAX_QUESTION_BYTES)))
}

#[tonic::async_trait]
impl QuotaService for Grpc {
    async fn check(&self, request: Request<CheckRequest>) -> Result<Response<CheckResponse>, Status> {
        let request = convert::check(request.into_inner(), self.0.ipv6_prefix).map_err(status)?;
        let response = self.0.check(request).await.map_err(status)?;
        Ok(Response::new(response.into()))
    }

    async fn report(&self, request: Request<ReportRequest>) -> Result<Response<ReportResponse>, Status> {
        let request = convert::report(request.into_inner(), self.0.ipv6_prefix).map_err(status)?;
        let reported = self.0.report(request).await.map_err(status)?;
        Ok(Response::new(reported.into()))
    }

    async fn get_standing(&self, request: Request<GetStandingRequest>) -> Result<Response<Standing>, Status> {
        let request = convert::standing(request.into_inner(), self.0.ipv6_prefix).map_err(status)?;
        let standing = self.0.standing(request).await.map_err(status)?;
        Ok(Response::new(standing.into()))
    }

    async fn backoff(&self, request: Request<BackoffRequest>) -> Result<Response<BackoffResponse>, Status> {
        let request = convert::backoff(request.into_inner(), self.0.ipv6_prefix).map_err(status)?;
        let backoff = self.0.backoff(request).await.map_err(status)?;
        Ok(Response::new(backoff.into()))
    }

    async fn report_pressure(
        &self,
        request: Request<ReportPressureRequest>,
    ) -> Result<Response<ReportPressureResponse>, Status> {
        let request = convert::pressure(request.into_inner(), self.0.ipv6_prefix).map_err(status)?;
        let pressured = self.0.report_pressure(request).await.map_err(status)?;
        Ok(Response::new(pressured.into()))
    }

    async fn list_nodes(
        &self,
        request: Request<ListNodesRequest>,
    ) -> Result<Response<ListNodesResponse>, Status> {
        let node = convert::nodes(request.get_ref()).map_err(status)?;
        let nodes = self.0.list_nodes(&node).await.map_err(status)?;
        Ok(Response::new(ListNodesResponse { nodes: nodes.into_iter().map(Into::into).collect() }))
    }
}
