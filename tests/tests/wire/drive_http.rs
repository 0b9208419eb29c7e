//! Requests and answers in the words of HTTP and JSON, and what each answer must have whatever it says.

use std::time::Duration;

use quota_tests::http::{self, Http};
use quota_tests::openapi::judge;
use reqwest::Method;
use serde_json::{Value, json};

use crate::answer::{
    Answer, Breach, Class, Consumer, DenialCount, Limits, ModeSetting, Node, Override, Seen, Standing,
};
use crate::request::{
    Amounts, Carried, Charge, Check, Denials, Finished, Heavy, Named, Names, Place, Pressure, PutMode,
    PutOverride, Report, Request, Top, Word,
};

pub(crate) async fn send(http: &Http, request: &Request, last: Option<&str>) -> Seen {
    match request {
        Request::Check(check) => read(post(http, "/v1/check", &check_body(check)).await, checked),
        Request::Report(report) => {
            read(post(http, "/v1/report", &report_body(report, last)).await, |answer| {
                let body = answer.json();
                let count = |name: &str| body[name].as_u64().unwrap();
                let duplicate = body["duplicate"].as_bool().unwrap();
                let (applied, dropped_old) = (count("applied"), count("dropped_old"));
                Answer::Reported { applied, dropped_old, duplicate }.into()
            })
        }
        Request::Standing { kind, id } => {
            let answer = http.account(kind, id).await;
            judge("get", "/v1/accounts/{kind}/{id}", None, &answer);
            read(answer, |answer| {
                let (standing, exact) = standing(&answer.json());
                Seen { exact, ..Answer::Standing(standing).into() }
            })
        }
        Request::Backoff { accounts, attempt } => {
            let attempt = attempt.to_string();
            let params: Vec<(&str, &str)> =
                names(accounts).into_iter().chain([("attempt", attempt.as_str())]).collect();
            let answer = http.query("/v1/backoff", &params).await;
            judge("get", "/v1/backoff", None, &answer);
            read(answer, backoff)
        }
        Request::Backoffs(sets) => {
            let set = |(names, attempt): &(Names, u32)| {
                let mut body = accounts(names);
                body["attempt"] = (*attempt).into();
                body
            };
            let body = json!({ "requests": sets.iter().map(set).collect::<Vec<_>>() });
            read(post(http, "/v1/backoff", &body).await, |answer| {
                assert_eq!((answer.header("retry-after"), answer.header("cache-control")), (None, None));
                Seen::each(answer.json()["results"].as_array().unwrap().iter().map(backing_off).collect())
            })
        }
        Request::Pressure(pressure) => {
            read(post(http, "/v1/pressure", &pressure_body(pressure)).await, pressured)
        }
        Request::Nodes(None) => {
            let answer = http.get("/v1/nodes").await;
            judge("get", "/v1/nodes", None, &answer);
            read(answer, |answer| {
                Answer::Nodes(answer.json()["nodes"].as_array().unwrap().iter().map(node).collect()).into()
            })
        }
        Request::Nodes(Some(name)) => {
            let answer = http.get(&format!("/v1/nodes/{name}")).await;
            judge("get", "/v1/nodes/{node}", None, &answer);
            if answer.status == 404 {
                assert_problem(&answer);
                return Answer::Nodes(Vec::new()).into();
            }
            read(answer, |answer| Answer::Nodes(vec![node(&answer.json())]).into())
        }
        Request::Top(Top { kind, resource, node, limit }) => {
            let limit = limit.map(|limit| limit.to_string());
            let params =
                [("kind", Some(*kind)), ("resource", Some(*resource)), ("node", Some(node.as_str()))];
            let answer =
                query(http, "/v1/top", params.into_iter().chain([("limit", limit.as_deref())])).await;
            read(answer, top)
        }
        Request::Denials(Denials { since_seconds, kind, limit }) => {
            let (since, limit) =
                (since_seconds.map(|since| since.to_string()), limit.map(|limit| limit.to_string()));
            let params =
                [("since_seconds", since.as_deref()), ("kind", Some(kind)), ("limit", limit.as_deref())];
            read(query(http, "/v1/denials", params).await, denials)
        }
        Request::PutOverride(put) => {
            let body = override_body(put);
            let answer = http.account_override(Method::PUT, put.of.kind, &put.of.id, &body.to_string()).await;
            judge("put", OVERRIDE, Some(&body), &answer);
            read(answer, |answer| Answer::Override(override_of(&answer.json())).into())
        }
        Request::GetOverride(Named { kind, id }) => {
            let answer = http.account_override(Method::GET, kind, id, "").await;
            judge("get", OVERRIDE, None, &answer);
            read(answer, |answer| Answer::Override(override_of(&answer.json())).into())
        }
        Request::DeleteOverride(Named { kind, id }) => {
            let answer = http.account_override(Method::DELETE, kind, id, "").await;
            judge("delete", OVERRIDE, None, &answer);
            if answer.status == 204 {
                return Answer::Deleted.into();
            }
            read(answer, |answer| panic!("{answer:?}"))
        }
        Request::PutMode(put) => {
            let body = mode_body(put);
            let answer = http.request(Method::PUT, "/v1/modes", body.to_string()).await;
            judge("put", "/v1/modes", Some(&body), &answer);
            read(answer, |answer| Answer::Mode(mode_of(&answer.json())).into())
        }
        Request::DeleteMode(Place { node, kind }) => {
            let named: Vec<_> = [("node", node.as_str()), ("kind", *kind)]
                .into_iter()
                .filter(|(_, name)| !name.is_empty())
                .map(|(parameter, name)| format!("{parameter}={}", name.replace(' ', "%20")))
                .collect();
            let answer = http.request(Method::DELETE, &format!("/v1/modes?{}", named.join("&")), "").await;
            judge("delete", "/v1/modes", None, &answer);
            if answer.status == 204 {
                return Answer::Deleted.into();
            }
            read(answer, |answer| panic!("{answer:?}"))
        }
        Request::ListModes => {
            let answer = http.get("/v1/modes").await;
            judge("get", "/v1/modes", None, &answer);
            read(answer, |answer| {
                Answer::Modes(answer.json()["modes"].as_array().unwrap().iter().map(mode_of).collect()).into()
            })
        }
        Request::ListOverrides => {
            let answer = http.get("/v1/overrides").await;
            judge("get", "/v1/overrides", None, &answer);
            read(answer, |answer| {
                let overrides =
                    answer.json()["overrides"].as_array().unwrap().iter().map(override_of).collect();
                Answer::Overrides(overrides).into()
            })
        }
    }
}

