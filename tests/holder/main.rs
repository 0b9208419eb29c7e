//! Takes slots of a class and gives them back, without end: a process that a test can kill.
//!
//! It writes a line to its standard output once it holds some, `+ NAME LEASE COUNT`, and one before it gives them back,
//! `- NAME LEASE COUNT`. Processes that share a pipe so write in an order that tells what was held at any moment.
#![allow(clippy::expect_used, reason = "a holder that fails is none")]

use std::io::Write as _;
use std::time::Duration;

use clap::Parser;
use fastrand::Rng;
use quota_proto::v1;
use quota_proto::v1::quota_service_client::QuotaServiceClient;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tonic::transport::{Channel, Endpoint};

/// Takes slots of a class, and gives them back.
#[derive(Clone, Parser)]
struct Args {
    /// The service, over gRPC.
    #[arg(long)]
    endpoint: String,
    /// The class.
    #[arg(long)]
    class: String,
    /// How it names itself.
    #[arg(long)]
    name: String,
    /// How many leases it holds at a time.
    #[arg(long, default_value_t = 4)]
    leases: usize,
    /// Hold as many slots of one lease, and renew it for ever.
    #[arg(long)]
    keep: Option<u32>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let args = Args::parse();
    let channel = Endpoint::from_shared(args.endpoint.clone()).expect("an endpoint").connect_lazy();
    let mut holding = JoinSet::new();
    for _ in 0..args.leases {
        holding.spawn(hold(args.clone(), QuotaServiceClient::new(channel.clone())));
    }
    holding.join_all().await;
}

async fn hold(args: Args, mut service: QuotaServiceClient<Channel>) {
    let mut random = Rng::new();
    loop {
        let asked = Instant::now();
        let acquire = v1::AcquireSlotsRequest {
            class: args.class.clone(),
            holder: args.name.clone(),
            count: args.keep.unwrap_or_else(|| random.u32(1..=3)),
            spare: if args.keep.is_some() { 0 } else { random.u32(..3) },
            pooled: true,
            ..v1::AcquireSlotsRequest::default()
        };
        let Ok(answer) = service.acquire_slots(acquire).await else {
            sleep(Duration::from_millis(20)).await;
            continue;
        };
        let slots = answer.into_inner();
        let lasts = slots.lasts.and_then(|lasts| Duration::try_from(lasts).ok()).unwrap_or_default();
        if slots.count == 0 || asked.elapsed() > lasts / 2 {
            sleep(Duration::from_millis(random.u64(1..10))).await;
            continue;
        }
        tell('+', &args.name, &slots);
        while args.keep.is_some() {
            sleep(lasts / 4).await;
            renew(&args, &mut service, &slots, slots.count).await;
        }
        sleep(Duration::from_millis(random.u64(..4))).await;
        tell('-', &args.name, &slots);
        // Now and then it is forgotten, and ends by itself.
        if random.u8(..200) > 0 {
            renew(&args, &mut service, &slots, 0).await;
        }
    }
}

async fn renew(args: &Args, service: &mut QuotaServiceClient<Channel>, slots: &v1::Slots, count: u32) {
    let renew = v1::RenewSlotsRequest {
        class: args.class.clone(),
        holder: args.name.clone(),
        lease: slots.lease.clone(),
        count,
        finished: 1,
        ..v1::RenewSlotsRequest::default()
    };
    // What has no answer ends by itself.
    let _ = service.renew_slots(renew).await;
}

/// One write: lines of several processes do not mix.
fn tell(sign: char, name: &str, slots: &v1::Slots) {
    let lease: String = slots.lease.iter().map(|byte| format!("{byte:02x}")).collect();
    let line = format!("{sign} {name} {lease} {}\n", slots.count);
    let written = std::io::stdout().write_all(line.as_bytes());
    written.and_then(|()| std::io::stdout().flush()).expect("somebody who reads");
}
