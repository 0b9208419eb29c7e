use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use quota_tests::simulate::{Contender, Figures, Heavy, Scenario, Trace, light_p95, relief_seconds, run};

/// A scenario, and what each rule made of it.
pub(crate) struct Compared<'a> {
    pub(crate) name: &'a str,
    pub(crate) scenario: &'a Scenario,
    pub(crate) outcomes: Vec<Outcome>,
}

/// What a rule made of a scenario.
pub(crate) struct Outcome {
    pub(crate) contender: Contender,
    /// The worst seed, of each figure.
    pub(crate) figures: Figures,
    /// Of the first seed, to be plotted.
    pub(crate) trace: Trace,
}

/// Runs every scenario under every rule with every seed, on all cores.
pub(crate) fn compare<'a>(
    scenarios: &'a [(String, Scenario)],
    contenders: &[Contender],
    seeds: u64,
) -> Vec<Compared<'a>> {
    let pairs = pairs(scenarios.len(), seeds);
    let best = in_parallel(&pairs, |(scenario, seed)| {
        let scenario = &scenarios[*scenario].1;
        let run = |heavy| run(scenario, &Contender::FIXED, *seed, heavy);
        (light_p95(scenario, &run(Heavy::Without)), relief_seconds(scenario, &run(Heavy::UntilHot)))
    });
    let jobs: Vec<_> = pairs
        .iter()
        .zip(best)
        .flat_map(|(pair, best)| contenders.iter().map(move |it| (*pair, best, it)))
        .collect();
    let runs = in_parallel(&jobs, |((scenario, seed), (idle_p95, least_relief), contender)| {
        let scenario = &scenarios[*scenario].1;
        let trace = run(scenario, contender, *seed, Heavy::With);
        (Figures::of(scenario, &trace, *idle_p95, *least_relief), (*seed == 0).then_some(trace))
    });
    let mut of_scenario: Vec<Vec<(Figures, Option<Trace>)>> = Vec::new();
    let mut runs = runs.into_iter();
    for _ in scenarios {
        of_scenario.push(runs.by_ref().take(seeds as usize * contenders.len()).collect());
    }
    scenarios
        .iter()
        .zip(of_scenario)
        .map(|((name, scenario), mut runs)| {
            let outcomes = contenders.iter().enumerate().map(|(at, contender)| {
                let trace = runs[at].1.take().expect("the trace of the first seed");
                let figures = runs.iter().skip(at).step_by(contenders.len()).map(|(figures, _)| *figures);
                Outcome { contender: *contender, figures: Figures::worst(figures).expect("a run"), trace }
            });
            let outcomes = outcomes.collect();
            Compared { name, scenario, outcomes }
        })
        .collect()
}

fn pairs(scenarios: usize, seeds: u64) -> Vec<(usize, u64)> {
    (0..scenarios).flat_map(|scenario| (0..seeds).map(move |seed| (scenario, seed))).collect()
}

/// The results are in the order of the jobs.
fn in_parallel<J: Sync, R: Send>(jobs: &[J], run: impl Fn(&J) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(jobs.len()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, Into::into) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(at) else { return };
                    let result = run(job);
                    done.lock().expect("no other has panicked").push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("none has panicked");
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}
