use axum::http::HeaderName;
use axum::http::header::CONTENT_TYPE;

/// The interface in words that programs understand (OpenAPI 3.1).
const DOCUMENT: &str = include_str!("../../openapi.json");

pub(super) async fn openapi() -> ([(HeaderName, &'static str); 1], &'static str) {
    ([(CONTENT_TYPE, "application/json")], DOCUMENT)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use serde_json::Value;

    use super::*;
    use crate::auth::Access;
    use crate::http::routes;

    fn document() -> Value {
        serde_json::from_str(DOCUMENT).unwrap()
    }

    /// Every object in it, with its pointer.
    fn objects(json: &Value, pointer: &str, found: &mut Vec<(String, Value)>) {
        match json {
            Value::Object(members) => {
                found.push((pointer.to_owned(), json.clone()));
                for (name, member) in members {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    objects(member, &format!("{pointer}/{name}"), found);
                }
            }
            Value::Array(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    objects(element, &format!("{pointer}/{index}"), found);
                }
            }
            _ => {}
        }
    }

    fn all_objects() -> BTreeMap<String, Value> {
        let mut found = Vec::new();
        objects(&document(), "", &mut found);
        found.into_iter().collect()
    }

    #[test]
    fn it_has_the_paths_of_the_router_and_no_others() {
        // What takes the rest of the path is written otherwise there.
        let routed: BTreeSet<String> =
            routes().into_iter().map(|route| route.path.replace("{*", "{")).collect();
        let document = document();
        let documented = document["paths"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(routed, documented);
    }

    #[test]
    fn it_tells_which_role_each_route_takes() {
        let document = document();
        for route in routes() {
            let path = route.path.replace("{*", "{");
            let operation = &document["paths"][path][route.method.as_str().to_lowercase()];
            let told = operation["security"][0]["token"][0].as_str();
            let needed = match Access::of_route(route.method.as_str(), route.path).unwrap() {
                Access::Open => None,
                Access::Least(role) => Some(role.as_str()),
            };
            assert_eq!(told, needed, "{} {}", route.method, route.path);
            let answers = ["401", "403"].map(|status| operation["responses"].get(status).is_some());
            assert_eq!(answers, [needed.is_some(); 2], "{} {}", route.method, route.path);
        }
    }

    #[test]
    fn it_is_of_this_version() {
        assert_eq!(document()["info"]["version"], env!("CARGO_PKG_VERSION"));
    }

    #[test]
    fn whatever_it_refers_to_is_there() {
        let document = document();
        for (at, object) in all_objects() {
            if let Some(Value::String(reference)) = object.get("$ref") {
                let pointer = reference.strip_prefix('#').unwrap();
                assert!(document.pointer(pointer).is_some(), "{at}: {reference}");
            }
        }
    }

    #[test]
    fn every_field_parameter_header_and_answer_is_described() {
        let described = |object: &Value| object["description"].as_str().is_some_and(|text| !text.is_empty());
        let document = document();
        let is_told = |object: &Value| {
            let referred = object["$ref"].as_str().and_then(|text| document.pointer(text.strip_prefix('#')?));
            described(object) || referred.is_some_and(described)
        };
        let mut fields = 0;
        for (at, object) in all_objects() {
            let parent = at.rsplit('/').nth(1).unwrap_or_default();
            let is_parameter = parent == "parameters" && object.get("in").is_some();
            if matches!(parent, "properties" | "headers" | "responses") || is_parameter {
                assert!(is_told(&object), "{at} is not described");
                fields += 1;
            }
        }
        assert!(fields > 100, "{fields} alone were looked at");
    }
}
