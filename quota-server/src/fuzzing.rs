//! What others write, read as this crate reads it: by the targets in `fuzz/`, and in the tests what those have kept. Each
//! panics where what it makes of any input breaks a promise.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a broken promise is told by panicking")]

mod served;

use quota_core::{Account, Cost, Ipv6Prefix, Kind, PerKind, Resource};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use self::served::{Served, ask, request};
use crate::auth::{Access, Auth, Digest, Known, Role, Secret, Token};
use crate::config::{self, Config, Source};
use crate::quota::Reservation;
use crate::{quota, store};

/// What reads an input.
pub type Target = fn(&[u8]);

/// The targets, by the names of their folders in `fuzz/corpus/`.
pub const TARGETS: [(&str, Target); 6] = [
    ("grpc", grpc),
    ("http", http),
    ("names", names),
    ("posts", posts),
    ("replies", replies),
    ("server_config", server_config),
];

/// Between the two parts of an input.
const PARTS: &str = "\n--\n";

/// The configuration, in TOML, and the environment below it: at the start, and while the server runs.
pub fn server_config(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (file, env) = text.split_once(PARTS).unwrap_or((&text, ""));
    let env = env.lines().filter_map(|line| line.split_once('='));
    let source = Source::new(Some("quota.toml".into()), env.map(|(name, value)| (name.into(), value.into())));
    let running = Source::new(None, []).load().unwrap_or_else(|error| panic!("the defaults: {error}"));
    let Ok((loaded, _)) = source.reload(Some(file.to_owned()), &running) else { return };
    check(loaded.config());
    let (again, changes) = source.reload(Some(file.to_owned()), &loaded).unwrap();
    assert_eq!(again.config(), loaded.config());
    assert!(changes.iter().all(|change| change.takes_restart), "what was read changes nothing");
    if let Ok(config) = Config::from_toml(file) {
        check(&config);
        assert_eq!(Config::from_toml(file).unwrap(), config);
    }
}

/// What was accepted is within its bounds.
fn check(config: &Config) {
    for (_, adaptation) in config.policy.adaptations().iter() {
        for (kind, range) in adaptation.iter().flat_map(|adaptation| adaptation.ranges.iter()) {
            assert!(0 < range.min && range.min <= range.initial && range.initial <= range.max, "{kind}");
        }
    }
    let price = config.prices.price(None);
    assert_eq!(price, price.at_most(Cost::BUCKET));
    let (_, class) = config.classes.get(None).unwrap();
    assert!((1..=1_000_000).contains(&class.part.millionths()));
    let open = config.auth.knows_nobody() && !config.auth.disabled;
    let listens = [config.http.listen, config.grpc.listen];
    assert!(!open || listens.iter().all(|address| address.ip().to_canonical().is_loopback()), "{listens:?}");
}

/// A request over HTTP: a line with its method and path, its headers, an empty line, and its body.
pub fn http(input: &[u8]) {
    let head = input.windows(2).position(|two| two == b"\n\n").unwrap_or(input.len());
    let body = input.get(head + 2..).unwrap_or_default();
    let head = String::from_utf8_lossy(&input[..head]);
    let mut lines = head.lines();
    let Some((method, path)) = lines.next().and_then(|line| line.split_once(' ')) else { return };
    let headers = lines.filter_map(|line| line.split_once(": "));
    let Some(request) = request(method, path, headers, body.to_vec()) else { return };
    runtime().block_on(async {
        let served = Served::start().await;
        let answer = ask(served.http(), request, true).await;
        let told = String::from_utf8_lossy(&answer.body);
        assert!(!answer.status.is_server_error(), "{}: {told}", answer.status);
        let kind = answer.headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.ends_with("json") {
            let json: Value = serde_json::from_str(&told).unwrap();
            let status = json.get("status").and_then(Value::as_u64);
            assert!(!kind.contains("problem") || status == Some(answer.status.as_u16().into()), "{told}");
        }
        served.spares_the_bystander(input).await;
    });
}

