//! The dashboard over HTTP: what is on it, that no name is markup, and that nothing comes from elsewhere.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

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