const OVERRIDE: &str = "/v1/overrides/{kind}/{id}";

fn override_body(put: &PutOverride) -> Value {
    let mut body = json!({ "reason": put.reason });
    match put.word {
        Word::Nothing => {}
        Word::Weight(thousandths) => body["weight"] = (f64::from(thousandths) / 1000.0).into(),
        Word::Cpu(micros) => body["limits"] = json!({ "cpu": format!("{micros}us") }),
        Word::Exempt => body["exempt"] = true.into(),
        Word::Blocked => body["blocked"] = true.into(),
    }
    if let Some(seconds) = put.expires_in_seconds {
        body["expires_in_seconds"] = seconds.into();
    }
    body
}

fn mode_body(PutMode { of: Place { node, kind }, mode, reason }: &PutMode) -> Value {
    let mut body = json!({ "mode": mode, "reason": reason });
    for (member, name) in [("node", node.as_str()), ("kind", kind)] {
        if !name.is_empty() {
            body[member] = name.into();
        }
    }
    body
}

fn mode_of(json: &Value) -> ModeSetting {
    let text = |name: &str| json.get(name).map_or_else(String::new, |text| text.as_str().unwrap().to_owned());
    assert!(json["since_seconds"].as_f64().unwrap() >= 0.0, "{json}");
    ModeSetting {
        node: text("node"),
        kind: text("kind"),
        mode: text("mode"),
        reason: text("reason"),
        author: text("author"),
    }
}

fn override_of(json: &Value) -> Override {
    let text = |name: &str| json[name].as_str().unwrap().to_owned();
    let seconds = |text: &str| text.strip_suffix('s').unwrap().parse::<u64>().unwrap();
    let words = [
        json.get("weight").map(|weight| Word::Weight((weight.as_f64().unwrap() * 1000.0).round() as u32)),
        json.get("limits").map(|limits| {
            assert_eq!(limits.as_object().unwrap().len(), 1, "{limits}");
            Word::Cpu(seconds(limits["cpu"].as_str().unwrap()) * 1_000_000)
        }),
        (json.get("exempt") == Some(&true.into())).then_some(Word::Exempt),
        (json.get("blocked") == Some(&true.into())).then_some(Word::Blocked),
    ];
    let words: Vec<Word> = words.into_iter().flatten().collect();
    assert_eq!(words.len(), 1, "{json}");
    Override {
        kind: text("kind"),
        id: text("id"),
        word: words[0],
        reason: text("reason"),
        author: text("author"),
        origin: text("origin"),
        expires: json.get("expires_in_seconds").is_some_and(|left| left.as_f64().unwrap() > 0.0),
    }
}

