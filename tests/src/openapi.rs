//! The OpenAPI document of the server, as a judge of requests and answers.

use std::collections::HashMap;
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::http::Answer;

/// The document.
pub static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../quota-server/openapi.json")).expect("a document in JSON")
});

/// Headers that an answer has only where the document says so.
const HEADERS: [&str; 5] =
    ["Retry-After", "Cache-Control", "RateLimit-Policy", "RateLimit", "WWW-Authenticate"];

/// What judges each schema of the document. Answers may gain fields for clients; here each must be in the document.
static SCHEMAS: LazyLock<HashMap<String, Validator>> = LazyLock::new(|| {
    let mut components = DOCUMENT["components"].clone();
    close(&mut components);
    let names = components["schemas"].as_object().expect("schemas").keys();
    let judge = |name: &String| {
        let schema = json!({ "$ref": format!("#/components/schemas/{name}"), "components": components });
        let judge = jsonschema::draft202012::new(&schema);
        (name.clone(), judge.unwrap_or_else(|error| panic!("{name}: {error}")))
    };
    names.map(judge).collect()
});

/// Judges an exchange on a path of the document, such as `/v1/nodes/{node}`: the answer, and the body of a request that
/// was not refused.
///
/// # Panics
///
/// Panics with whatever is not as the document says.
pub fn judge(method: &str, path: &str, body: Option<&Value>, answer: &Answer) {
    let what = format!("{method} {path}, {}", answer.status);
    let operation = &DOCUMENT["paths"][path][method];
    let documented = resolved(&operation["responses"][answer.status.to_string()]);
    assert!(documented.is_object(), "{what}: not in the document: {answer:?}");
    judge_headers(documented, answer, &what);
    let Some(contents) = documented["content"].as_object() else {
        assert_eq!(answer.text(), "", "{what}");
        return;
    };
    let (media_type, content) = contents.iter().next().expect("one");
    assert_eq!(answer.header("content-type"), Some(media_type.as_str()), "{what}");
    if media_type.ends_with("json") {
        assert_eq!(faults(&content["schema"], &answer.json()), [""; 0], "{what}: {}", answer.text());
    }
    if let Some(body) = body.filter(|_| !matches!(answer.status, 400 | 413)) {
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        assert_eq!(faults(schema, body), [""; 0], "{what}: taken, and not in the document: {body}");
    }
}

/// What in a value is not as a schema of the document says.
pub fn faults(schema: &Value, value: &Value) -> Vec<String> {
    let name = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix("#/components/schemas/"));
    let fault = |error: jsonschema::ValidationError<'_>| format!("{}: {error}", error.instance_path());
    match name {
        Some(name) => SCHEMAS[name].iter_errors(value).map(fault).collect(),
        None => {
            jsonschema::draft202012::new(schema).expect("a schema").iter_errors(value).map(fault).collect()
        }
    }
}

fn judge_headers(documented: &Value, answer: &Answer, what: &str) {
    for name in HEADERS {
        let header = resolved(&documented["headers"][name]);
        match answer.header(name) {
            Some(_) => assert!(header.is_object(), "{what}: {name} is not in the document"),
            None => assert_ne!(header["required"], true, "{what}: {name} is missing"),
        }
    }
}

/// What is meant where the document refers to another place of it.
pub fn resolved(json: &Value) -> &Value {
    let pointer = json["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    pointer.map_or(json, |pointer| DOCUMENT.pointer(pointer).expect("what is referred to"))
}

/// Lets objects have no other members than those that are named.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(close);
            if members.contains_key("properties") {
                members.entry("additionalProperties").or_insert(false.into());
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(close),
        _ => {}
    }
}
