//! The dashboard over HTTP: what is on it, that no name is markup, that nothing comes from elsewhere, and who may do what on
//! it. What a browser makes of it is in `browser/`.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests report by panicking")]

mod classes;
mod forms;

use quota_tests::redis::RedisServer;
use quota_tests::server::{MEMORY, TestServer};
use reqwest::Method;
use serde_json::json;
use sha2::{Digest as _, Sha256};

const PAGES: [&str; 7] = [
    "/",
    "/dashboard/accounts/user/alice",
    "/dashboard/top",
    "/dashboard/denials",
    "/dashboard/classes",
    "/dashboard/overrides",
    "/dashboard/modes",
];

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
    assert!(text.contains("<dt>Limits cut</dt><dd>1</dd>"), "{text}");

    // The link leads to the account.
    let (_, link) = text.split_once("href=\"/dashboard/accounts/user/").expect("a link");
    let link = format!("/dashboard/accounts/user/{}", link.split('"').next().unwrap());
    let account = server.http.get(&link).await;
    assert_eq!(account.status, 200, "{}", account.text());
    assert!(account.text().contains(&format!("<h1>user {escaped}</h1>")), "{}", account.text());
    assert!(account.text().contains("while pressure was"), "why it is cut: {}", account.text());
    assert!(
        account.text().contains(&format!("<h2>On <bdi>gitaly {escaped}</bdi></h2>")),
        "{}",
        account.text()
    );
}

#[tokio::test]
async fn who_is_heaviest_and_who_is_refused_and_why_is_told_by_name() {
    let settings = "limits.user.network.mode = \"shadow\"\nlimits.user.network.initial = \"1MiB\"\n\
                    limits.user.network.min = \"1MiB\"\nlimits.user.network.max = \"1MiB\"\n";
    let server = TestServer::start(MEMORY, settings).await;
    let charge = |user: &str, cost: serde_json::Value| json!({ "accounts": { "user": user }, "cost": cost });
    let charges =
        [charge(HOSTILE, json!({ "cpu": 200 })), charge("bob", json!({ "cpu": 1, "network": 9_000_000 }))];
    assert_eq!(server.http.post("/v1/report", &json!({ "charges": charges })).await.status, 200);
    let blocked = json!({ "blocked": true, "reason": "<b>ticket</b>" }).to_string();
    server.http.account_override(Method::PUT, "user", "eve", &blocked).await;
    for (user, status) in [(HOSTILE, 429), ("bob", 200), ("eve", 429)] {
        let check = json!({ "accounts": { "user": user }, "rpc": "/a.B/<i>" });
        assert_eq!(server.http.post("/v1/check", &check).await.status, status, "{user}");
    }

    for (user, state) in [("eve", "Blocked."), ("bob", "Below its limits.")] {
        let account = server.http.get(&format!("/dashboard/accounts/user/{user}")).await;
        assert!(account.text().contains(state), "{}", account.text());
    }
    let top = server.http.get("/dashboard/top?kind=user&resource=cpu&node=").await;
    let (heaviest, lighter) = (top.text().find("user <bdi>&lt;script"), top.text().find("user <bdi>bob"));
    assert!(heaviest.is_some() && heaviest < lighter, "{}", top.text());
    assert!(
        top.text().contains("200.0 CPU-s/min") && top.text().contains("class=\"over\""),
        "{}",
        top.text()
    );

    let refused = server.http.get("/dashboard/denials?kind=&since_seconds=300").await;
    let (refused, would_have_been) = refused.text().split_once("<h2>Would have been refused</h2>").unwrap();
    assert!(
        refused.contains("its limit of cpu") && refused.contains("/<wbr>a.B/<wbr>&lt;i&gt;"),
        "{refused}"
    );
    assert!(refused.contains("blocked: &lt;b&gt;ticket&lt;/b&gt;"), "{refused}");
    assert!(would_have_been.contains("user <bdi>bob") && would_have_been.contains("its limit of network"));
    assert!(!refused.contains("user <bdi>bob"), "{refused}");

    let overview = server.http.get("/").await;
    assert!(overview.text().contains("<dt>Refused in the last hour</dt><dd>2</dd>"), "{}", overview.text());
    assert!(overview.text().contains("<dt>Refused in shadow</dt><dd>1</dd>"), "{}", overview.text());
    for page in [top.text(), refused, overview.text()] {
        assert!(!page.contains(HOSTILE) && !page.contains("<b>ticket"), "{page}");
    }
}

