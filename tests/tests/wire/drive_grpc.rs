//! Requests and answers in the words of gRPC.

use std::time::Duration;

use quota_proto::v1;
use quota_proto::v1::mode_service_client::ModeServiceClient;
use quota_proto::v1::override_service_client::OverrideServiceClient;
use quota_tests::server::Clients;
use tonic::{Code, Response, Status};
use tonic_types::StatusExt as _;

use crate::answer::{
    Answer, Breach, Class, Consumer, DenialCount, Limits, ModeSetting, Node, Override, Seen, Standing,
};
use crate::request::{
    Amounts, Carried, Charge, Check, Denials, Heavy, Named, Names, Place, Pressure, PutMode, PutOverride,
    Report, Request, Top, Word,
};

pub(crate) async fn send(clients: &Clients, request: &Request, last: Option<&str>) -> Seen {
    let mut grpc = clients.grpc.clone();
    let mut modes = ModeServiceClient::new(clients.channel.clone());
    let mut overrides = OverrideServiceClient::new(clients.channel.clone());
    let seen = match request {
        Request::Check(request) => grpc.check(check(request)).await.map(|ok| checked(ok.into_inner())),
        Request::Report(request) => grpc.report(report(request, last)).await.map(|ok| {
            let v1::ReportResponse { applied, dropped_old, duplicate } = ok.into_inner();
            Answer::Reported { applied: applied.into(), dropped_old: dropped_old.into(), duplicate }.into()
        }),
        Request::Standing { kind, id } => {
            let request =
                v1::GetStandingRequest { kind: self::kind(kind).into(), id: id.clone(), node: String::new() };
            grpc.get_standing(request).await.map(|ok| {
                let (standing, exact) = standing(ok.into_inner());
                Seen { exact, ..Answer::Standing(standing).into() }
            })
        }
        Request::Backoff { accounts: names, attempt } => {
            let (accounts, node) = (Some(accounts(names)), String::new());
            let request = v1::BackoffRequest { accounts, node, attempt: *attempt };
            grpc.backoff(request).await.map(|ok| backoff(ok.into_inner()))
        }
        Request::Backoffs(sets) => {
            let request = |(names, attempt): &(Names, u32)| {
                let (accounts, node) = (Some(accounts(names)), String::new());
                v1::BackoffRequest { accounts, node, attempt: *attempt }
            };
            let requests = sets.iter().map(request).collect();
            let answer = grpc.batch_backoff(v1::BatchBackoffRequest { requests }).await;
            answer.map(|ok| Seen::each(ok.into_inner().results.into_iter().map(backoff).collect()))
        }
        Request::Pressure(request) => {
            grpc.report_pressure(pressure(request)).await.map(|ok| pressured(ok.into_inner()))
        }
        Request::Nodes(node) => {
            let request = v1::ListNodesRequest { node: node.unwrap_or_default().to_owned() };
            let nodes = grpc.list_nodes(request).await;
            nodes.map(|ok| Answer::Nodes(ok.into_inner().nodes.into_iter().map(self::node).collect()).into())
        }
        Request::Top(Top { kind, resource, node, limit }) => {
            let request = v1::ListTopRequest {
                kind: self::kind(kind).into(),
                resource: self::resource(resource).into(),
                node: node.clone(),
                limit: *limit,
            };
            grpc.list_top(request).await.map(|ok| top(ok.into_inner()))
        }
        Request::Denials(Denials { since_seconds, kind, limit }) => {
            let request = v1::ListDenialsRequest {
                since: since_seconds.map(seconds),
                kind: if kind.is_empty() { v1::Kind::Unspecified as i32 } else { unknown_or(kind) },
                limit: *limit,
            };
            grpc.list_denials(request).await.map(|ok| denials(ok.into_inner()))
        }
        Request::PutOverride(put) => overrides.put(put_override(put)).await.map(overridden),
        Request::GetOverride(Named { kind, id }) => {
            let request = v1::GetOverrideRequest { kind: self::kind(kind).into(), id: id.clone() };
            overrides.get(request).await.map(overridden)
        }
        Request::DeleteOverride(Named { kind, id }) => {
            let request = v1::DeleteOverrideRequest { kind: self::kind(kind).into(), id: id.clone() };
            overrides.delete(request).await.map(|_| Answer::Deleted.into())
        }
        Request::PutMode(PutMode { of, mode, reason }) => {
            let name = format!("MODE_{}", mode.to_uppercase());
            let mode = v1::Mode::from_str_name(&name).unwrap_or_default().into();
            let (node, kind) = place(of);
            let request = v1::PutModeRequest { node, kind, mode, reason: reason.clone() };
            modes.put(request).await.map(|ok| Answer::Mode(mode_of(ok.into_inner())).into())
        }
        Request::DeleteMode(of) => {
            let (node, kind) = place(of);
            modes.delete(v1::DeleteModeRequest { node, kind }).await.map(|_| Answer::Deleted.into())
        }
        Request::ListModes => modes
            .list(v1::ListModesRequest {})
            .await
            .map(|ok| Answer::Modes(ok.into_inner().modes.into_iter().map(mode_of).collect()).into()),
        Request::ListOverrides => overrides.list(v1::ListOverridesRequest {}).await.map(|ok| {
            Answer::Overrides(ok.into_inner().overrides.into_iter().map(override_of).collect()).into()
        }),
    };
    seen.unwrap_or_else(|status| refused(&status))
}

