//! Who changes something is its author, over both protocols.

use quota_proto::v1::mode_service_client::ModeServiceClient;
use quota_proto::v1::override_service_client::OverrideServiceClient;
use quota_proto::v1::{Kind, Mode, OverrideWord, PutModeRequest, PutOverrideRequest, override_word};
use reqwest::Method;
use serde_json::json;

use crate::grpc::with_token;
use crate::tokens::{server, token};

#[tokio::test]
async fn over_http_it_is_the_name_of_the_token() {
    let server = server().await;
    let http = server.http.with_token(token("admin"));
    for (path, body) in [
        ("/v1/overrides/user/alice", json!({ "exempt": true, "reason": "why" })),
        ("/v1/modes", json!({ "mode": "shadow", "reason": "why" })),
    ] {
        let answer = http.request(Method::PUT, path, body.to_string()).await;
        assert_eq!(answer.json()["author"], "admin", "{}", answer.text());
    }
}

#[tokio::test]
async fn over_grpc_it_is_the_name_of_the_token() {
    let server = server().await;
    let (mut overrides, mut modes) =
        (OverrideServiceClient::new(server.channel.clone()), ModeServiceClient::new(server.channel.clone()));
    let put = PutOverrideRequest {
        kind: Kind::User.into(),
        id: "alice".to_owned(),
        word: Some(OverrideWord { word: Some(override_word::Word::Exempt(true)) }),
        reason: "why".to_owned(),
        ..PutOverrideRequest::default()
    };
    let said = overrides.put(with_token(put, Some(token("admin")))).await.unwrap();
    assert_eq!(said.into_inner().author, "admin");
    let put =
        PutModeRequest { mode: Mode::Shadow.into(), reason: "why".to_owned(), ..PutModeRequest::default() };
    let said = modes.put(with_token(put, Some(token("admin")))).await.unwrap();
    assert_eq!(said.into_inner().author, "admin");
}