/// Asks with those parameters that are not empty, and holds the answer to the OpenAPI document.
async fn query(
    http: &Http,
    path: &str,
    params: impl IntoIterator<Item = (&str, Option<&str>)>,
) -> http::Answer {
    let given = |(name, value): (_, Option<_>)| Some((name, value.filter(|value: &&str| !value.is_empty())?));
    let params: Vec<_> = params.into_iter().filter_map(given).collect();
    let answer = http.query(path, &params).await;
    judge("get", path, None, &answer);
    answer
}

fn top(answer: &http::Answer) -> Seen {
    let body = answer.json();
    let asked = ["kind", "resource", "node"].map(|name| body[name].as_str().unwrap_or_default().to_owned());
    let consumer = |json: &Value| Consumer {
        kind: json["kind"].as_str().unwrap().to_owned(),
        id: json["id"].as_str().unwrap().to_owned(),
        used: amount(&asked[1], &json["used"]),
        limit: limit(&asked[1], &json["limit"]),
        denied: json["denied"].as_u64().unwrap(),
    };
    let accounts = body["accounts"].as_array().unwrap().iter().map(consumer).collect();
    Answer::Top(asked, accounts).into()
}

fn denials(answer: &http::Answer) -> Seen {
    let body = answer.json();
    let denial = |json: &Value| {
        assert!(json["last_seconds_ago"].as_f64().is_some_and(|ago| ago >= 0.0), "{json}");
        let text = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
        DenialCount {
            kind: text("kind"),
            id: text("id"),
            resource: text("resource"),
            rpc: text("rpc"),
            mode: text("mode"),
            count: json["count"].as_u64().unwrap(),
        }
    };
    let denials = body["denials"].as_array().unwrap().iter().map(denial).collect();
    Answer::Denials(body["since_seconds"].as_f64().unwrap(), denials, body["missed"].as_u64().unwrap()).into()
}

/// Sends a body, and holds it and its answer to the OpenAPI document.
pub(crate) async fn post(http: &Http, path: &str, body: &Value) -> http::Answer {
    let answer = http.post(path, body).await;
    judge("post", path, Some(body), &answer);
    answer
}

fn read(answer: http::Answer, success: impl FnOnce(&http::Answer) -> Seen) -> Seen {
    if answer.status == 200 {
        assert_eq!(answer.header("content-type"), Some("application/json"));
        return success(&answer);
    }
    assert_problem(&answer);
    let class = match answer.status {
        429 => return denied(&answer),
        400 => Class::Invalid,
        404 => Class::NotFound,
        413 => Class::TooLarge,
        503 => Class::Unavailable,
        500 if answer.text().contains("corrupt-account") => Class::Corrupt,
        _ => panic!("{answer:?}"),
    };
    let field = answer.field().unwrap_or_default().replace("_seconds", "");
    Answer::Refused { class, field }.into()
}

/// What every answer has that is no success (RFC 9457).
pub(crate) fn assert_problem(answer: &http::Answer) {
    assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{answer:?}");
    let body = answer.json();
    assert_eq!(body["status"], answer.status, "{body}");
    for member in ["type", "title"] {
        assert!(body[member].as_str().is_some_and(|text| !text.is_empty()), "no {member} in {body}");
    }
}

fn checked(answer: &http::Answer) -> Seen {
    let body = answer.json();
    assert_eq!(body["decision"], "allow");
    let reservation = body.get("reservation").map(|text| text.as_str().unwrap().to_owned());
    let (standings, exact) = standings(&body);
    let answer = Answer::Allow {
        reserved: amounts(&body["reserved"]),
        reservation: reservation.is_some(),
        checked: body["checked"].as_bool().unwrap(),
        shadow: body.get("shadow").map(breach),
        share: body.get("share").map(share),
        standings,
    };
    Seen { exact, reservation, ..answer.into() }
}

/// It has a reservation of its own.
fn share(body: &Value) -> (Amounts, Duration) {
    assert!(body["reservation"].as_str().unwrap().starts_with("r1."), "{body}");
    (amounts(&body["amounts"]), Duration::from_secs_f64(body["lasts_seconds"].as_f64().unwrap()))
}

fn denied(answer: &http::Answer) -> Seen {
    let body = answer.json();
    assert_eq!(body["decision"], "deny");
    let (standings, exact) = standings(&body);
    let permanent = body["permanent"].as_bool().unwrap();
    let wait = Some(retry_after(answer));
    let answer = Answer::Deny { denied_by: breach(&body["denied_by"]), permanent, standings };
    Seen { wait, exact, ..answer.into() }
}

