//! Calls of methods of which the path alone is known.

use http::uri::PathAndQuery;
use prost::Message as _;
use prost_types::FileDescriptorSet;
use quota_tests::server::Clients;
use tonic::metadata::MetadataValue;
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

/// Every method of every service that the server has, as its path.
pub(crate) fn methods() -> Vec<String> {
    let mut methods = Vec::new();
    for set in [
        quota_proto::FILE_DESCRIPTOR_SET,
        tonic_health::pb::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
    ] {
        for file in FileDescriptorSet::decode(set).unwrap().file {
            for service in &file.service {
                let service_name = format!("{}.{}", file.package(), service.name());
                methods
                    .extend(service.method.iter().map(|method| format!("/{service_name}/{}", method.name())));
            }
        }
    }
    methods
}

pub(crate) fn with_token<T>(message: T, token: Option<&str>) -> Request<T> {
    let mut request = Request::new(message);
    if let Some(token) = token {
        let value = MetadataValue::try_from(format!("Bearer {token}")).unwrap();
        request.metadata_mut().insert("authorization", value);
    }
    request
}

/// Sends one empty message. What is answered is not read.
pub(crate) async fn call(clients: &Clients, path: &str, token: Option<&str>) -> Result<(), Status> {
    let mut grpc = tonic::client::Grpc::new(clients.channel.clone());
    grpc.ready().await.unwrap();
    let request = with_token(tokio_stream::once(()), token);
    let path = PathAndQuery::try_from(path).unwrap();
    grpc.streaming(request, path, ProstCodec::<(), ()>::default()).await.map(drop)
}
