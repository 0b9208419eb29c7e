//! The service over gRPC: every method extracts, delegates and converts.

mod authenticate;
mod convert;
mod health;
mod modes;
mod overrides;
mod pace;
mod session;
mod slots;
mod status;

use std::sync::Arc;

use axum::middleware::{from_fn, from_fn_with_state};
use prost::Message as _;
use prost_types::FileDescriptorSet;
use quota_proto::v1::mode_service_server::ModeServiceServer;
use quota_proto::v1::override_service_server::OverrideServiceServer;
use quota_proto::v1::quota_service_server::{QuotaService, QuotaServiceServer};
use quota_proto::v1::{
    AcquireSlotsRequest, BackoffRequest, BackoffResponse, BatchBackoffRequest, BatchBackoffResponse,
    CheckRequest, CheckResponse, GetStandingRequest, ListClassesRequest, ListClassesResponse,
    ListDenialsRequest, ListDenialsResponse, ListNodesRequest, ListNodesResponse, ListTopRequest,
    ListTopResponse, RenewSlotsRequest, ReportPressureRequest, ReportPressureResponse, ReportRequest,
    ReportResponse, SessionRequest, SessionResponse, Slots, Standing,
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming};
use tonic_reflection::server::Builder;

use self::authenticate::{Guard, authenticate, caller};
use self::pace::pace;
use self::session::Sessions;
use self::status::status;
use crate::MAX_BODY_BYTES;
use crate::auth::{Access, Auth, Caller};
use crate::large::Large;
use crate::places::Places;
use crate::quota::{self, Label, Quota};
use crate::readiness::Readiness;
use crate::server::StartError;
use crate::trace::of_grpc;

/// The largest question about the server itself, in bytes: a name is asked for.
const MAX_QUESTION_BYTES: usize = 4096;

/// What asks and tells the quota service.
struct Service {
    quota: Arc<Quota>,
    sessions: Sessions,
}

/// What operators say.
struct Grpc(Arc<Quota>);

