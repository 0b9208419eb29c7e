use quota_core::Cost;
use quota_proto::v1;
use rand::rngs::StdRng;
use rand_distr::{Distribution as _, LogNormal, Pareto, Zipf};

/// Who asks, and what it costs.
pub(crate) struct Population {
    ranks: Zipf<f64>,
    cpu_micros: Pareto<f64>,
    network_bytes: Pareto<f64>,
    /// Held while the CPU was used.
    memory_bytes: LogNormal<f64>,
}

/// A request that comes.
pub(crate) struct Arrival {
    pub(crate) accounts: v1::Accounts,
    /// What it will have cost.
    pub(crate) cost: v1::Cost,
}

/// The tails of costs: most requests are cheap, and a few cost nearly all there is. Of these exponents the mean is finite, and
/// the variance is not.
const CPU_TAIL: f64 = 1.2;
const NETWORK_TAIL: f64 = 1.1;

/// The cheapest request.
const LEAST_CPU_MICROS: f64 = 1_000.0;
const LEAST_NETWORK_BYTES: f64 = 2_048.0;

/// The most that one costs: a minute of a core, and 10 GiB.
const MOST_CPU_MICROS: f64 = 60e6;
const MOST_NETWORK_BYTES: f64 = 10.0 * (1_u64 << 30) as f64;

/// The middle of what is held, and by how many factors of e it is spread.
const MIDDLE_MEMORY_BYTES: f64 = (32_u64 << 20) as f64;
const MEMORY_SPREAD: f64 = 1.0;

impl Population {
    /// So many of each kind, of which the n-th has 1/n^`exponent` of the requests of the first.
    pub(crate) fn new(accounts: u64, exponent: f64) -> Self {
        Self {
            ranks: Zipf::new(accounts as f64, exponent).expect("a number of accounts and an exponent"),
            cpu_micros: Pareto::new(LEAST_CPU_MICROS, CPU_TAIL).expect("a tail"),
            network_bytes: Pareto::new(LEAST_NETWORK_BYTES, NETWORK_TAIL).expect("a tail"),
            memory_bytes: LogNormal::new(MIDDLE_MEMORY_BYTES.ln(), MEMORY_SPREAD).expect("a spread"),
        }
    }

    /// The next request. Its repository, user and address are independent of each other.
    pub(crate) fn arrival(&self, random: &mut StdRng) -> Arrival {
        let mut rank = || self.ranks.sample(random) as u64;
        let (repo, user, ip) = (rank(), rank(), rank());
        let cpu_micros = self.cpu_micros.sample(random).min(MOST_CPU_MICROS);
        let network_bytes = self.network_bytes.sample(random).min(MOST_NETWORK_BYTES);
        let memory_byte_seconds = self.memory_bytes.sample(random) * cpu_micros / 1e6;
        Arrival {
            accounts: v1::Accounts {
                repo: Some(format!("project-{repo}")),
                user: Some(format!("user-{user}")),
                ip: Some(address(ip)),
            },
            cost: v1::Cost {
                cpu_micros: cpu_micros as u64,
                memory_byte_seconds: (memory_byte_seconds as u64).min(Cost::MAX),
                network_bytes: network_bytes as u64,
            },
        }
    }
}

/// One of the addresses that are nobody's on the Internet.
fn address(rank: u64) -> String {
    let [.., a, b, c] = rank.to_be_bytes();
    let network = 10 + (rank >> 24) % 100;
    format!("{network}.{a}.{b}.{c}")
}
