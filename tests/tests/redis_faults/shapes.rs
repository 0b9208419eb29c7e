//! F05: replies that a script never gives are errors with a metric, and never an allow of the store.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use quota_tests::server::ServerProcess;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// What comes in place of a script's reply, as RESP has it: other types, arrays that are too short, numbers out of range,
/// states that are none, and a decision that what comes with it does not bear out.
const REPLIES: [&str; 19] = [
    "_\r\n",
    "$-1\r\n",
    "*-1\r\n",
    "+OK\r\n",
    ":1\r\n",
    "#t\r\n",
    ",nan\r\n",
    ",inf\r\n",
    "$3\r\nnan\r\n",
    "%1\r\n+allowed\r\n:1\r\n",
    "*0\r\n",
    "*1\r\n:1\r\n",
    "*5\r\n*0\r\n*0\r\n*0\r\n*0\r\n*0\r\n",
    "*5\r\n:1764500000\r\n:0\r\n:1764500000\r\n:1\r\n:0\r\n",
    "*6\r\n:-1\r\n:0\r\n:1764500000\r\n:1\r\n:0\r\n$18\r\n\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\r\n",
    "*6\r\n,nan\r\n:0\r\n:1764500000\r\n:1\r\n:0\r\n$18\r\n\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\r\n",
    "*6\r\n:1764500000\r\n:0\r\n:1764500000\r\n:1\r\n:0\r\n:0\r\n",
    "*6\r\n:1764500000\r\n:0\r\n:1764500000\r\n:1\r\n:0\r\n$3\r\nnan\r\n",
    "*6\r\n:1764500000\r\n:0\r\n:1764500000\r\n:0\r\n:0\r\n$18\r\n\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\r\n",
];

/// What speaks as Redis does, and answers every script alike.
struct Liar {
    port: u16,
    reply: Arc<Mutex<&'static str>>,
    _serving: JoinSet<()>,
}

impl Liar {
    async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let (port, reply) = (listener.local_addr().unwrap().port(), Arc::new(Mutex::new(REPLIES[0])));
        let mut serving = JoinSet::new();
        let replies = Arc::clone(&reply);
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(answer(stream, Arc::clone(&replies)));
            }
        });
        Self { port, reply, _serving: serving }
    }
}

async fn answer(stream: TcpStream, reply: Arc<Mutex<&'static str>>) {
    let mut stream = BufReader::new(stream);
    while let Some(command) = command(&mut stream).await {
        let reply = if command == "EVALSHA" { *reply.lock().unwrap() } else { "+OK\r\n" };
        if stream.get_mut().write_all(reply.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// The name of the next command; none at the end.
async fn command(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let words = length(stream, '*').await?;
    let mut name = None;
    for _ in 0..words {
        let mut word = vec![0; length(stream, '$').await? + 2];
        stream.read_exact(&mut word).await.ok()?;
        word.truncate(word.len() - 2);
        name.get_or_insert(String::from_utf8(word).ok());
    }
    name?
}

/// The number in the next line, which is of an array or a string.
async fn length(stream: &mut BufReader<TcpStream>, sign: char) -> Option<usize> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    line.trim_end().strip_prefix(sign)?.parse().ok()
}

/// Errors of the store when it was asked for an admission, and checks that came to nothing.
async fn failures(server: &ServerProcess) -> u64 {
    let metrics = server.http.get("/metrics").await;
    let is_failure = |series: &str| {
        let of_store = series.starts_with("quota_store_errors_total{") && series.contains("\"admit\"");
        of_store || series.starts_with("quota_decisions_total{") && series.contains("\"error\"")
    };
    let lines = metrics.text().lines().filter_map(|line| line.rsplit_once(' '));
    lines.filter(|(series, _)| is_failure(series)).map(|(_, count)| count.parse::<u64>().unwrap()).sum()
}

#[tokio::test]
async fn f05_a_reply_of_a_wrong_shape_is_an_error_and_never_an_allow() {
    let liar = Liar::start().await;
    let url = format!("redis://127.0.0.1:{}", liar.port);
    let check = json!({ "accounts": { "user": "u" }, "price": { "cpu": 1.0 } });
    let charge = json!({ "accounts": { "user": "u" }, "cost": { "cpu": 1.0 } });
    for fail in ["open", "closed"] {
        let server =
            ServerProcess::start(&[("QUOTA__STORE__URL", &*url), ("QUOTA__STORE__FAIL", fail)]).await;
        for reply in REPLIES {
            *liar.reply.lock().unwrap() = reply;
            let before = failures(&server).await;
            let checked = server.http.post("/v1/check", &check).await;
            match checked.status {
                200 => assert_eq!((fail, &checked.json()["checked"]), ("open", &json!(false)), "{reply:?}"),
                status => assert!((500..=503).contains(&status), "{reply:?}: {}", checked.text()),
            }
            assert!(failures(&server).await > before, "{reply:?} is not told by a metric");
            let reported = server.http.post("/v1/report", &json!({ "charges": [charge] })).await;
            assert_eq!(reported.status, 503, "{reply:?}: {}", reported.text());
            assert_ne!(server.http.account("user", "u").await.status, 200, "{reply:?}");
        }
        assert_eq!(server.http.get("/healthz").await.status, 200);
        assert_eq!(server.log("panicked").len(), 0);
    }
}
