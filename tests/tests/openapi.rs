//! The OpenAPI document and the server say the same, in both directions. The table in `wire/` holds every answer to it.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

use quota_tests::openapi::{DOCUMENT, faults, judge, resolved};
use quota_tests::redis::RedisServer;
use quota_tests::server::{MEMORY, TestServer};
use reqwest::Method;
use serde_json::{Map, Value, json};

const METHODS: [Method; 6] =
    [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS];

fn paths() -> impl Iterator<Item = (&'static String, &'static Value)> {
    DOCUMENT["paths"].as_object().unwrap().iter()
}

/// A path with the document's examples as its parameters and query.
fn filled(path: &str, operation: &Value) -> String {
    let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |json: &Value| json.as_str().map_or_else(|| json.to_string(), str::to_owned);
    let (mut filled, mut query) = (path.to_owned(), Vec::new());
    for parameter in parameters.iter().map(resolved).filter(|parameter| parameter.get("example").is_some()) {
        let (name, example) = (parameter["name"].as_str().unwrap(), text(&parameter["example"]));
        match parameter["in"].as_str().unwrap() {
            "path" => filled = filled.replace(&format!("{{{name}}}"), &example),
            "query" => query.push(format!("{name}={example}")),
            other => panic!("{path}: a parameter in {other}"),
        }
    }
    assert!(!filled.contains('{'), "{filled}: a parameter is not in the document");
    if query.is_empty() { filled } else { format!("{filled}?{}", query.join("&")) }
}

fn example(operation: &Value) -> Option<&Value> {
    operation["requestBody"]["content"]["application/json"].get("example")
}

#[tokio::test]
async fn it_is_served_as_it_is_written() {
    let server = TestServer::start(MEMORY, "").await;
    let answer = server.http.get("/openapi.json").await;
    judge("get", "/openapi.json", None, &answer);
    assert_eq!(answer.json(), *DOCUMENT);
    assert!(DOCUMENT["openapi"].as_str().unwrap().starts_with("3.1."));
}

#[tokio::test]
async fn each_path_answers_to_the_methods_of_the_document_and_to_no_other() {
    let server = TestServer::start(MEMORY, "").await;
    // The node whose name is the example tells its pressure, so that there is one of that name.
    let pressure = example(&DOCUMENT["paths"]["/v1/pressure"]["post"]).unwrap();
    assert_eq!(server.http.post("/v1/pressure", pressure).await.status, 200);
    // And something is said of the account whose name is one, as long as it is asked about.
    let overrides = &DOCUMENT["paths"]["/v1/overrides/{kind}/{id}"];
    let said = example(&overrides["put"]).unwrap().to_string();
    let put =
        server.http.request(Method::PUT, &filled("/v1/overrides/{kind}/{id}", &overrides["put"]), said).await;
    assert_eq!(put.status, 200);
    for (path, operations) in paths() {
        for method in METHODS {
            let name = method.as_str().to_lowercase();
            let body = example(&operations[&name]);
            // A path without its query, where there is nothing of this method to take it from.
            let any = operations.as_object().unwrap().values().next().unwrap();
            let target = filled(path, operations.get(&name).unwrap_or(any));
            let text = body.map(Value::to_string).unwrap_or_default();
            let answer = server.http.request(method, &target, text).await;
            if operations.get(&name).is_some() {
                let done = if name == "delete" { 204 } else { 200 };
                assert_eq!(answer.status, done, "{name} {target}: {}", answer.text());
                judge(&name, path, body, &answer);
            } else {
                assert_eq!(answer.status, 405, "{name} {target} is answered, and not in the document");
            }
        }
    }
}

#[tokio::test]
async fn what_is_answered_without_a_store_is_in_it_too() {
    const NEED_NO_STORE: [&str; 5] =
        ["/v1/denials/stream", "/v1/prices", "/metrics", "/healthz", "/openapi.json"];
    let mut redis = RedisServer::start().await;
    let server = TestServer::start(&redis.url(), "store.fail = \"closed\"\nclasses.ci.slots = 1\n").await;
    redis.kill().await;
    for (path, operations) in paths() {
        for (name, operation) in operations.as_object().unwrap() {
            let (method, target) =
                (Method::from_bytes(name.to_uppercase().as_bytes()), filled(path, operation));
            let body = example(operation);
            let text = body.map(Value::to_string).unwrap_or_default();
            let answer = server.http.request(method.unwrap(), &target, text).await;
            assert_eq!(answer.status == 200, NEED_NO_STORE.contains(&path.as_str()), "{path}: {answer:?}");
            judge(name, path, body, &answer);
        }
    }
}

#[test]
fn its_examples_are_as_its_schemas_say() {
    let mut judged = 0;
    for (path, operations) in paths() {
        for operation in operations.as_object().unwrap().values() {
            let responses = operation["responses"].as_object().unwrap().values();
            for body in responses.chain([&operation["requestBody"]]) {
                let contents = body["content"].as_object().into_iter().flat_map(|content| content.values());
                for content in contents.filter(|content| content.get("example").is_some()) {
                    assert_eq!(faults(&content["schema"], &content["example"]), [""; 0], "{path}");
                    judged += 1;
                }
            }
        }
    }
    assert!(judged >= 9, "{judged} examples");
}

/// Else what is said of answers would be said by nobody.
#[tokio::test]
async fn what_is_forgotten_added_or_of_another_type_is_noticed() {
    let server = TestServer::start(MEMORY, "").await;
    let check = json!({ "accounts": { "user": "alice" } });
    let allowed = server.http.post("/v1/check", &check).await.json();
    let schema = json!({ "$ref": "#/components/schemas/Allowed" });
    assert_eq!(faults(&schema, &allowed), [""; 0]);
    for (pointer, member) in
        [("", "checked"), ("/standings/0", "over"), ("/standings/0/resources/cpu", "mode")]
    {
        let assert_noticed = |what: &str, change: &dyn Fn(&mut Map<String, Value>)| {
            let mut changed = allowed.clone();
            change(changed.pointer_mut(pointer).unwrap().as_object_mut().unwrap());
            assert_ne!(faults(&schema, &changed), [""; 0], "{member} {what}");
        };
        assert_noticed("is left out", &|members| drop(members.shift_remove(member)));
        assert_noticed("has a neighbour", &|members| drop(members.insert("novel".into(), 1.into())));
        assert_noticed("is a list", &|members| drop(members.insert(member.into(), json!([]))));
    }
    let request = json!({ "$ref": "#/components/schemas/CheckRequest" });
    assert_eq!(faults(&request, &check), [""; 0]);
    assert_ne!(faults(&request, &json!({ "accounts": {} })), [""; 0]);
    assert_ne!(faults(&request, &json!({ "accounts": { "user": "alice" }, "novel": 1 })), [""; 0]);
}