/// Every service: the quota service, its health, and what describes them. Where requests are traced, each has a span.
pub(crate) fn routes(
    quota: Arc<Quota>,
    readiness: Arc<Readiness>,
    auth: Arc<Auth>,
    large: Large,
    traced: bool,
) -> Result<Routes, StartError> {
    check_access()?;
    let described = || {
        Builder::configure()
            .register_encoded_file_descriptor_set(quota_proto::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let sessions = Sessions::new(Arc::clone(&readiness), Arc::clone(&auth));
    let guard = Guard { auth, quota: Arc::clone(&quota), open: Places::default() };
    let modes = ModeServiceServer::new(Grpc(Arc::clone(&quota)));
    let overrides = OverrideServiceServer::new(Grpc(Arc::clone(&quota)));
    let quota =
        QuotaServiceServer::new(Service { quota, sessions }).max_decoding_message_size(MAX_BODY_BYTES);
    let routes = Routes::new(quota)
        .add_service(modes.max_decoding_message_size(MAX_BODY_BYTES))
        .add_service(overrides.max_decoding_message_size(MAX_BODY_BYTES))
        .add_service(health::service(readiness).max_decoding_message_size(MAX_QUESTION_BYTES))
        .add_service(described().build_v1()?.max_decoding_message_size(MAX_QUESTION_BYTES))
        .add_service(described().build_v1alpha()?.max_decoding_message_size(MAX_QUESTION_BYTES));
    let router = routes
        .into_axum_router()
        .layer(from_fn_with_state(large, pace))
        .layer(from_fn_with_state(guard, authenticate));
    let router = if traced { router.layer(from_fn(of_grpc)) } else { router };
    Ok(router.into())
}

/// Every method of every service, as its path.
fn methods() -> Result<Vec<String>, StartError> {
    let mut methods = Vec::new();
    for set in [
        quota_proto::FILE_DESCRIPTOR_SET,
        tonic_health::pb::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
    ] {
        for file in FileDescriptorSet::decode(set).map_err(tonic_reflection::server::Error::from)?.file {
            for service in &file.service {
                let path = |method: &str| format!("/{}.{}/{method}", file.package(), service.name());
                methods.extend(service.method.iter().map(|method| path(method.name())));
            }
        }
    }
    Ok(methods)
}

/// A method of which nobody has said who may call it would be called by nobody.
fn check_access() -> Result<(), StartError> {
    match methods()?.into_iter().find(|path| Access::of_method(path).is_none()) {
        Some(undeclared) => Err(StartError::Access(undeclared)),
        None => Ok(()),
    }
}

#[tonic::async_trait]
impl QuotaService for Service {
    async fn check(&self, request: Request<CheckRequest>) -> Result<Response<CheckResponse>, Status> {
        let caller = caller(&request)?;
        let request = convert::check(request.into_inner(), self.quota.ipv6_prefix).map_err(status)?;
        self.quota.speaks_for(&caller, request.node.as_deref()).map_err(status)?;
        let response = self.quota.check(&caller, request).await.map_err(status)?;
        Ok(Response::new(response.into()))
    }

    async fn report(&self, request: Request<ReportRequest>) -> Result<Response<ReportResponse>, Status> {
        let caller = caller(&request)?;
        let request = report_of(&self.quota, &caller, request.into_inner())?;
        let reported = self.quota.report(&caller, request).await.map_err(status)?;
        Ok(Response::new(reported.into()))
    }

    async fn get_standing(&self, request: Request<GetStandingRequest>) -> Result<Response<Standing>, Status> {
        let request = convert::standing(request.into_inner(), self.quota.ipv6_prefix).map_err(status)?;
        let standing = self.quota.standing(request).await.map_err(status)?;
        Ok(Response::new(standing.into()))
    }

    async fn backoff(&self, request: Request<BackoffRequest>) -> Result<Response<BackoffResponse>, Status> {
        let request = convert::backoff(request.into_inner(), self.quota.ipv6_prefix).map_err(status)?;
        let backoff = self.quota.backoff(request).await.map_err(status)?;
        Ok(Response::new(backoff.into()))
    }

    async fn batch_backoff(
        &self,
        request: Request<BatchBackoffRequest>,
    ) -> Result<Response<BatchBackoffResponse>, Status> {
        let requests = convert::backoffs(request.into_inner(), self.quota.ipv6_prefix).map_err(status)?;
        let backoffs = self.quota.backoff_each(requests).await.map_err(status)?;
        Ok(Response::new(BatchBackoffResponse { results: backoffs.into_iter().map(Into::into).collect() }))
    }

    async fn report_pressure(
        &self,
        request: Request<ReportPressureRequest>,
    ) -> Result<Response<ReportPressureResponse>, Status> {
        let caller = caller(&request)?;
        Ok(Response::new(pressure_of(&self.quota, &caller, request.into_inner()).await?))
    }

    async fn list_nodes(
        &self,
        request: Request<ListNodesRequest>,
    ) -> Result<Response<ListNodesResponse>, Status> {
        let node = convert::nodes(request.get_ref()).map_err(status)?;
        let nodes = self.quota.list_nodes(&node).await.map_err(status)?;
        Ok(Response::new(ListNodesResponse { nodes: nodes.into_iter().map(Into::into).collect() }))
    }

    async fn list_top(&self, request: Request<ListTopRequest>) -> Result<Response<ListTopResponse>, Status> {
        let request = convert::top(request.get_ref()).map_err(status)?;
        let top = self.quota.top(request).await.map_err(status)?;
        Ok(Response::new(top.into()))
    }

    async fn list_denials(
        &self,
        request: Request<ListDenialsRequest>,
    ) -> Result<Response<ListDenialsResponse>, Status> {
        let request = convert::denials(request.get_ref()).map_err(status)?;
        let report = self.quota.list_denials(request).await.map_err(status)?;
        Ok(Response::new(report.into()))
    }

    async fn acquire_slots(&self, request: Request<AcquireSlotsRequest>) -> Result<Response<Slots>, Status> {
        let caller = caller(&request)?;
        let node = Label::new("node", Some(&request.get_ref().node)).map_err(status)?;
        let node = self.quota.node_of_slots(&caller, node).map_err(status)?;
        let asked = slots::acquire(request.get_ref(), &node).map_err(status)?;
        let answer = self.quota.acquire_slots(asked).await.map_err(status)?;
        Ok(Response::new(answer.into()))
    }

    async fn renew_slots(&self, request: Request<RenewSlotsRequest>) -> Result<Response<Slots>, Status> {
        let caller = caller(&request)?;
        let node = Label::new("node", Some(&request.get_ref().node)).map_err(status)?;
        let node = self.quota.node_of_slots(&caller, node).map_err(status)?;
        let asked = slots::renew(request.get_ref(), &node).map_err(status)?;
        let answer = self.quota.renew_slots(asked).await.map_err(status)?;
        Ok(Response::new(answer.into()))
    }

    async fn list_classes(
        &self,
        _request: Request<ListClassesRequest>,
    ) -> Result<Response<ListClassesResponse>, Status> {
        let classes = self.quota.list_classes().await.map_err(status)?;
        Ok(Response::new(ListClassesResponse { classes: classes.into_iter().map(Into::into).collect() }))
    }

    type SessionStream = ReceiverStream<Result<SessionResponse, Status>>;

    async fn session(
        &self,
        request: Request<Streaming<SessionRequest>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let caller = caller(&request)?;
        let answers = self.sessions.open(Arc::clone(&self.quota), caller, request.into_inner())?;
        Ok(Response::new(ReceiverStream::new(answers)))
    }
}

/// A report of a caller who may speak for its node.
fn report_of(quota: &Quota, caller: &Caller, report: ReportRequest) -> Result<quota::ReportRequest, Status> {
    let request = convert::report(report, quota.ipv6_prefix, caller).map_err(status)?;
    quota.speaks_for(caller, request.node.as_deref()).map_err(status)?;
    Ok(request)
}

/// Takes in the pressure that a caller tells who may speak for its node.
async fn pressure_of(
    quota: &Quota,
    caller: &Caller,
    pressure: ReportPressureRequest,
) -> Result<ReportPressureResponse, Status> {
    let request = convert::pressure(pressure, quota.ipv6_prefix).map_err(status)?;
    quota.speaks_for(caller, Some(&request.node)).map_err(status)?;
    Ok(quota.report_pressure(request).await.map_err(status)?.into())
}
