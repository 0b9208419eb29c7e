use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use futures::future::join_all;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand_distr::{Distribution as _, Exp};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::fileserver::Fileserver;
use crate::outcome::Outcome;
use crate::population::Population;
use crate::{Args, SECOND};

/// Sends everything by its schedule, and waits for the answers.
pub(crate) async fn run(args: &Args, seed: u64) -> Outcome {
    let endpoints = args.endpoints.iter().cycle();
    let connecting = (0..args.fileservers).zip(endpoints).map(|(number, endpoint)| {
        Fileserver::connect(number, endpoint, args.token.as_deref(), args.in_flight)
    });
    let fileservers: Vec<Arc<Fileserver>> = join_all(connecting).await.into_iter().map(Arc::new).collect();
    let (mut reporting, is_over) = (JoinSet::new(), watch::Sender::new(false));
    for fileserver in &fileservers {
        reporting.spawn(report(Arc::clone(fileserver), is_over.subscribe()));
    }

    let started = Instant::now();
    let (sending, args_of_thread, runtime) = (fileservers.clone(), args.clone(), Handle::current());
    // A thread of its own, since tokio's timers are no finer than a millisecond.
    let schedule = tokio::task::spawn_blocking(move || send(&sending, &args_of_thread, seed, &runtime));
    schedule.await.expect("a schedule that was kept");
    is_over.send_replace(true);
    reporting.join_all().await;
    let mut outcome = Outcome::default();
    for fileserver in &fileservers {
        outcome.add(&*fileserver.ended(args.in_flight).await);
    }
    outcome.seconds = started.elapsed().as_secs_f64();
    outcome
}

/// Requests come at random moments, to each fileserver in turn.
fn send(fileservers: &[Arc<Fileserver>], args: &Args, seed: u64, runtime: &Handle) {
    let mut random = StdRng::seed_from_u64(seed);
    let population = Population::new(args.accounts, args.zipf);
    let pauses = Exp::new(f64::from(args.rate)).expect("a rate");
    let (started, length) = (Instant::now(), SECOND * args.seconds as u32);
    let mut due = Duration::ZERO;
    for number in 0.. {
        due += Duration::from_secs_f64(pauses.sample(&mut random));
        if due >= length {
            return;
        }
        let (arrival, due) = (population.arrival(&mut random), started + due);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        fileservers[number % fileservers.len()].arrived(arrival, due, runtime);
    }
}

/// Reports once a second, each a second after the one before was due.
async fn report(fileserver: Arc<Fileserver>, mut is_over: watch::Receiver<bool>) {
    let mut pace = interval(SECOND);
    pace.set_missed_tick_behavior(MissedTickBehavior::Burst);
    loop {
        tokio::select! {
            due = pace.tick() => fileserver.report(due.into_std()).await,
            _ = is_over.changed() => return,
        }
    }
}
