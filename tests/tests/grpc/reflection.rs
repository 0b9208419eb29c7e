//! What a client learns from the server alone is enough to call it.

use std::collections::BTreeSet;

use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, ReflectMessage as _, Value};
use prost_types::FileDescriptorProto;
use quota_tests::server::{Clients, MEMORY, TestServer};
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Code, Status};
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1alpha;

/// The first answer; none where the server ends the conversation.
async fn ask(clients: &Clients, question: MessageRequest) -> Result<Option<MessageResponse>, Status> {
    let question = ServerReflectionRequest { host: String::new(), message_request: Some(question) };
    let mut client = ServerReflectionClient::new(clients.channel.clone());
    let mut answers = client.server_reflection_info(tokio_stream::once(question)).await?.into_inner();
    Ok(answers.message().await?.and_then(|answer| answer.message_response))
}

async fn file(clients: &Clients, question: MessageRequest) -> FileDescriptorProto {
    let Some(MessageResponse::FileDescriptorResponse(answer)) = ask(clients, question).await.unwrap() else {
        panic!("no file")
    };
    FileDescriptorProto::decode(&*answer.file_descriptor_proto[0]).unwrap()
}

/// All that is needed to call a service.
async fn learn(clients: &Clients, service: &str) -> DescriptorPool {
    let mut files = vec![file(clients, MessageRequest::FileContainingSymbol(service.to_owned())).await];
    let mut missing = files[0].dependency.clone();
    while let Some(name) = missing.pop() {
        if !files.iter().any(|file| file.name() == name) {
            let imported = file(clients, MessageRequest::FileByFilename(name)).await;
            missing.extend(imported.dependency.iter().cloned());
            files.push(imported);
        }
    }
    let mut pool = DescriptorPool::new();
    pool.add_file_descriptor_protos(files).unwrap();
    pool
}

/// Messages of which only the description is known.
struct Described(MessageDescriptor);

impl Codec for Described {
    type Encode = DynamicMessage;
    type Decode = DynamicMessage;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self(self.0.clone())
    }

    fn decoder(&mut self) -> Self {
        Self(self.0.clone())
    }
}

impl Encoder for Described {
    type Item = DynamicMessage;
    type Error = Status;

    fn encode(&mut self, message: DynamicMessage, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        message.encode(buffer).map_err(|error| Status::internal(error.to_string()))
    }
}

impl Decoder for Described {
    type Item = DynamicMessage;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<DynamicMessage>, Status> {
        let message = DynamicMessage::decode(self.0.clone(), buffer);
        message.map(Some).map_err(|error| Status::internal(error.to_string()))
    }
}

#[tokio::test]
async fn services_are_listed_in_both_versions() {
    let server = TestServer::start(MEMORY, "").await;
    let expected = ["grpc.health.v1.Health", "quota.v1.QuotaService"];
    let Some(MessageResponse::ListServicesResponse(listed)) =
        ask(&server, MessageRequest::ListServices(String::new())).await.unwrap()
    else {
        panic!("no list")
    };
    let listed: BTreeSet<String> = listed.service.into_iter().map(|service| service.name).collect();
    assert!(expected.iter().all(|name| listed.contains(*name)), "{listed:?}");

    let question = v1alpha::server_reflection_request::MessageRequest::ListServices(String::new());
    let question = v1alpha::ServerReflectionRequest { host: String::new(), message_request: Some(question) };
    let mut client = v1alpha::server_reflection_client::ServerReflectionClient::new(server.channel.clone());
    let mut answers = client.server_reflection_info(tokio_stream::once(question)).await.unwrap().into_inner();
    let answer = answers.message().await.unwrap().unwrap().message_response.unwrap();
    let v1alpha::server_reflection_response::MessageResponse::ListServicesResponse(listed) = answer else {
        panic!("no list")
    };
    let listed: BTreeSet<String> = listed.service.into_iter().map(|service| service.name).collect();
    assert!(expected.iter().all(|name| listed.contains(*name)), "{listed:?}");
}

#[tokio::test]
async fn check_can_be_called_by_what_is_learnt() {
    let server = TestServer::start(MEMORY, "").await;
    let pool = learn(&server, "quota.v1.QuotaService").await;
    let service = pool.get_service_by_name("quota.v1.QuotaService").unwrap();
    let check = service.methods().find(|method| method.name() == "Check").unwrap();

    let mut request = DynamicMessage::new(check.input());
    let field = request.descriptor().get_field_by_name("accounts").unwrap();
    let mut accounts = DynamicMessage::new(field.kind().as_message().unwrap().clone());
    accounts.set_field_by_name("user", Value::String("alice".to_owned()));
    request.set_field(&field, Value::Message(accounts));

    let mut grpc = tonic::client::Grpc::new(server.channel.clone());
    grpc.ready().await.unwrap();
    let path =
        http::uri::PathAndQuery::try_from(format!("/{}/{}", service.full_name(), check.name())).unwrap();
    let answer = grpc.unary(tonic::Request::new(request), path, Described(check.output())).await;
    let answer = answer.unwrap().into_inner();

    let field = answer.descriptor().get_field_by_name("decision").unwrap();
    let allow = field.kind().as_enum().unwrap().get_value_by_name("DECISION_ALLOW").unwrap();
    assert_eq!(answer.get_field(&field).as_enum_number(), Some(allow.number()));
    assert_eq!(answer.get_field_by_name("checked").unwrap().as_bool(), Some(true));
}

#[tokio::test]
async fn what_is_not_there_is_not_found_and_what_is_too_long_is_not_read() {
    let server = TestServer::start(MEMORY, "").await;
    let unknown = MessageRequest::FileContainingSymbol("quota.v1.Other".to_owned());
    assert_eq!(ask(&server, unknown).await.unwrap_err().code(), Code::NotFound);
    let long = MessageRequest::FileContainingSymbol("x".repeat(1 << 20));
    assert!(!matches!(ask(&server, long).await, Ok(Some(_))));
    assert!(matches!(ask(&server, MessageRequest::ListServices(String::new())).await, Ok(Some(_))));
}