/// It may be kept for no longer than it says to wait.
fn backoff(answer: &http::Answer) -> Seen {
    let body = answer.json();
    let kept = match body["action"].as_str().unwrap() {
        "proceed" => {
            assert_eq!(answer.header("retry-after"), None);
            0
        }
        "retry" => retry_after(answer).as_secs(),
        "fail" => retry_after(answer).as_secs().min(1),
        other => panic!("{other}"),
    };
    let kept = if kept == 0 { "no-store".to_owned() } else { format!("private, max-age={kept}") };
    assert_eq!(answer.header("cache-control"), Some(&*kept), "{body}");
    backing_off(&body)
}

fn backing_off(body: &Value) -> Seen {
    if body["backoff"] == false {
        assert_eq!(*body, json!({ "backoff": false, "action": "proceed" }));
        return Answer::GoOn.into();
    }
    let permanent = body["permanent"].as_bool().unwrap();
    assert_eq!(body["action"], if permanent { "fail" } else { "retry" });
    let wait = Some(Duration::from_secs_f64(body["retry_after_seconds"].as_f64().unwrap()));
    Seen { wait, ..Answer::BackOff { denied_by: breach(&body["denied_by"]), permanent }.into() }
}

/// The wait in the body, which the header says too, in whole seconds, rounded up, at least 1.
pub(crate) fn retry_after(answer: &http::Answer) -> Duration {
    let seconds = answer.json()["retry_after_seconds"].as_f64().unwrap();
    let header: u64 = answer.header("retry-after").expect("Retry-After").parse().expect("an integer");
    assert_eq!(header, (seconds.ceil() as u64).max(1), "{answer:?}");
    Duration::from_secs_f64(seconds)
}

fn standings(body: &Value) -> (Vec<Standing>, Duration) {
    let (standings, waits): (Vec<_>, Vec<_>) =
        body["standings"].as_array().unwrap().iter().map(standing).unzip();
    (standings, waits.into_iter().max().unwrap_or_default())
}

fn standing(json: &Value) -> (Standing, Duration) {
    let text = |name: &str| json[name].as_str().unwrap().to_owned();
    let resources = &json["resources"];
    let limit = |resource: &str| {
        let resource_json = &resources[resource];
        (limit(resource, &resource_json["limit"]), resource_json["mode"].as_str().unwrap().to_owned())
    };
    let standing = Standing {
        kind: text("kind"),
        id: text("id"),
        over: json["over"].as_bool().unwrap(),
        used: Amounts {
            cpu: amount("cpu", &resources["cpu"]["used"]),
            memory: amount("memory", &resources["memory"]["used"]),
            network: amount("network", &resources["network"]["used"]),
        },
        limits: ["cpu", "memory", "network"].map(limit),
        here: resources["cpu"]
            .get("here")
            .map(|here| (amount("cpu", &here["used"]), amount("cpu", &here["limit"]))),
    };
    (standing, Duration::from_secs_f64(json["retry_after_seconds"].as_f64().unwrap()))
}

fn breach(json: &Value) -> Breach {
    let text = |name: &str| json[name].as_str().unwrap().to_owned();
    let resource = text("resource");
    let (used, limit) = (amount(&resource, &json["used"]), limit(&resource, &json["limit"]));
    Breach { kind: text("kind"), id: text("id"), resource, scope: text("scope"), used, limit }
}

fn pressured(answer: &http::Answer) -> Seen {
    let body = answer.json();
    assert_eq!(body["accounts"], json!([]));
    let node = body["node"].as_str().unwrap().to_owned();
    Answer::Pressured { node, calibrated: body["calibrated"].as_bool().unwrap(), limits: user_limits(&body) }
        .into()
}

fn user_limits(body: &Value) -> Limits {
    ["cpu", "memory", "network"].map(|resource| limit(resource, &body["limits"]["user"][resource]))
}

fn node(json: &Value) -> Node {
    let seconds = |json: &Value| assert!(json.as_f64().is_some_and(|seconds| seconds >= 0.0), "{json}");
    seconds(&json["seen_ago_seconds"]);
    let calibration = json["last_calibrations"].get("cpu").map(|last| {
        seconds(&last["ago_seconds"]);
        let limit = |which| amount("cpu", &last["limits"]["user"][which]);
        let reason = last["reason"].as_str().unwrap().to_owned();
        (reason, last["pressure"].as_f64().unwrap(), limit("old"), limit("new"))
    });
    Node {
        name: json["node"].as_str().unwrap().to_owned(),
        pressure: ["cpu", "memory", "network"].map(|resource| json["pressure"][resource].as_f64()),
        limits: user_limits(json),
        calibration,
        cores: json["capacity"]["cpu"].as_f64().map(|cores| (cores * 1000.0).round() as u64),
        active_users: json["active"]["user"].as_u64(),
    }
}

