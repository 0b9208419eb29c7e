use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use quota_proto::v1;
use quota_tests::latency::record;
use quota_tests::server::Grpc;
use tokio::sync::Semaphore;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Endpoint;

use crate::outcome::Outcome;
use crate::population::Arrival;

/// Costs in a report.
const CHARGES: usize = 1_024;

/// Costs that wait to be reported, at most.
const WAITING: usize = 65_536;

/// How long an answer is waited for.
const DEADLINE: Duration = Duration::from_secs(10);

/// One that asks about its requests, and reports once a second what they cost.
pub(crate) struct Fileserver {
    name: String,
    /// What its reports are known by: of this run alone.
    source: String,
    grpc: Grpc,
    authorization: Option<MetadataValue<Ascii>>,
    /// Places for checks in flight.
    places: Arc<Semaphore>,
    waiting: Mutex<Vec<(v1::Charge, Instant)>>,
    outcome: Mutex<Outcome>,
    sequence: AtomicU64,
}

impl Fileserver {
    /// Connects.
    pub(crate) async fn connect(number: u32, endpoint: &str, token: Option<&str>, in_flight: u32) -> Self {
        let of = Endpoint::from_shared(endpoint.to_owned()).expect("the address of an endpoint");
        let channel = of.timeout(DEADLINE).connect().await;
        let channel = channel.unwrap_or_else(|error| panic!("{endpoint}: {error}"));
        let authorization = token.map(|token| {
            let mut value: MetadataValue<Ascii> =
                format!("Bearer {token}").parse().expect("a token of printable characters");
            value.set_sensitive(true);
            value
        });
        Self {
            source: format!("load-{number:03}-{:016x}", fastrand::u64(..)),
            name: format!("load-{number:03}"),
            grpc: Grpc::new(channel),
            authorization,
            places: Arc::new(Semaphore::new(in_flight as usize)),
            waiting: Mutex::default(),
            outcome: Mutex::default(),
            sequence: AtomicU64::new(0),
        }
    }

    /// A request that was due at a moment: asks about it, in a task of its own, if there is a place.
    pub(crate) fn arrived(
        self: &Arc<Self>,
        arrival: Arrival,
        due: Instant,
        runtime: &tokio::runtime::Handle,
    ) {
        let mut outcome = self.outcome();
        outcome.counts.scheduled += 1;
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            outcome.counts.unsent += 1;
            return;
        };
        record(&mut outcome.late, due.elapsed());
        drop(outcome);
        let this = Arc::clone(self);
        runtime.spawn(async move {
            this.check(arrival, due).await;
            drop(place);
        });
    }

    async fn check(&self, arrival: Arrival, due: Instant) {
        let question = v1::CheckRequest {
            node: self.name.clone(),
            rpc: RPC.into(),
            accounts: Some(arrival.accounts.clone()),
            ..v1::CheckRequest::default()
        };
        let answer = self.grpc.clone().check(self.request(question)).await;
        let mut outcome = self.outcome();
        record(&mut outcome.checks, due.elapsed());
        let answer = match answer {
            Ok(answer) => answer.into_inner(),
            Err(_) => {
                outcome.counts.failed += 1;
                return;
            }
        };
        if answer.decision() == v1::check_response::Decision::Deny {
            outcome.counts.denied += 1;
            return;
        }
        outcome.counts.allowed += 1;
        outcome.counts.unchecked += u64::from(!answer.checked);
        let charge = v1::Charge {
            accounts: Some(arrival.accounts),
            cost: Some(arrival.cost),
            reservation: answer.reservation,
            rpc: RPC.into(),
            finished: true,
            ..v1::Charge::default()
        };
        let mut waiting = self.waiting.lock().expect("no other has panicked");
        if waiting.len() < WAITING {
            waiting.push((charge, Instant::now()));
        } else {
            outcome.counts.charges_given_up += 1;
        }
    }

    /// Reports what waits, as was due at a moment.
    pub(crate) async fn report(&self, due: Instant) {
        let waiting = mem::take(&mut *self.waiting.lock().expect("no other has panicked"));
        for charges in waiting.chunks(CHARGES) {
            let charges: Vec<_> = charges
                .iter()
                .map(|(charge, at)| v1::Charge {
                    age: Some(at.elapsed().try_into().expect("a time within reach")),
                    ..charge.clone()
                })
                .collect();
            let told = charges.len() as u64;
            let report = v1::ReportRequest {
                source: self.source.clone(),
                sequence: self.sequence.fetch_add(1, Ordering::Relaxed) + 1,
                node: self.name.clone(),
                charges,
                ..v1::ReportRequest::default()
            };
            let answer = self.grpc.clone().report(self.request(report)).await;
            let mut outcome = self.outcome();
            record(&mut outcome.reports, due.elapsed());
            outcome.counts.reports += 1;
            if answer.is_ok() {
                outcome.counts.charges += told;
            } else {
                outcome.counts.reports_failed += 1;
                outcome.counts.charges_given_up += told;
            }
        }
    }

    /// Waits until every check was answered. Returns what it saw.
    pub(crate) async fn ended(&self, in_flight: u32) -> MutexGuard<'_, Outcome> {
        drop(self.places.acquire_many(in_flight).await.expect("never closed"));
        self.report(Instant::now()).await;
        self.outcome()
    }

    fn request<M>(&self, message: M) -> tonic::Request<M> {
        let mut request = tonic::Request::new(message);
        if let Some(authorization) = &self.authorization {
            request.metadata_mut().insert("authorization", authorization.clone());
        }
        request
    }

    fn outcome(&self) -> MutexGuard<'_, Outcome> {
        self.outcome.lock().expect("no other has panicked")
    }
}

const RPC: &str = "/gitaly.SmartHTTPService/PostUploadPackWithSidechannel";