/// Unspecified where there is none of this name.
fn kind(name: &str) -> v1::Kind {
    v1::Kind::from_str_name(&format!("KIND_{}", name.to_uppercase())).unwrap_or_default()
}

/// The number of a kind, and one that nobody knows where there is none of this name.
fn unknown_or(name: &str) -> i32 {
    v1::Kind::from_str_name(&format!("KIND_{}", name.to_uppercase())).map_or(99, Into::into)
}

/// Unspecified where there is none of this name.
fn resource(name: &str) -> v1::Resource {
    v1::Resource::from_str_name(&format!("RESOURCE_{}", name.to_uppercase())).unwrap_or_default()
}

fn top(response: v1::ListTopResponse) -> Seen {
    let asked = [kind_name(response.kind()), resource_name(response.resource()), response.node.clone()];
    let accounts = response.accounts.into_iter().map(|wire| Consumer {
        kind: kind_name(wire.kind()),
        used: wire.used,
        limit: limit(wire.limit),
        denied: wire.denied,
        id: wire.id,
    });
    Answer::Top(asked, accounts.collect()).into()
}

fn denials(response: v1::ListDenialsResponse) -> Seen {
    let since = duration(response.since.expect("since")).as_secs_f64();
    let denials = response.denials.into_iter().map(|wire| {
        duration(wire.last_ago.expect("last_ago"));
        DenialCount {
            kind: kind_name(wire.kind()),
            resource: resource_name(wire.resource()),
            mode: wire.mode().as_str_name().trim_start_matches("MODE_").to_lowercase(),
            count: wire.count,
            id: wire.id,
            rpc: wire.rpc,
        }
    });
    Answer::Denials(since, denials.collect(), response.missed).into()
}

fn kind_name(kind: v1::Kind) -> String {
    kind.as_str_name().trim_start_matches("KIND_").to_lowercase()
}

fn resource_name(resource: v1::Resource) -> String {
    resource.as_str_name().trim_start_matches("RESOURCE_").to_lowercase()
}

fn place(Place { node, kind }: &Place) -> (String, Option<i32>) {
    (node.clone(), (!kind.is_empty()).then(|| self::kind(kind).into()))
}

fn mode_of(wire: v1::ModeSetting) -> ModeSetting {
    let kind = wire.kind.map(|_| kind_name(wire.kind()));
    let mode = wire.mode().as_str_name().trim_start_matches("MODE_").to_lowercase();
    duration(wire.since.expect("since"));
    let v1::ModeSetting { node, reason, author, .. } = wire;
    ModeSetting { node, kind: kind.unwrap_or_default(), mode, reason, author }
}