#[tokio::test]
async fn nothing_comes_from_elsewhere() {
    let server = server().await;
    for path in PAGES.into_iter().chain(["/dashboard/style.css", "/dashboard/live.js"]) {
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
    assert_eq!((refused.status, refused.header("content-type")), (400, Some("text/html; charset=utf-8")));
    assert!(refused.text().contains("<p>id: "), "{}", refused.text());
    for (path, field) in [
        ("/dashboard/top?kind=group", "kind: "),
        ("/dashboard/denials?since_seconds=0", "since_seconds: "),
        ("/dashboard/accounts/user/alice?node=%00", "node: "),
    ] {
        let refused = server.http.get(path).await;
        assert!(refused.status == 400 && refused.text().contains(field), "{path}: {}", refused.text());
    }
}

#[tokio::test]
async fn a_browser_shows_a_token_as_its_password_and_only_for_pages() {
    let (token, fileserver) = ("a-token-for-reading", "a-token-of-another-role");
    let tokens = [known("reader", token), known("fileserver", fileserver)].join(", ");
    let server = TestServer::start(MEMORY, &format!("auth.tokens = [{tokens}]")).await;
    let url = |path: &str| format!("http://{}{path}", server.http.address());
    let client = reqwest::Client::new();
    let asked = client.get(url("/")).send().await.unwrap();
    assert_eq!(
        (asked.status().as_u16(), &asked.headers()["www-authenticate"]),
        (401, &"Basic realm=\"quota\"".parse().unwrap())
    );
    let pages = PAGES.into_iter().chain(["/dashboard/accounts?kind=user&id=alice"]);
    let shown = [(token, 200), (fileserver, 403), ("nobody's", 401)];
    let of_pages = pages.flat_map(|page| shown.map(|(password, status)| (page, password, status)));
    for (path, password, status) in of_pages.chain([("/v1/nodes", token, 401)]) {
        let answer = client.get(url(path)).basic_auth("me", Some(password)).send().await.unwrap();
        assert_eq!(answer.status(), status, "{path} {password}");
    }
    assert_eq!(client.get(url("/v1/nodes")).bearer_auth(token).send().await.unwrap().status(), 200);
}

fn known(role: &str, token: &str) -> String {
    let nodes = if role == "fileserver" { "nodes = [\"gitaly-01\"], " } else { "" };
    format!("{{ name = \"{role}\", role = \"{role}\", {nodes}sha256 = \"{:x}\" }}", Sha256::digest(token))
}

/// The overview, as the script on it asks for it.
async fn live(server: &TestServer) -> reqwest::Response {
    let url = format!("http://{}/", server.http.address());
    reqwest::Client::new().get(url).header("accept", "text/event-stream").send().await.unwrap()
}

#[tokio::test]
async fn the_overview_is_sent_anew_and_ends_with_the_server() {
    let server = server().await;
    let mut answer = live(&server).await;
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    for _ in 0..2 {
        let event = answer.chunk().await.unwrap().expect("an event");
        let event = std::str::from_utf8(&event).unwrap();
        assert!(event.starts_with("data: <dl class=\"glance\">") && !event.contains(HOSTILE), "{event}");
    }
    server.stop().await;
    while answer.chunk().await.is_ok_and(|chunk| chunk.is_some()) {}
}

#[tokio::test]
async fn the_live_page_is_told_that_it_is_old_while_the_store_is_lost() {
    let redis = RedisServer::start().await;
    let server = TestServer::start(&redis.url(), "").await;
    drop(redis);
    let mut answer = live(&server).await;
    let event = answer.chunk().await.unwrap().expect("an event");
    assert!(event.starts_with(b"event: old\n"), "{}", String::from_utf8_lossy(&event));
}
