use quota_tests::browser::Look;

use super::{check, press, server_and_browser, spend, url};

const VIEWS: [&str; 7] = [
    "/",
    "/dashboard/top",
    "/dashboard/denials",
    "/dashboard/classes",
    "/dashboard/overrides",
    "/dashboard/accounts/user/alice",
    "/dashboard/accounts/user/mallory?node=gitaly-01",
];

#[tokio::test]
async fn without_scripts_every_page_is_read_and_forms_work() {
    let (server, browser) = server_and_browser().await;
    press(&server).await;
    spend(&server, "alice", 200).await;
    assert_eq!(check(&server, "alice").await, 429);
    browser.disable_scripts().await;
    let shown = [
        "gitaly-01",
        "user alice",
        "its limit of cpu",
        "any number",
        "Say something",
        "Over its limit",
        "On gitaly-01",
    ];
    for (path, text) in VIEWS.into_iter().zip(shown) {
        browser.open(&url(&server, path)).await;
        assert!(browser.text().await.contains(text), "{path}: {}", browser.text().await);
    }
    browser.open(&url(&server, "/dashboard/overrides?kind=user&id=bob")).await;
    browser.fill("#say [name=reason]", "without scripts").await;
    browser.click("#say button").await;
    browser.wait_for("without scripts").await;
    assert_eq!(check(&server, "bob").await, 429);
    browser.close().await;
}

/// Nothing is cut off on a phone, in either colours, and nothing is complained of.
#[tokio::test]
async fn every_page_fits_on_a_phone() {
    let (server, browser) = server_and_browser().await;
    press(&server).await;
    let long = "a-name-without-any-space-".repeat(20);
    for user in ["alice", &long] {
        spend(&server, user, 200).await;
        assert_eq!(check(&server, user).await, 429);
    }
    let mut grounds = Vec::new();
    for is_dark in [false, true] {
        browser.look(Look { width: 390, height: 844, is_dark }).await;
        for path in VIEWS {
            browser.open(&url(&server, path)).await;
            let widths = browser.evaluate("[document.documentElement.scrollWidth, innerWidth]").await;
            assert_eq!(widths[0], widths[1], "{path} can be moved sideways");
        }
        grounds.push(browser.evaluate("getComputedStyle(document.body).backgroundColor").await);
    }
    assert_ne!(grounds[0], grounds[1], "light and dark");
    assert_eq!(browser.console().await, [""; 0]);
    browser.close().await;
}
