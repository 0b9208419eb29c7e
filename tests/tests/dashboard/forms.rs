//! What the forms of the dashboard change, from where, and by whom.

use quota_tests::server::{MEMORY, TestServer};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;

use super::known;

const ADMIN: &str = "a-token-for-an-admin";
const READER: &str = "a-token-for-a-reader";
const BLOCK: [(&str, &str); 5] = [
    ("kind", "user"),
    ("id", "alice"),
    ("word", "blocked"),
    ("expires_in_seconds", "3600"),
    ("reason", "wild"),
];
const SAME: &[(&str, &str)] = &[("sec-fetch-site", "same-origin")];

/// A server that knows an admin and a reader.
async fn server() -> TestServer {
    let tokens = [known("admin", ADMIN), known("reader", READER)].join(", ");
    TestServer::start(MEMORY, &format!("auth.tokens = [{tokens}]")).await
}

/// What a browser that knows a password sends when a form is sent; where it is led afterwards is not followed.
async fn send(
    server: &TestServer,
    path: &str,
    password: &str,
    form: &[(&str, &str)],
    headers: &[(&'static str, &str)],
) -> reqwest::Response {
    let client = reqwest::Client::builder().redirect(Policy::none()).build().unwrap();
    let header = |(name, value): &(&'static str, &str)| {
        (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
    };
    let fields = form.iter().fold(reqwest::Url::parse("http://x/").unwrap(), |mut url, (name, value)| {
        url.query_pairs_mut().append_pair(name, value);
        url
    });
    let request = client.post(format!("http://{}{path}", server.http.address()));
    let request =
        request.basic_auth("me", Some(password)).headers(headers.iter().map(header).collect::<HeaderMap>());
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    request.body(fields.query().unwrap_or_default().to_owned()).send().await.unwrap()
}

async fn overrides(server: &TestServer) -> serde_json::Value {
    server.http.with_token(READER).get("/v1/overrides").await.json()["overrides"].clone()
}

#[tokio::test]
async fn an_override_is_made_and_removed_in_the_name_of_who_sends_the_form() {
    let server = server().await;
    let made = send(&server, "/dashboard/overrides", ADMIN, &BLOCK, SAME).await;
    assert_eq!(made.status(), 303);
    assert_eq!(made.headers()["location"], "/dashboard/overrides");
    let said = overrides(&server).await;
    assert_eq!(
        (&said[0]["blocked"], &said[0]["author"], &said[0]["reason"]),
        (&true.into(), &"admin".into(), &"wild".into())
    );
    let account = [("kind", "user"), ("id", "alice")];
    for _ in 0..2 {
        let removed = send(&server, "/dashboard/overrides/remove", ADMIN, &account, SAME).await;
        assert_eq!(removed.status(), 303, "it is gone, whoever was quicker");
    }
    assert_eq!(overrides(&server).await.as_array().unwrap().len(), 0);
}

/// What differs in a space, or in a `.git` more, is another account, and who it looks like stays free.
#[tokio::test]
async fn a_word_is_of_whom_it_names_and_of_nobody_that_looks_alike() {
    let server = server().await;
    let accounts = [("user", "alice\u{a0}"), ("user", "bob "), ("repo", "grp/app.git.git")];
    for (kind, id) in accounts {
        let form = BLOCK.map(|(name, old)| match name {
            "kind" => (name, kind),
            "id" => (name, id),
            _ => (name, old),
        });
        assert_eq!(send(&server, "/dashboard/overrides", ADMIN, &form, SAME).await.status(), 303, "{id:?}");
        let asked = [("kind", kind), ("id", id)];
        let found = server.http.with_token(READER).query("/dashboard/accounts", &asked).await;
        assert!(found.text().contains("Blocked."), "{id:?}: {}", found.text());
    }
    let page = server.http.with_token(ADMIN).get("/dashboard/overrides").await;
    let text = page.text();
    assert!(
        text.contains("user <bdi>alice\\u{a0}</bdi>") && text.contains("user <bdi>bob\\u{20}</bdi>"),
        "{text}"
    );
    assert!(text.contains("name=\"id\" value=\"alice\u{a0}\""), "a form names it as it is: {text}");
    let said = overrides(&server).await;
    let said: Vec<_> = said.as_array().unwrap().iter().map(|said| said["id"].as_str().unwrap()).collect();
    assert_eq!(said, ["grp/app.git.git", "alice\u{a0}", "bob "]);
    let node = [("mode", "shadow"), ("kind", ""), ("node", "gitaly-01 "), ("reason", "new disks")];
    assert_eq!(send(&server, "/dashboard/modes", ADMIN, &node, SAME).await.status(), 303);
    let modes = server.http.with_token(READER).get("/v1/modes").await.json();
    assert_eq!(modes["modes"][0]["node"], "gitaly-01 ");
}

#[tokio::test]
async fn what_another_site_makes_a_browser_send_is_refused() {
    let server = server().await;
    let host = server.http.address().to_string();
    let own = format!("http://{host}");
    let paths = [
        "/dashboard/overrides",
        "/dashboard/overrides/remove",
        "/dashboard/modes",
        "/dashboard/modes/remove",
    ];
    for path in paths {
        for headers in [
            &[("sec-fetch-site", "cross-site")][..],
            &[("sec-fetch-site", "same-site"), ("origin", &own)],
            &[("origin", "http://evil.example")],
            &[("origin", "null")],
            &[],
        ] {
            let refused = send(&server, path, ADMIN, &BLOCK, headers).await;
            assert_eq!(refused.status(), 403, "{path} {headers:?}");
            assert!(refused.text().await.unwrap().contains("cross-origin"), "{path} {headers:?}");
        }
    }
    assert_eq!(overrides(&server).await.as_array().unwrap().len(), 0);
    // A browser that says no more than the origin, as over plain HTTP.
    let made = send(&server, "/dashboard/overrides", ADMIN, &BLOCK, &[("origin", &own)]).await;
    assert_eq!(made.status(), 303);
}

#[tokio::test]
async fn a_reader_sees_what_is_said_and_no_form_and_may_change_nothing() {
    let server = server().await;
    assert_eq!(send(&server, "/dashboard/overrides", ADMIN, &BLOCK, SAME).await.status(), 303);
    for (token, is_admin) in [(READER, false), (ADMIN, true)] {
        for path in ["/dashboard/overrides", "/dashboard/accounts/user/alice"] {
            let page = server.http.with_token(token).get(path).await;
            assert!(page.text().contains("wild"), "{path}: {}", page.text());
            assert_eq!(page.text().contains("method=\"post\""), is_admin, "{path}: {}", page.text());
        }
    }
    let paths = [
        "/dashboard/overrides",
        "/dashboard/overrides/remove",
        "/dashboard/modes",
        "/dashboard/modes/remove",
    ];
    for path in paths {
        assert_eq!(send(&server, path, READER, &BLOCK, SAME).await.status(), 403, "{path}");
        assert_eq!(send(&server, path, "nobody's", &BLOCK, SAME).await.status(), 401, "{path}");
    }
    assert_eq!(overrides(&server).await.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn what_is_wrong_is_told_with_its_field_and_what_was_typed() {
    let server = server().await;
    for (field, value, said) in [
        ("reason", "", "<b>reason</b>"),
        ("id", "", "<b>id</b>"),
        ("kind", "group", "<b>kind</b>"),
        ("word", "nonsense", "<b>override</b>"),
        ("word", "weight", "<b>weight</b>"),
        ("word", "limits", "<b>limits</b>"),
        ("expires_in_seconds", "soon", "<b>expires_in_seconds</b>"),
        ("expires_in_seconds", "-1", "<b>expires_in_seconds</b>"),
        ("expires_in_seconds", "1e99", "<b>expires_in_seconds</b>"),
    ] {
        let form = BLOCK.map(|(name, old)| if name == field { (name, value) } else { (name, old) });
        let refused = send(&server, "/dashboard/overrides", ADMIN, &form, SAME).await;
        assert_eq!(refused.status(), 400, "{field} = {value:?}");
        let text = refused.text().await.unwrap();
        assert!(text.contains(said), "{field} = {value:?}: {text}");
        let kept = if field == "id" { "value=\"wild\"" } else { "value=\"alice\"" };
        assert!(text.contains(kept), "{field} = {value:?}: {text}");
    }
    let hostile = [("kind", "user"), ("id", "\"><script>"), ("word", "weight"), ("weight", "<b>")];
    let text = send(&server, "/dashboard/overrides", ADMIN, &hostile, SAME).await.text().await.unwrap();
    assert!(text.contains("&quot;&gt;&lt;script&gt;") && !text.contains("\"><script>"), "{text}");

    for (form, said) in [
        (vec![("mode", "shadow")], "<b>reason</b>"),
        (vec![("mode", "never"), ("reason", "r")], "<b>mode</b>"),
        (vec![("mode", "off"), ("reason", "r"), ("kind", "user"), ("node", "gitaly-01")], "<b>kind</b>"),
    ] {
        let refused = send(&server, "/dashboard/modes", ADMIN, &form, SAME).await;
        let (status, text) = (refused.status(), refused.text().await.unwrap());
        assert!(status == 400 && text.contains(said), "{form:?}: {text}");
    }
    assert_eq!(overrides(&server).await.as_array().unwrap().len(), 0);
}

#[tokio::test]
async fn a_part_is_switched_and_switched_back() {
    let server = server().await;
    let mode = [("mode", "shadow"), ("kind", ""), ("node", "gitaly-01"), ("reason", "new disks")];
    assert_eq!(send(&server, "/dashboard/modes", ADMIN, &mode, SAME).await.status(), 303);
    let page = server.http.with_token(READER).get("/").await;
    let warning = "<strong>Switched to shadow: <bdi>fileserver gitaly-01</bdi></strong>. <bdi>new disks</bdi> (<bdi>admin</bdi>, ";
    assert!(page.text().contains(warning), "{}", page.text());
    let part = [("kind", ""), ("node", "gitaly-01")];
    assert_eq!(send(&server, "/dashboard/modes/remove", ADMIN, &part, SAME).await.status(), 303);
    assert!(!server.http.with_token(READER).get("/").await.text().contains("class=\"warning\""));
}

#[tokio::test]
async fn the_rest_of_the_api_takes_nothing_that_another_page_sends() {
    let server = TestServer::start(MEMORY, "").await;
    let url = format!("http://{}/v1/report", server.http.address());
    let client = reqwest::Client::new();
    let report = async |header: Option<(&str, &str)>| {
        let request = client.post(&url).body(r#"{ "charges": [] }"#);
        let request =
            header.map_or(request.try_clone().unwrap(), |(name, value)| request.header(name, value));
        request.send().await.unwrap().status().as_u16()
    };
    for other in
        [("sec-fetch-site", "cross-site"), ("origin", "https://elsewhere.example"), ("origin", "null")]
    {
        assert_eq!(report(Some(other)).await, 403, "{other:?}");
    }
    assert_eq!(report(Some(("sec-fetch-site", "same-origin"))).await, 200);
    assert_eq!(report(None).await, 200, "who is no browser says nothing of it");
}
