//! The dashboard over HTTP: what is on it, that no name is markup, and that nothing comes from elsewhere.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

use quota_tests::redis::RedisServer;
use quota_tests::server::{MEMORY, TestServer};
use serde_json::json;

const HOSTILE: &str = "<script>alert('x')</script>";

/// A fileserver on which one account is cut, both with names that would be markup.
async fn server() -> TestServer {
    let settings = "adapt.memory.rule = \"blame\"\nlimits.user.memory.mode = \"enforce\"\n";
    let server = TestServer::start(MEMORY, settings).await;
    let held = 60.0 * f64::from(1 << 30);
    let heaviest =
        json!([{ "kind": "user", "id": HOSTILE, "memory": held, "recent": { "memory": held / 6.0 } }]);
    let pressure = json!({
        "node": format!("gitaly {HOSTILE}"), "cpu": 0.5, "memory": 0.95, "events": ["oom_kill"],
        "capacity": { "memory": 2_147_483_648_u64 }, "active": { "user": 10 }, "heaviest": heaviest,
    });
    let answer = server.http.post("/v1/pressure", &pressure).await;
    assert_eq!(answer.json()["accounts"].as_array().map(Vec::len), Some(1), "{}", answer.text());
    server
}

#[tokio::test]
async fn the_overview_has_every_fileserver_and_who_is_cut() {
    let server = server().await;
    let page = server.http.get("/").await;
    assert_eq!(page.status, 200);
    let escaped = "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;";
    let text = page.text();
    assert!(
        text.contains(&format!("gitaly {escaped}")) && text.contains(&format!("user {escaped}: ")),
        "{text}"
    );
    assert!(!text.contains(HOSTILE), "{text}");

    // The link leads to the account.
    let (_, link) = text.split_once("href=\"/dashboard/accounts/user/").expect("a link");
    let link = format!("/dashboard/accounts/user/{}", link.split('"').next().unwrap());
    let account = server.http.get(&link).await;
    assert_eq!(account.status, 200, "{}", account.text());
    assert!(account.text().contains(&format!("<h1>user {escaped}</h1>")), "{}", account.text());
    assert!(account.text().contains("while pressure was"), "why it is cut: {}", account.text());
}

#[tokio::test]
async fn nothing_comes_from_elsewhere() {
    let server = server().await;
    for path in ["/", "/dashboard/accounts/user/alice", "/dashboard/style.css", "/dashboard/live.js"] {
        let answer = server.http.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        let policy = answer.header("content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        let text = answer.text();
        assert!(
            !text.contains("://") && !text.contains("style=") && !text.contains("onclick"),
            "{path}: {text}"
        );
    }
}

#[tokio::test]
async fn what_is_looked_up_is_shown_or_refused_by_its_field() {
    let server = server().await;
    let found = server.http.query("/dashboard/accounts", &[("kind", "repo"), ("id", "group/a b")]).await;
    assert_eq!(found.status, 200);
    assert!(found.text().contains("<h1>repo group/a b</h1>"), "{}", found.text());
    let refused = server.http.query("/dashboard/accounts", &[("kind", "ip"), ("id", "nonsense")]).await;
    assert_eq!((refused.status, refused.field().as_deref()), (400, Some("id")));
}

#[tokio::test]
async fn a_browser_shows_a_token_as_its_password_and_only_for_pages() {
    let token = "a-token-for-reading";
    let server = TestServer::start(MEMORY, &format!("auth.tokens = [{}]", reader(token))).await;
    let url = |path: &str| format!("http://{}{path}", server.http.address());
    let client = reqwest::Client::new();
    let asked = client.get(url("/")).send().await.unwrap();
    assert_eq!(
        (asked.status().as_u16(), &asked.headers()["www-authenticate"]),
        (401, &"Basic realm=\"quota\"".parse().unwrap())
    );
    for (path, password, status) in [("/", token, 200), ("/", "another", 401), ("/v1/nodes", token, 401)] {
        let answer = client.get(url(path)).basic_auth("me", Some(password)).send().await.unwrap();
        assert_eq!(answer.status(), status, "{path} {password}");
    }
    assert_eq!(client.get(url("/v1/nodes")).bearer_auth(token).send().await.unwrap().status(), 200);
}

fn reader(token: &str) -> String {
    use sha2::{Digest, Sha256};
    format!("{{ name = \"me\", role = \"reader\", sha256 = \"{:x}\" }}", Sha256::digest(token))
}

#[tokio::test]
async fn the_overview_is_sent_anew_and_ends_with_the_server() {
    let server = server().await;
    let live = format!("http://{}/dashboard/live", server.http.address());
    let mut answer = reqwest::get(live).await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    for _ in 0..2 {
        let event = answer.chunk().await.unwrap().expect("an event");
        let event = std::str::from_utf8(&event).unwrap();
        assert!(event.starts_with("data: <h1>Fileservers</h1>") && !event.contains(HOSTILE), "{event}");
    }
    server.stop().await;
    while answer.chunk().await.is_ok_and(|chunk| chunk.is_some()) {}
}

#[tokio::test]
async fn the_live_page_is_told_that_it_is_old_while_the_store_is_lost() {
    let redis = RedisServer::start().await;
    let server = TestServer::start(&redis.url(), "").await;
    drop(redis);
    let mut answer = reqwest::get(format!("http://{}/dashboard/live", server.http.address())).await.unwrap();
    let event = answer.chunk().await.unwrap().expect("an event");
    assert!(event.starts_with(b"event: old\n"), "{}", String::from_utf8_lossy(&event));
}
