//! What operators say of accounts, over gRPC.

use quota_core::Ipv6Prefix;
use quota_proto::v1::override_service_server::OverrideService;
use quota_proto::v1::{
    DeleteOverrideRequest, DeleteOverrideResponse, GetOverrideRequest, ListOverridesRequest,
    ListOverridesResponse, Override, PutOverrideRequest,
};
use quota_proto::{Invalid, duration, override_word, v1, wire_override_word};
use tonic::{Extensions, Request, Response, Status};

use super::convert::duration as wire_duration;
use super::{Grpc, status};
use crate::author::author;
use crate::quota::{OverrideOrigin, OverrideRequest, OverrideStanding, PutOverride};

#[tonic::async_trait]
impl OverrideService for Grpc {
    async fn list(
        &self,
        _request: Request<ListOverridesRequest>,
    ) -> Result<Response<ListOverridesResponse>, Status> {
        let overrides = self.0.list_overrides().await.map_err(status)?;
        Ok(Response::new(ListOverridesResponse {
            overrides: overrides.into_iter().map(Into::into).collect(),
        }))
    }

    async fn get(&self, request: Request<GetOverrideRequest>) -> Result<Response<Override>, Status> {
        let wire = request.get_ref();
        let asked = asked(wire.kind(), &wire.id, request.extensions(), self.0.ipv6_prefix).map_err(status)?;
        let said = self.0.get_override(&asked.account).await.map_err(status)?;
        Ok(Response::new(said.into()))
    }

    async fn put(&self, request: Request<PutOverrideRequest>) -> Result<Response<Override>, Status> {
        let wire = request.get_ref();
        let read = || {
            let asked = asked(wire.kind(), &wire.id, request.extensions(), self.0.ipv6_prefix)?;
            let word = override_word(wire.word)?;
            let lasts = wire.expires_in.as_ref().map(|wire| duration(wire, "expires_in")).transpose()?;
            PutOverride::new(asked, word, &wire.reason, ("expires_in", lasts))
        };
        let said = self.0.put_override(read().map_err(status)?).await.map_err(status)?;
        Ok(Response::new(said.into()))
    }

    async fn delete(
        &self,
        request: Request<DeleteOverrideRequest>,
    ) -> Result<Response<DeleteOverrideResponse>, Status> {
        let wire = request.get_ref();
        let asked = asked(wire.kind(), &wire.id, request.extensions(), self.0.ipv6_prefix).map_err(status)?;
        self.0.delete_override(asked).await.map_err(status)?;
        Ok(Response::new(DeleteOverrideResponse {}))
    }
}

fn asked(kind: v1::Kind, id: &str, of: &Extensions, prefix: Ipv6Prefix) -> Result<OverrideRequest, Invalid> {
    OverrideRequest::new(kind.try_into()?, id, prefix, author(of))
}

impl From<OverrideStanding> for Override {
    fn from(said: OverrideStanding) -> Self {
        let origin = match said.origin {
            OverrideOrigin::Api => v1::r#override::Origin::Api,
            OverrideOrigin::File => v1::r#override::Origin::File,
        };
        Self {
            kind: v1::Kind::from(said.account.kind()).into(),
            id: said.account.id().to_owned(),
            word: Some(wire_override_word(&said.word)),
            reason: said.reason.into(),
            author: said.author.into(),
            origin: origin.into(),
            expires_in: said.expires_in.map(wire_duration),
        }
    }
}