fn put_override(put: &PutOverride) -> v1::PutOverrideRequest {
    let word = match put.word {
        Word::Nothing => None,
        Word::Weight(thousandths) => Some(v1::override_word::Word::WeightThousandths(thousandths)),
        Word::Cpu(micros) => {
            let cpu = Some(v1::Limit { limit: Some(v1::limit::Limit::Amount(micros)) });
            Some(v1::override_word::Word::Limits(v1::Limits { cpu, ..v1::Limits::default() }))
        }
        Word::Exempt => Some(v1::override_word::Word::Exempt(true)),
        Word::Blocked => Some(v1::override_word::Word::Blocked(true)),
    };
    v1::PutOverrideRequest {
        kind: self::kind(put.of.kind).into(),
        id: put.of.id.clone(),
        word: Some(v1::OverrideWord { word }),
        reason: put.reason.clone(),
        expires_in: put.expires_in_seconds.map(seconds),
    }
}

fn overridden(answer: Response<v1::Override>) -> Seen {
    Answer::Override(override_of(answer.into_inner())).into()
}

fn override_of(wire: v1::Override) -> Override {
    let kind = kind_name(wire.kind());
    let origin = wire.origin().as_str_name().trim_start_matches("ORIGIN_").to_lowercase();
    let word = match wire.word.and_then(|wire| wire.word).expect("a word") {
        v1::override_word::Word::WeightThousandths(thousandths) => Word::Weight(thousandths),
        v1::override_word::Word::Limits(limits) => {
            assert_eq!((limits.memory, limits.network), (None, None));
            Word::Cpu(limit(limits.cpu).expect("an amount"))
        }
        v1::override_word::Word::Exempt(is) => {
            if is {
                Word::Exempt
            } else {
                Word::Nothing
            }
        }
        v1::override_word::Word::Blocked(is) => {
            if is {
                Word::Blocked
            } else {
                Word::Nothing
            }
        }
    };
    let expires = wire.expires_in.is_some_and(|left| duration(left) > Duration::ZERO);
    Override { kind, id: wire.id, word, reason: wire.reason, author: wire.author, origin, expires }
}

fn refused(status: &Status) -> Seen {
    let class = match status.code() {
        Code::InvalidArgument => Class::Invalid,
        Code::OutOfRange => Class::TooLarge,
        Code::Unavailable => {
            assert!(status.get_details_retry_info().is_some(), "{status:?}");
            Class::Unavailable
        }
        Code::DataLoss => Class::Corrupt,
        Code::NotFound => Class::NotFound,
        _ => panic!("{status:?}"),
    };
    let fields = status.get_details_bad_request().map(|bad| bad.field_violations).unwrap_or_default();
    let field = fields.first().map(|violation| violation.field.clone()).unwrap_or_default();
    assert_eq!(!field.is_empty(), class == Class::Invalid, "{status:?}");
    // HTTP has these without their unit, and at the place of their parent.
    let left_out = ["_micros", "_millicores", "_byte_seconds", "_bytes", "pressure.", ".used"];
    let field = left_out.iter().fold(field, |field, part| field.replace(part, ""));
    // Nor a parent for the accounts of one of several questions.
    let field = if field.starts_with("requests[") { field.replace(".accounts", "") } else { field };
    Answer::Refused { class, field }.into()
}

fn checked(response: v1::CheckResponse) -> Seen {
    let decision = response.decision();
    let (standings, waits): (Vec<_>, Vec<_>) = response.standings.into_iter().map(standing).unzip();
    let exact = waits.into_iter().max().unwrap_or_default();
    let wait = response.retry_after.map(duration);
    if decision == v1::check_response::Decision::Deny {
        let denied_by = breach(response.denied_by.expect("denied_by"));
        let answer = Answer::Deny { denied_by, permanent: response.permanent, standings };
        return Seen { wait: Some(wait.expect("retry_after")), exact, ..answer.into() };
    }
    assert_eq!(decision, v1::check_response::Decision::Allow);
    assert_eq!((response.denied_by, response.permanent), (None, false));
    let reservation = Some(response.reservation).filter(|text| !text.is_empty());
    let answer = Answer::Allow {
        reserved: amounts(response.reserved.expect("reserved")),
        reservation: reservation.is_some(),
        checked: response.checked,
        shadow: response.shadow.map(breach),
        share: response.share.map(share),
        standings,
    };
    Seen { wait, exact, reservation, ..answer.into() }
}

