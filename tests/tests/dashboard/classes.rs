use quota_tests::server::{MEMORY, TestServer};
use quota_tests::wait::{PATIENCE, until};
use serde_json::json;

#[tokio::test]
async fn classes_are_shown_with_what_is_in_progress_of_their_caps() {
    let settings = "classes.default.lease = \"1s\"\n\
        classes.ci = { slots = 10, service = \"patient\", max_wait = \"3s\", max_queue = 7, quota = 0.5, max_run = \"2m\" }\n";
    let server = TestServer::start(MEMORY, settings).await;
    let acquire = json!({ "action": "acquire", "class": "ci", "holder": "web-01", "count": 4 });
    until(PATIENCE, "slots", async || {
        (server.http.post("/v1/slots", &acquire).await.status == 200).then_some(())
    })
    .await;
    let page = server.http.get("/dashboard/classes").await;
    let text = page.text();
    let row = text.split("<tr>").find(|row| row.contains(">ci<")).unwrap_or_else(|| panic!("{text}"));
    for cell in [
        ">4<",
        ">10<",
        "aria-label=\"40 %\"",
        "waits for 3 s at most, with 7 others; runs for 2 min at most",
        ">50 %<",
    ] {
        assert!(row.contains(cell), "{cell}: {row}");
    }
    let uncapped =
        text.split("<tr>").find(|row| row.contains("(requests that name none)")).expect("a default");
    assert!(uncapped.contains(">any number<") && uncapped.contains(">none<"), "{uncapped}");
}
