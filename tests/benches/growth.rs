//! Whether a decision costs more where there is more: of accounts, and of fileservers whose limits adapt. Two Redis servers, one
//! with few and one with many, are measured in turn.

use std::sync::Arc;

use futures::future::join_all;
use quota_proto::v1;
use quota_server::store::{Report as Charges, Store as _};
use quota_tests::redis::RedisServer;
use quota_tests::server::ServerProcess;

use crate::checks::{Call, Connection, REQUESTS};
use crate::closed_loop::{ask, cpu};
use crate::plan::Plan;
use crate::redis_cpu::Scripts;
use crate::report::{Report, Spread};
use crate::workload::{Accounts, key, shuffled};

const FEW_ACCOUNTS: usize = 1_000;

/// Nodes that tell their pressure.
const NODES: [usize; 2] = [1, 200];

/// Connections over which checks are made.
const CONNECTIONS: usize = 8;

/// Accounts that are made by one message to Redis.
const BATCH: usize = 5_000;

/// Longer than any run.
const LASTS_SECONDS: u32 = 3_600;

pub(crate) async fn measure(report: &mut Report, plan: &Plan) {
    let redis = [RedisServer::start().await, RedisServer::start().await];
    accounts(report, &redis, plan).await;
    nodes(report, &redis, plan).await;
}

async fn accounts(report: &mut Report, redis: &[RedisServer; 2], plan: &Plan) {
    let numbers = [FEW_ACCOUNTS, plan.many_accounts];
    let mut scripts = Vec::new();
    for (redis, number) in redis.iter().zip(numbers) {
        let requests = shuffled(number / 3);
        let bench = Scripts::new(redis).await;
        fill(redis, &bench, &requests).await;
        bench.load(requests[0]).await;
        // As many of each, so that each account is asked about once in a second.
        scripts.push((bench, requests[..FEW_ACCOUNTS / 3].to_vec()));
    }
    let (mut incr, mut admit) = (Vec::new(), Vec::new());
    for _ in 0..plan.growth_rounds {
        let mut micros = [[0.0; 2]; 2];
        for ((bench, requests), micros) in scripts.iter().zip(&mut micros) {
            bench.next_second().await;
            let (of_incr, _) = bench.cpu(requests.iter().map(|accounts| bench.count(*accounts))).await;
            let (of_admit, _) = bench.cpu(requests.iter().map(|accounts| bench.admit(*accounts))).await;
            *micros = [of_incr, of_admit];
        }
        let [few, many] = micros;
        incr.push(many[0] / few[0]);
        admit.push(many[1] / few[1]);
    }
    let section = report.section(format!(
        "Redis CPU of a call among {} accounts / among {}: {} rounds",
        numbers[1], numbers[0], plan.growth_rounds
    ));
    section.figure("growth.accounts.incr.ratio", "three INCRBY + EXPIRE", Spread::of(incr));
    section.figure("growth.accounts.admit.ratio", "admit", Spread::of(admit));
}

/// Every account has one charge, and one counter. What the store has made of the charge is copied.
async fn fill(redis: &RedisServer, bench: &Scripts, requests: &[Accounts]) {
    let mut connection = redis.client().await;
    let [first, ..] = requests else { panic!("no requests") };
    let entries = first.entries(0..1).into();
    bench.store.settle(&Charges { mark: None, entries }).await.expect("a charge that is counted");
    let [account, ..] = first.accounts();
    let value: Vec<u8> =
        redis::cmd("GET").arg(key(&account)).query_async(&mut connection).await.expect("its value");
    for batch in requests.chunks(BATCH) {
        let mut pipe = redis::pipe();
        for account in batch.iter().flat_map(|accounts| accounts.accounts()) {
            let key = key(&account);
            pipe.cmd("SET").arg(&key).arg(&value).arg("EX").arg(LASTS_SECONDS).ignore();
            pipe.cmd("SET").arg(format!("incr:{key}")).arg(1000).arg("EX").arg(LASTS_SECONDS).ignore();
        }
        pipe.exec_async(&mut connection).await.expect("a Redis with room");
    }
}

async fn nodes(report: &mut Report, redis: &[RedisServer; 2], plan: &Plan) {
    let requests = Arc::new(shuffled(REQUESTS));
    let mut servers = Vec::new();
    for redis in redis {
        let url = redis.url();
        let rules = ["CPU", "MEMORY", "NETWORK"].map(|resource| format!("QUOTA__ADAPT__{resource}__RULE"));
        let rules = rules.iter().map(|rule| (rule.as_str(), "blame"));
        let settings: Vec<_> = rules.chain([("QUOTA__STORE__URL", url.as_str())]).collect();
        servers.push((ServerProcess::start(&settings).await, redis.client().await));
    }
    let mut ratios = Vec::new();
    for _ in 0..plan.growth_rounds {
        let mut micros = [0.0; 2];
        for (((server, redis), number), micros) in servers.iter_mut().zip(NODES).zip(&mut micros) {
            tell_pressure(server, number).await;
            let connections = (0..CONNECTIONS).map(|_| Connection::to(server.grpc_address()));
            let connections = join_all(connections).await;
            let before = cpu(redis).await;
            let (_, latencies) = ask(Call::Check, connections, &requests, plan).await;
            *micros = (cpu(redis).await - before) / latencies.len() as f64;
        }
        ratios.push(micros[1] / micros[0]);
    }
    let [few, many] = NODES;
    let section =
        report.section(format!("Redis CPU of a check among {many} nodes / among {few}, limits that adapt"));
    section.figure("growth.nodes.check.ratio", "check, over 8 connections", Spread::of(ratios));
}

/// So many nodes say that they are half loaded.
pub(crate) async fn tell_pressure(server: &ServerProcess, nodes: usize) {
    for number in 1..=nodes {
        let half = v1::Pressure { cpu: Some(0.5), memory: Some(0.5), network: Some(0.5) };
        let told = v1::ReportPressureRequest {
            node: format!("gitaly-{number:02}"),
            pressure: Some(half),
            ..v1::ReportPressureRequest::default()
        };
        server.grpc.clone().report_pressure(told).await.expect("a node that is taken");
    }
}
