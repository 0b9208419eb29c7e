use hdrhistogram::Histogram;
use quota_tests::latency::histogram;

use super::{CONNECTIONS, Latencies, Measured, Mode, Row};
use crate::plan::Plan;
use crate::redis_benchmark;
use crate::report::{Aim, Report, Section, Spread};

/// What all rounds gave, each in the order of the rounds.
#[derive(Default)]
pub(super) struct Rounds {
    pub(super) measured: Vec<Measured>,
    /// With the number of connections.
    pub(super) redis_benchmark: Vec<(usize, redis_benchmark::Measured)>,
    pub(super) pings: Vec<Histogram<u64>>,
}

impl Row {
    fn key(self) -> String {
        match self {
            Self::Nothing => "checks.nothing".to_owned(),
            Self::Echo => "checks.echo".to_owned(),
            Self::Memory => "checks.memory".to_owned(),
            Self::Redis => "checks.redis".to_owned(),
            Self::Limitador(mode) => format!("limitador.{}", mode.name()),
        }
    }

    fn label(self) -> String {
        match self {
            Self::Nothing => "no such method".to_owned(),
            Self::Echo => "echo".to_owned(),
            Self::Memory => "check on memory".to_owned(),
            Self::Redis => "check on Redis".to_owned(),
            Self::Limitador(mode) => format!("limitador, {}", mode.name()),
        }
    }
}

impl Measured {
    fn p50(&self) -> f64 {
        self.latencies.value_at_percentile(50.0) as f64
    }

    fn p99(&self) -> f64 {
        self.latencies.value_at_percentile(99.0) as f64
    }
}

impl Rounds {
    /// Adds the rows to the report.
    pub(super) fn tell(&self, report: &mut Report, rows: &[Row], plan: &Plan) {
        let section = report.section(format!(
            "Over gRPC: {} rounds of {:?}, each connection with one call in flight",
            plan.check_rounds, plan.check_time
        ));
        for connections in CONNECTIONS {
            for row in rows {
                add(section, *row, connections, &self.of(*row, connections).collect::<Vec<_>>());
            }
            self.tell_redis_benchmark(section, connections);
        }
        for (percentile, name) in [(50.0, "p50"), (99.0, "p99")] {
            let pings = self.pings.iter().map(|pings| pings.value_at_percentile(percentile) as f64);
            section.figure(
                format!("checks.ping.{name}_us"),
                format!("PING to Redis, {name} us"),
                Spread::of(pings),
            );
        }
        self.tell_ratios(section);
        if rows.contains(&Row::Limitador(Mode::Redis)) {
            self.tell_peer(section);
        }
    }

    fn tell_redis_benchmark(&self, section: &mut Section, connections: usize) {
        let mut figure = |name: &str, unit: &str, value: fn(&redis_benchmark::Measured) -> f64| {
            let rounds = self.redis_benchmark.iter().filter(|(of, _)| *of == connections);
            section.figure(
                format!("redis_benchmark.{connections}.{name}"),
                format!("redis-benchmark x {connections}, {unit}"),
                Spread::of(rounds.map(|(_, measured)| value(measured))),
            );
        };
        figure("per_second", "a second", |measured| measured.per_second);
        figure("p50_us", "p50 us", |measured| measured.p50_us);
        figure("p99_us", "p99 us", |measured| measured.p99_us);
    }

    fn tell_ratios(&self, section: &mut Section) {
        let pings = self.pings.iter().map(|pings| pings.value_at_percentile(50.0) as f64);
        let least = self.of(Row::Echo, 1).zip(pings).map(|(echo, ping)| echo.p50() + ping);
        let ratio = self.of(Row::Redis, 1).zip(least).map(|(check, least)| check.p50() / least);
        section.figure(
            "checks.redis.1.times_a_round_trip_and_an_echo",
            "check on Redis x 1 / PING + echo, by p50",
            Spread::of(ratio),
        );
        section.aim(Aim::AtMost(1.3));
    }

    fn tell_peer(&self, section: &mut Section) {
        let mut ratio = |row: Row, connections: usize, peer: Mode, name: &str, aim: f64| {
            let peers = self.of(Row::Limitador(peer), connections);
            let ratios =
                self.of(row, connections).zip(peers).map(|(own, peer)| own.per_second / peer.per_second);
            section.figure(
                format!("{}.{connections}.{name}", row.key()),
                format!("{} x {connections} / limitador, {}, a second", row.label(), peer.name()),
                Spread::of(ratios),
            );
            section.aim(Aim::AtLeast(aim));
        };
        ratio(Row::Redis, 8, Mode::Redis, "times_limitador", 2.0);
        ratio(Row::Redis, 1, Mode::Redis, "times_limitador", 1.3);
        ratio(Row::Memory, 1, Mode::RedisCached, "times_limitador_cached", 1.0);
    }

    /// How long checks over one connection took in all rounds.
    pub(super) fn latencies(&self) -> Latencies {
        let all = |row| {
            let mut all = histogram();
            for measured in self.of(row, 1) {
                all.add(&measured.latencies).expect("histograms of one kind");
            }
            all
        };
        Latencies { echo: all(Row::Echo), memory: all(Row::Memory), redis: all(Row::Redis) }
    }

    fn of(&self, row: Row, connections: usize) -> impl Iterator<Item = &Measured> {
        self.measured
            .iter()
            .filter(move |measured| (measured.row, measured.connections) == (row, connections))
    }
}

fn add(section: &mut Section, row: Row, connections: usize, rounds: &[&Measured]) {
    let (key, label) = (format!("{}.{connections}", row.key()), format!("{} x {connections}", row.label()));
    let mut figure = |name: &str, unit: &str, value: &dyn Fn(&Measured) -> f64| {
        let spread = Spread::of(rounds.iter().map(|measured| value(measured)));
        section.figure(format!("{key}.{name}"), format!("{label}, {unit}"), spread);
    };
    figure("per_second", "a second", &|measured| measured.per_second);
    figure("p50_us", "p50 us", &Measured::p50);
    figure("p99_us", "p99 us", &Measured::p99);
    if row == Row::Redis {
        figure("redis_cpu_us", "Redis CPU us", &|measured| measured.redis_cpu);
    }
}
