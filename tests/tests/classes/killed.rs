//! Processes that hold slots, and are killed.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, PipeWriter, Write as _, pipe};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use quota_tests::redis::RedisServer;
use quota_tests::server::ServerProcess;
use serde_json::json;

use super::until_so;

const CAP: u32 = 10;

/// So many are looked at in CI; `QUOTA_SLOT_ACQUISITIONS` says another number.
const ACQUISITIONS: usize = 2_000;

const HOLDERS: usize = 8;

/// Holders that write to one pipe.
struct Holders {
    endpoints: [String; 2],
    writer: PipeWriter,
    started: usize,
    running: Vec<(String, Child)>,
}

impl Holders {
    fn start(&mut self, more: &[&str]) -> String {
        self.started += 1;
        let name = format!("holder-{}", self.started);
        let child = Command::new(env!("CARGO_BIN_EXE_quota-holder"))
            .args(["--endpoint", &self.endpoints[self.started % 2], "--class", "ci", "--name", &name])
            .args(more)
            .stdout(Stdio::from(self.writer.try_clone().unwrap()))
            .spawn()
            .unwrap();
        self.running.push((name.clone(), child));
        name
    }

    /// What it held ends with it; those that read hear of it by the same pipe.
    fn kill(&mut self, which: usize) -> String {
        let (name, mut child) = self.running.swap_remove(which);
        child.kill().unwrap();
        child.wait().unwrap();
        writeln!(self.writer, "x {name} - 0").unwrap();
        name
    }
}

impl Drop for Holders {
    fn drop(&mut self) {
        while !self.running.is_empty() {
            self.kill(0);
        }
    }
}

async fn server(redis: &RedisServer, lease: &str) -> ServerProcess {
    ServerProcess::start(&[
        ("QUOTA__STORE__URL", &redis.url()),
        ("QUOTA__STORE__DEADLINE", "5s"),
        ("QUOTA__CLASSES__DEFAULT__LEASE", lease),
        ("QUOTA__CLASSES__DEFAULT__SLOTS", &CAP.to_string()),
    ])
    .await
}

fn lines() -> (PipeWriter, Receiver<String>) {
    let (reader, writer) = pipe().unwrap();
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(reader).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    (writer, receiver)
}

#[tokio::test]
async fn f23_what_a_killed_holder_had_is_free_within_its_lease() {
    let redis = RedisServer::start().await;
    // Longer than a busy machine keeps a process from renewing it.
    let server = server(&redis, "5s").await;
    let endpoint = format!("http://{}", server.grpc_address());
    let (writer, lines) = lines();
    let mut holders =
        Holders { endpoints: [endpoint.clone(), endpoint], writer, started: 0, running: Vec::new() };
    holders.start(&["--leases", "1", "--keep", "10"]);
    let told = lines.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(told.starts_with("+ holder-1 ") && told.ends_with(" 10"), "{told}");
    let acquire = json!({ "action": "acquire", "class": "ci", "holder": "another", "count": 10 });
    assert_eq!(server.http.post("/v1/slots", &acquire).await.status, 503);
    holders.kill(0);
    let killed = Instant::now();
    until_so("all of its slots are free", async || {
        let answer = server.http.post("/v1/slots", &acquire).await;
        answer.status == 200 && answer.json()["count"] == 10
    })
    .await;
    println!("10 slots were free {:?} after their holder was killed, of a lease of 5 s", killed.elapsed());
}

/// Eight processes by two servers, killed at random, and a Redis that is killed and comes back without its data.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f23_never_are_more_held_than_the_cap_whoever_is_killed() {
    let wanted =
        std::env::var("QUOTA_SLOT_ACQUISITIONS").map_or(ACQUISITIONS, |number| number.parse().unwrap());
    let seed = fastrand::u64(..);
    let mut random = Rng::with_seed(seed);
    let mut redis = RedisServer::start().await;
    let servers = [server(&redis, "2s").await, server(&redis, "2s").await];
    let endpoints = servers.each_ref().map(|server| format!("http://{}", server.grpc_address()));
    let (writer, lines) = lines();
    let mut holders = Holders { endpoints, writer, started: 0, running: Vec::new() };
    for _ in 0..HOLDERS {
        holders.start(&[]);
    }
    let mut held: HashMap<String, HashMap<String, u32>> = HashMap::new();
    let (mut acquired, mut most, mut kills, mut restarts) = (0, 0, 0, 0);
    while acquired < wanted {
        let line = lines
            .recv_timeout(Duration::from_secs(60))
            .unwrap_or_else(|_| panic!("seed {seed}: nobody has a slot"));
        let [sign, name, lease, count] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let of_holder = held.entry(name.to_owned()).or_default();
        match sign {
            "+" => {
                acquired += 1;
                of_holder.insert(lease.to_owned(), count.parse().unwrap());
            }
            "-" => drop(of_holder.remove(lease)),
            _ => drop(held.remove(name)),
        }
        let sum: u32 = held.values().flat_map(HashMap::values).sum();
        most = most.max(sum);
        assert!(sum <= CAP, "seed {seed}, acquisition {acquired}: {sum} of {CAP} are held: {held:?}");
        if sign == "+" && random.usize(..wanted / 20) == 0 {
            holders.kill(random.usize(..HOLDERS));
            holders.start(&[]);
            kills += 1;
        }
        // Twice, at about a third and two thirds.
        if restarts < 2 && acquired > (restarts + 1) * wanted / 3 {
            restarts += 1;
            redis.kill().await;
            redis.restart().await;
        }
    }
    println!(
        "seed {seed}: {acquired} acquisitions, {kills} killed, {restarts} restarts of Redis: {most} of {CAP} at the most"
    );
    assert!(most > CAP / 2 && kills > 0 && restarts == 2, "seed {seed} proves little");
}
