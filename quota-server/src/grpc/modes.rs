//! How far limits are enforced, over gRPC.

use quota_core::Kind;
use quota_proto::v1::mode_service_server::ModeService;
use quota_proto::v1::{
    DeleteModeRequest, DeleteModeResponse, ListModesRequest, ListModesResponse, ModeSetting, PutModeRequest,
};
use quota_proto::{Invalid, v1};
use tonic::{Extensions, Request, Response, Status};

use super::convert::duration;
use super::{Grpc, status};
use crate::author::author;
use crate::quota::{ModeRequest, ModeStanding, PutMode, wire_mode};

#[tonic::async_trait]
impl ModeService for Grpc {
    async fn list(&self, _request: Request<ListModesRequest>) -> Result<Response<ListModesResponse>, Status> {
        let modes = self.0.list_modes().await.map_err(status)?;
        Ok(Response::new(ListModesResponse { modes: modes.iter().map(Into::into).collect() }))
    }

    async fn put(&self, request: Request<PutModeRequest>) -> Result<Response<ModeSetting>, Status> {
        let wire = request.get_ref();
        let read = || {
            let asked = asked(&wire.node, wire.kind, request.extensions())?;
            PutMode::new(asked, wire.mode().try_into()?, &wire.reason)
        };
        let set = self.0.put_mode(read().map_err(status)?).await.map_err(status)?;
        Ok(Response::new((&set).into()))
    }

    async fn delete(
        &self,
        request: Request<DeleteModeRequest>,
    ) -> Result<Response<DeleteModeResponse>, Status> {
        let wire = request.get_ref();
        let asked = asked(&wire.node, wire.kind, request.extensions()).map_err(status)?;
        self.0.delete_mode(asked).await.map_err(status)?;
        Ok(Response::new(DeleteModeResponse {}))
    }
}

/// A kind that is not known is not taken for none, which would be the whole system.
fn asked(node: &str, kind: Option<i32>, of: &Extensions) -> Result<ModeRequest, Invalid> {
    let known = |kind| v1::Kind::try_from(kind).unwrap_or_default();
    let kind = kind.map(|kind| Kind::try_from(known(kind))).transpose()?;
    ModeRequest::new(Some(node), kind, author(of))
}

impl From<&ModeStanding> for ModeSetting {
    fn from(ModeStanding { setting, since }: &ModeStanding) -> Self {
        Self { since: Some(duration(*since)), ..wire_mode(setting) }
    }
}
