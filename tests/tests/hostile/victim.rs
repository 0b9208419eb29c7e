//! A server with accounts that something was spent on, to see that hostile input leaves both as they were.

use quota_tests::http::Answer;
use quota_tests::redis::RedisServer;
use quota_tests::server::{MEMORY, ServerProcess};
use serde_json::{Value, json};

/// The accounts that the hostile requests name.
pub(crate) const ACCOUNTS: &str = r#"{"repo":"r","user":"u","ip":"192.0.2.1"}"#;

/// Long, so that nothing leaves it while a test runs: buckets of ten seconds.
const WINDOW: &str = "10m";

pub(crate) struct Victim {
    pub(crate) server: ServerProcess,
    before: Vec<Value>,
    _redis: Option<RedisServer>,
}

impl Victim {
    pub(crate) async fn in_memory() -> Self {
        Self::on(MEMORY, None, &[]).await
    }

    /// One with further settings, such as `("QUOTA__HTTP__IDLE_TIMEOUT", "1s")`.
    pub(crate) async fn with(settings: &[(&str, &str)]) -> Self {
        Self::on(MEMORY, None, settings).await
    }

    /// One on each store.
    pub(crate) async fn each() -> [Self; 2] {
        let redis = RedisServer::start().await;
        [Self::in_memory().await, Self::on(&redis.url(), Some(redis), &[]).await]
    }

    async fn on(store: &str, redis: Option<RedisServer>, settings: &[(&str, &str)]) -> Self {
        let own = [("QUOTA__STORE__URL", store), ("QUOTA__WINDOW__LENGTH", WINDOW)];
        let server = ServerProcess::start(&[&own, settings].concat()).await;
        let cost = json!({ "cpu": 5.0, "memory": 1 << 20, "network": 1000 });
        let accounts: Value = serde_json::from_str(ACCOUNTS).unwrap();
        let report = json!({ "charges": [{ "accounts": accounts, "cost": cost }] });
        assert_eq!(server.http.post("/v1/report", &report).await.status, 200);
        let mut victim = Self { server, before: Vec::new(), _redis: redis };
        victim.before = victim.usage().await;
        victim
    }

    async fn usage(&self) -> Vec<Value> {
        let mut usage = Vec::new();
        for (kind, id) in [("repo", "r"), ("user", "u"), ("ip", "192.0.2.1")] {
            let answer = self.server.http.account(kind, id).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            usage.push(answer.json());
        }
        usage
    }

    /// Nothing was counted, nothing given back.
    pub(crate) async fn assert_untouched(&self, what: &str) {
        assert_eq!(self.usage().await, self.before, "{what}");
    }

    /// Sends a body, which must be refused for one of the fields, and change nothing.
    pub(crate) async fn refuses(&self, path: &str, body: impl Into<Vec<u8>>, field: &str) {
        let body = body.into();
        let what = format!("{path} {}", String::from_utf8_lossy(&body[..body.len().min(300)]));
        let answer = self.server.http.post_bytes(path, body).await;
        assert_refused(&answer, field, &what);
        self.assert_untouched(&what).await;
    }

    /// It answers, and no task of it has panicked.
    pub(crate) async fn assert_sound(&mut self) {
        self.assert_served().await;
        assert_eq!(self.server.log("panicked"), Vec::<String>::new());
        assert_eq!(self.server.process.exit_status(), None);
    }

    /// It answers by both protocols.
    async fn assert_served(&self) {
        let check = format!(r#"{{"accounts":{ACCOUNTS},"price":{{}}}}"#);
        let answer = self.server.http.post_bytes("/v1/check", check).await;
        assert_eq!((answer.status, &answer.json()["checked"]), (200, &json!(true)));
        let check = quota_proto::v1::CheckRequest {
            accounts: Some(quota_proto::v1::Accounts { user: Some("u".into()), ..Default::default() }),
            price: Some(quota_proto::v1::Cost::default()),
            ..Default::default()
        };
        assert!(self.server.grpc.clone().check(check).await.unwrap().into_inner().checked);
    }

    /// An attack, during which others are served all the while, and that costs it no more memory than this, in KiB.
    pub(crate) async fn bears<T>(&mut self, most: u64, attack: impl Future<Output = T>) -> T {
        let before = self.server.process.peak();
        let serving = async {
            loop {
                self.assert_served().await;
            }
        };
        let outcome = tokio::select! {
            // An answer that is late is a failure.
            () = serving => unreachable!("it goes on"),
            outcome = attack => outcome,
        };
        self.assert_sound().await;
        let grown = self.server.process.peak().saturating_sub(before);
        assert!(grown <= most, "{grown} KiB");
        outcome
    }
}

pub(crate) fn assert_refused(answer: &Answer, field: &str, what: &str) {
    assert_eq!(answer.status, 400, "{what}: {answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{what}");
    assert_eq!(answer.field().as_deref(), Some(field), "{what}: {}", answer.text());
}