/// A call of gRPC: a line with its path, and its messages, each after its length in two bytes.
pub fn grpc(input: &[u8]) {
    let Some(line) = input.iter().position(|byte| *byte == b'\n') else { return };
    let (path, mut messages) = (String::from_utf8_lossy(&input[..line]), &input[line + 1..]);
    let mut body = Vec::new();
    while let Some((length, rest)) = messages.split_first_chunk::<2>() {
        let (message, rest) = rest.split_at(rest.len().min(usize::from(u16::from_le_bytes(*length))));
        body.push(0);
        body.extend_from_slice(&(message.len() as u32).to_be_bytes());
        body.extend_from_slice(message);
        messages = rest;
    }
    let headers = [("content-type", "application/grpc"), ("te", "trailers")];
    let Some(request) = request("POST", &path, headers, body) else { return };
    runtime().block_on(async {
        let served = Served::start().await;
        let answer = ask(served.grpc(), request, !path.ends_with("/Watch")).await;
        assert!(answer.status.is_success(), "{}", answer.status);
        if let Some(status) = tonic::Status::from_header_map(&answer.headers) {
            use tonic::Code;
            let is_ours = match status.code() {
                Code::Unknown | Code::Unavailable | Code::DataLoss | Code::DeadlineExceeded => false,
                // Of what is no message.
                Code::Internal => {
                    ["decode", "Missing request message"].iter().any(|ours| status.message().contains(ours))
                }
                _ => true,
            };
            assert!(is_ours, "{status:?}");
        }
        served.spares_the_bystander(input).await;
    });
}

/// Names of accounts: a line each of a repository, a user and an address.
pub fn names(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    for prefix in [1, 64, 128].map(|bits| Ipv6Prefix::new(bits).unwrap()) {
        let mut known: Vec<Account> = Vec::new();
        for (line, kind) in text.lines().zip(Kind::ALL.into_iter().cycle()) {
            let Ok(account) = Account::new(kind, line, prefix) else { continue };
            assert_eq!(Account::new(kind, account.id(), prefix).as_ref(), Ok(&account), "one spelling");
            let key = account.key();
            assert!(key.len() <= 126 && key.bytes().all(|byte| byte.is_ascii_graphic()), "{key}");
            assert!(!key.contains(['{', '}']), "{key}");
            for other in &known {
                assert_eq!(other == &account, other.key() == key, "{other:?} {account:?}");
            }
            known.push(account);
        }
    }
    text.lines().for_each(credentials);
}

/// What a caller shows, and what it was once given.
fn credentials(text: &str) {
    const TOKEN: &str = "t0ken-of-a-reader";
    let caller = crate::auth::Caller { role: Role::Reader, ..crate::auth::Caller::anonymous() };
    let tokens = vec![Token { caller, secret: Secret::Digest(Digest::of(TOKEN)) }];
    let known = Known::open(&config::Auth { disabled: false, tokens, certificates: Vec::new() }).unwrap();
    let auth = Auth::new(known);
    let allowed = auth.authorize(Access::Least(Role::Reader), Some(text), &[]).is_ok();
    assert!(!allowed || text.contains(TOKEN), "{text:?}");
    assert!(auth.authorize(Access::Least(Role::Admin), Some(text), &[]).is_err(), "{text:?}");
    if let Some(digest) = Digest::from_hex(text) {
        assert!(digest.matches(&Digest::from_hex(&text.to_lowercase()).unwrap()));
    }
    if let Ok(reservation) = text.parse::<Reservation>() {
        let amounts = reservation.amounts.amounts();
        assert_eq!(reservation.amounts.at_most(Cost::BUCKET), reservation.amounts);
        assert!(Resource::ALL.into_iter().all(|resource| amounts[resource] <= Cost::MAX));
        assert!(PerKind::iter(&reservation.ticks).all(|(_, tick)| *tick < 1 << 48));
        assert_eq!(reservation.to_string().parse(), Ok(reservation));
    }
}

/// What other servers leave on the store they share: a post of one of them; or a name, and what an operator says in it.
pub fn posts(input: &[u8]) {
    quota::fuzzing::post(input);
    let Some(end) = input.iter().position(|byte| *byte == b'\n') else { return };
    let (name, said) = (String::from_utf8_lossy(&input[..end]), &input[end + 1..]);
    runtime().block_on(quota::fuzzing::word(&name, said));
}

/// What Redis answers.
pub fn replies(input: &[u8]) {
    store::fuzzing::replies(input);
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::TARGETS;

    #[test]
    fn what_targets_have_kept_breaks_no_promise() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
        for (target, read) in TARGETS {
            let mut inputs = 0;
            for input in fs::read_dir(corpus.join(target)).unwrap() {
                let input = input.unwrap().path();
                println!("{}", input.display());
                read(&fs::read(&input).unwrap());
                inputs += 1;
            }
            assert!(inputs > 0, "{target} has kept nothing");
        }
    }
}