/// It has a reservation of its own.
fn share(wire: v1::Share) -> (Amounts, Duration) {
    assert!(wire.reservation.starts_with("r1."), "{wire:?}");
    (amounts(wire.amounts.expect("amounts")), duration(wire.lasts.expect("lasts")))
}

fn backoff(response: v1::BackoffResponse) -> Seen {
    if !response.backoff {
        assert_eq!(response, v1::BackoffResponse::default());
        return Answer::GoOn.into();
    }
    let wait = Some(duration(response.retry_after.expect("retry_after")));
    let denied_by = breach(response.denied_by.expect("denied_by"));
    Seen { wait, ..Answer::BackOff { denied_by, permanent: response.permanent }.into() }
}

fn standing(wire: v1::Standing) -> (Standing, Duration) {
    let kind = kind_name(wire.kind());
    let [cpu, memory, network] = [wire.cpu, wire.memory, wire.network].map(|resource| resource.unwrap());
    let used = Amounts { cpu: cpu.used, memory: memory.used, network: network.used };
    let here = cpu.here.as_ref().map(|here| (here.used, limit(here.limit).expect("an amount")));
    let limits = [cpu, memory, network].map(|resource| {
        let mode = resource.mode().as_str_name().trim_start_matches("MODE_").to_lowercase();
        (limit(resource.limit), mode)
    });
    let exact = duration(wire.retry_after.expect("retry_after"));
    (Standing { kind, id: wire.id, over: wire.over, used, limits, here }, exact)
}

fn breach(wire: v1::Breach) -> Breach {
    let kind = kind_name(wire.kind());
    let resource = wire.resource().as_str_name().trim_start_matches("RESOURCE_").to_lowercase();
    let scope = wire.scope().as_str_name().trim_start_matches("SCOPE_").to_lowercase();
    Breach { kind, id: wire.id, resource, scope, used: wire.used, limit: limit(wire.limit) }
}

fn limit(wire: Option<v1::Limit>) -> Option<u64> {
    match wire.and_then(|limit| limit.limit).expect("a limit") {
        v1::limit::Limit::Amount(amount) => Some(amount),
        v1::limit::Limit::Unlimited(unlimited) => {
            assert!(unlimited);
            None
        }
    }
}

fn amounts(wire: v1::Cost) -> Amounts {
    Amounts { cpu: wire.cpu_micros, memory: wire.memory_byte_seconds, network: wire.network_bytes }
}

fn check(check: &Check) -> v1::CheckRequest {
    let Check { accounts: names, node, rpc, class, price, user_used_here, share_wanted } = check.clone();
    let user = v1::Amounts { cpu_micros: user_used_here, ..v1::Amounts::default() };
    let used_here = user_used_here.map(|_| v1::UsedHere { user: Some(user), ..v1::UsedHere::default() });
    let (accounts, price) = (Some(accounts(&names)), price.map(cost));
    let share_wanted = share_wanted.map(cost);
    v1::CheckRequest { node, rpc, accounts, class, price, used_here, share_wanted }
}