pub(crate) fn pressure_body(pressure: &Pressure) -> Value {
    let heaviest = pressure.heaviest.iter().map(|Heavy { kind, id, used, recent }| {
        let mut heavy = cost(*used);
        (heavy["kind"], heavy["id"]) = ((*kind).into(), id.as_str().into());
        if let Some(recent) = recent {
            heavy["recent"] = cost(*recent);
        }
        heavy
    });
    let mut body = json!({
        "node": pressure.node,
        "events": if pressure.oom_kill { json!(["oom_kill"]) } else { json!([]) },
        "heaviest": heaviest.collect::<Vec<_>>(),
    });
    for (name, share) in [("cpu", pressure.cpu), ("memory", pressure.memory)] {
        if let Some(share) = share {
            body[name] = share.into();
        }
    }
    if let Some(cores) = pressure.cores {
        body["capacity"]["cpu"] = (cores as f64 / 1000.0).into();
    }
    if let Some(bytes) = pressure.bytes {
        body["capacity"]["memory"] = bytes.into();
    }
    if let Some(users) = pressure.active_users {
        body["active"] = json!({ "user": users });
    }
    body
}

fn limit(resource: &str, json: &Value) -> Option<u64> {
    if json == "unlimited" { None } else { Some(amount(resource, json)) }
}

fn amounts(json: &Value) -> Amounts {
    let of = |resource| amount(resource, &json[resource]);
    Amounts { cpu: of("cpu"), memory: of("memory"), network: of("network") }
}

/// Seconds are decimal, all else is whole.
fn amount(resource: &str, json: &Value) -> u64 {
    match resource {
        "cpu" => (json.as_f64().unwrap() * 1e6).round() as u64,
        _ => json.as_u64().unwrap_or_else(|| panic!("{json} is not whole")),
    }
}

fn check_body(check: &Check) -> Value {
    let mut body = json!({ "accounts": accounts(&check.accounts) });
    for (name, value) in [("node", &check.node), ("rpc", &check.rpc), ("class", &check.class)] {
        if !value.is_empty() {
            body[name] = value.as_str().into();
        }
    }
    if let Some(price) = check.price {
        body["price"] = cost(price);
    }
    if let Some(share) = check.share_wanted {
        body["share_wanted"] = cost(share);
    }
    if let Some(micros) = check.user_used_here {
        body["used_here"] = json!({ "user": { "cpu": micros as f64 / 1e6 } });
    }
    body
}

fn report_body(report: &Report, last: Option<&str>) -> Value {
    let charges: Vec<Value> = report.charges.iter().map(|charge| charge_body(charge, last)).collect();
    let mut body = json!({ "held_seconds": report.held_seconds, "charges": charges });
    if !report.source.is_empty() {
        body["source"] = report.source.as_str().into();
    }
    if report.sequence > 0 {
        body["sequence"] = report.sequence.into();
    }
    body
}

fn charge_body(charge: &Charge, last: Option<&str>) -> Value {
    let mut body = json!({
        "accounts": accounts(&charge.accounts),
        "cost": cost(charge.cost),
        "age_seconds": charge.age_seconds,
    });
    match &charge.reservation {
        Carried::Nothing => {}
        Carried::Last => body["reservation"] = last.expect("an allow before").into(),
        Carried::Text(text) => body["reservation"] = text.as_str().into(),
    }
    if let Some(release) = charge.release {
        body["release"] = cost(release);
    }
    if !charge.rpc.is_empty() {
        body["rpc"] = charge.rpc.as_str().into();
    }
    if let Some(Finished { wall_seconds, total }) = charge.finished {
        (body["finished"], body["wall_seconds"]) = (true.into(), wall_seconds.into());
        if let Some(total) = total {
            body["total"] = cost(total);
        }
    }
    body
}

fn cost(amounts: Amounts) -> Value {
    json!({ "cpu": amounts.cpu as f64 / 1e6, "memory": amounts.memory, "network": amounts.network })
}

fn accounts(accounts: &Names) -> Value {
    names(accounts).into_iter().map(|(kind, id)| (kind.to_owned(), Value::from(id))).collect()
}

fn names(accounts: &Names) -> Vec<(&'static str, &'static str)> {
    let Names { repo, user, ip } = *accounts;
    [("repo", repo), ("user", user), ("ip", ip)]
        .into_iter()
        .filter_map(|(kind, id)| Some((kind, id?)))
        .collect()
}
