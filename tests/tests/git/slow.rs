//! Clones that last long and cost little, and many that cost a lot: neither is at the expense of other repositories (F29).

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures::future::join_all;
use quota_tests::server::MEMORY;
use quota_tests::wait::{PATIENCE, until};
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::world::World;

/// As many as may clone a repository at once.
const READERS: usize = 20;

/// What each takes in a second.
const TAKEN: usize = 1024;

/// More than what the kernel holds of a connection that nobody reads.
const LARGE: usize = 16 << 20;

/// Clones of one repository at once, which is at its limit soon.
const CLONES: usize = 8;

const RPC: &str = "/gitaly.SmartHTTPService/PostUploadPackWithSidechannel";

/// Nobody waits: who finds no room is refused.
fn settings() -> String {
    format!(
        "[[concurrency]]\nrpc = {RPC:?}\nper = \"repo\"\nlimit = {READERS}\nmax_queue = 0\nmax_wait = \"1s\"\n"
    )
}

/// Asks for a repository with this one commit, and returns what is behind the status line, which is good.
async fn fetch(world: &World, repo: &str, commit: &str, user: &str) -> BufReader<TcpStream> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = BufReader::new(socket.connect(world.address.parse().unwrap()).await.unwrap());
    let wanted = format!("0032want {commit}\n00000009done\n");
    let mut request = format!("POST /{repo}/git-upload-pack HTTP/1.1\r\nhost: {}\r\n", world.address);
    let credentials = BASE64_STANDARD.encode(format!("{user}:any"));
    write!(
        request,
        "authorization: Basic {credentials}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{wanted}",
        wanted.len()
    )
    .unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut line = String::new();
    stream.read_line(&mut line).await.unwrap();
    assert!(line.starts_with("HTTP/1.1 200 "), "{line:?}");
    stream
}

/// Goes on to read it slowly until it is dropped.
async fn read_slowly(mut stream: BufReader<TcpStream>) {
    let mut taken = [0; TAKEN];
    while stream.read_exact(&mut taken).await.is_ok() {
        sleep(Duration::from_secs(1)).await;
    }
}

/// A figure of the fileserver, as it last showed it.
async fn figure(world: &World, name: &str, label: &str) -> Option<f64> {
    let url = format!("http://{}/-/metrics", world.address);
    let text = reqwest::Client::builder()
        .no_proxy()
        .build()
        .unwrap()
        .get(url)
        .send()
        .await
        .ok()?
        .text()
        .await
        .ok()?;
    let is_it = |series: &str| series.starts_with(name) && series.contains(RPC) && series.contains(label);
    let value = text.lines().filter_map(|line| line.rsplit_once(' ')).find(|(series, _)| is_it(series));
    value.map(|(_, value)| value.parse().unwrap())
}

async fn until_shown(world: &World, name: &str, label: &str, value: f64) {
    until(PATIENCE, name, async || (figure(world, name, label).await == Some(value)).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f29_neither_slow_readers_nor_many_clones_of_one_repository_hold_up_another() {
    let world = World::with(&[("QUOTA__STORE__URL", MEMORY)], &settings()).await;
    let commit = world.add("a.git", 1, LARGE).await;
    let small = world.add("b.git", 1, 1000).await;
    world.add("d.git", 1, 1000).await;

    // All room of the one is taken by who hardly reads.
    let mut readers = JoinSet::new();
    for reader in 0..READERS {
        readers.spawn(read_slowly(fetch(&world, "a.git", &commit, &format!("reader-{reader}")).await));
    }
    until_shown(&world, "quota_client_requests_in_progress{", "", READERS as f64).await;
    let one_more = world.clone_of("a.git", "one-more", &[]).await;
    assert!(!one_more.succeeded, "there is no room");
    // An alert tells that from a machine that has too much to do: the queue is full, and the repository is not over its limits.
    until_shown(&world, "quota_client_requests_dropped_total{", "reason=\"queue_full\"", 1.0).await;
    let standing = world.server.http.get("/v1/accounts/repo/a?node=gitaly-01").await.json();
    assert_eq!(standing["over"], false, "{standing}");
    let took = until(PATIENCE, "another repository is fetched within a second", async || {
        let (began, mut pack) = (Instant::now(), Vec::new());
        fetch(&world, "b.git", &small, "light").await.read_to_end(&mut pack).await.unwrap();
        assert!(pack.windows(4).any(|bytes| bytes == b"PACK"));
        (began.elapsed() < Duration::from_secs(1)).then(|| began.elapsed())
    })
    .await;
    println!(
        "beside {READERS} slow readers, {} CPU-seconds in all, a fetch took {took:?}",
        standing["resources"]["cpu"]["used"]
    );

    // And one is cloned by many, until it is over its limit.
    let little = json!({ "limits": { "cpu": "100ms" }, "reason": "a test" }).to_string();
    let put = world.server.http.account_override(Method::PUT, "repo", "project", &little).await;
    assert_eq!(put.status, 200, "{}", put.text());
    let refused = until(PATIENCE, "the repository is over its limit", async || {
        let users: Vec<_> = (0..CLONES).map(|number| format!("cloner-{number}")).collect();
        let clones = join_all(users.iter().map(|user| world.clone_of("project.git", user, &[])));
        let (clones, other) = tokio::join!(clones, world.clone_of("d.git", "light", &[]));
        assert!(other.succeeded, "{}", other.terminal);
        clones.into_iter().find(|clone| !clone.succeeded)
    })
    .await;
    let said = "remote: repo project is over its CPU quota on gitaly-01; try again in ";
    assert!(refused.terminal.contains(said), "{}", refused.terminal);
    let other = world.clone_of("d.git", "light", &[]).await;
    assert!(other.succeeded, "{}", other.terminal);
    // They still read.
    until_shown(&world, "quota_client_requests_in_progress{", "", READERS as f64).await;
}