pub(crate) fn pressure(pressure: &Pressure) -> v1::ReportPressureRequest {
    let amounts = |amounts: &Amounts| v1::Amounts {
        cpu_micros: Some(amounts.cpu),
        memory_byte_seconds: Some(amounts.memory),
        network_bytes: Some(amounts.network),
    };
    let heaviest = pressure.heaviest.iter().map(|Heavy { kind, id, used, recent }| v1::HeavyAccount {
        kind: self::kind(kind).into(),
        id: id.clone(),
        used: Some(amounts(used)),
        recent: recent.as_ref().map(amounts),
    });
    let oom_kill = v1::report_pressure_request::Event::OomKill.into();
    v1::ReportPressureRequest {
        node: pressure.node.clone(),
        pressure: Some(v1::Pressure { cpu: pressure.cpu, memory: pressure.memory, network: None }),
        events: if pressure.oom_kill { vec![oom_kill] } else { Vec::new() },
        capacity: Some(v1::Capacity {
            cpu_millicores: pressure.cores,
            memory_bytes: pressure.bytes,
            ..v1::Capacity::default()
        }),
        active: Some(v1::Active { user: pressure.active_users, ..v1::Active::default() }),
        heaviest: heaviest.collect(),
    }
}

fn pressured(response: v1::ReportPressureResponse) -> Seen {
    assert_eq!(response.accounts, []);
    let limits = user_limits(response.limits);
    Answer::Pressured { node: response.node, calibrated: response.calibrated, limits }.into()
}

fn user_limits(limits: Option<v1::NodeLimits>) -> Limits {
    let user = limits.and_then(|limits| limits.user).expect("the limits of users");
    [user.cpu, user.memory, user.network].map(limit)
}

fn node(wire: v1::Node) -> Node {
    let pressure = wire.pressure.expect("pressure");
    let calibration = wire.last_calibrations.iter().find(|last| last.resource() == v1::Resource::Cpu);
    let calibration = calibration.map(|last| {
        duration(last.ago.expect("ago"));
        let change = last.changes.iter().find(|change| change.kind() == v1::Kind::User).expect("users");
        let limit = |wire| limit(wire).expect("an amount");
        let reason = last.reason().as_str_name().trim_start_matches("REASON_").to_lowercase();
        (reason, last.pressure, limit(change.old), limit(change.new))
    });
    duration(wire.seen_ago.expect("seen_ago"));
    Node {
        name: wire.node,
        pressure: [pressure.cpu, pressure.memory, pressure.network],
        limits: user_limits(wire.limits),
        calibration,
        cores: wire.capacity.expect("capacity").cpu_millicores,
        active_users: wire.active.expect("active").user.map(Into::into),
    }
}

fn report(report: &Report, last: Option<&str>) -> v1::ReportRequest {
    v1::ReportRequest {
        source: report.source.clone(),
        sequence: report.sequence,
        held: Some(seconds(report.held_seconds)),
        node: String::new(),
        charges: report.charges.iter().map(|wire| charge(wire, last)).collect(),
    }
}

fn charge(charge: &Charge, last: Option<&str>) -> v1::Charge {
    v1::Charge {
        accounts: Some(accounts(&charge.accounts)),
        cost: Some(cost(charge.cost)),
        age: Some(seconds(charge.age_seconds)),
        reservation: match &charge.reservation {
            Carried::Nothing => String::new(),
            Carried::Last => last.expect("an allow before").to_owned(),
            Carried::Text(text) => text.clone(),
        },
        release: charge.release.map(cost),
        rpc: charge.rpc.clone(),
        finished: charge.finished.is_some(),
        wall: charge.finished.map(|finished| seconds(finished.wall_seconds)),
        total: charge.finished.and_then(|finished| finished.total).map(cost),
    }
}

fn cost(amounts: Amounts) -> v1::Cost {
    v1::Cost { cpu_micros: amounts.cpu, memory_byte_seconds: amounts.memory, network_bytes: amounts.network }
}

fn accounts(names: &Names) -> v1::Accounts {
    let Names { repo, user, ip } = names;
    v1::Accounts { repo: repo.map(Into::into), user: user.map(Into::into), ip: ip.map(Into::into) }
}

/// Negative ones too, to see them refused.
fn seconds(seconds: f64) -> prost_types::Duration {
    let nanos = (seconds.fract() * 1e9).round() as i32;
    prost_types::Duration { seconds: seconds.trunc() as i64, nanos }
}

fn duration(wire: prost_types::Duration) -> Duration {
    Duration::try_from(wire).expect("a wait that is not negative")
}
