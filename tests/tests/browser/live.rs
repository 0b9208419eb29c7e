use super::{check, press, server_and_browser, spend, url};

#[tokio::test]
async fn the_overview_shows_what_happens_after_it_was_loaded() {
    let (server, browser) = server_and_browser().await;
    browser.wait_for("No fileserver has told its pressure.").await;
    browser.evaluate("window.loaded = 'once'").await;
    press(&server).await;
    browser.wait_for("gitaly-01").await;
    browser.wait_for("user mallory: ").await;

    spend(&server, "alice", 200).await;
    assert_eq!(check(&server, "alice").await, 429);
    browser.wait_for("its limit of cpu").await;
    assert_eq!(browser.evaluate("window.loaded").await, "once", "it was loaded anew");
    assert_eq!(browser.console().await, [""; 0]);
    browser.close().await;
}

#[tokio::test]
async fn an_account_is_followed_second_by_second() {
    let (server, browser) = server_and_browser().await;
    browser.open(&url(&server, "/dashboard/accounts/user/alice")).await;
    browser.wait_for("Below its limits.").await;
    spend(&server, "alice", 200).await;
    browser.wait_for("Over its limit; below it in").await;
    browser.wait_for("200.0 CPU-s/min").await;
    assert_eq!(browser.console().await, [""; 0]);
    browser.close().await;
}

#[tokio::test]
async fn a_link_keeps_the_focus_when_what_is_around_it_is_made_anew() {
    let (server, browser) = server_and_browser().await;
    press(&server).await;
    browser.wait_for("user mallory: ").await;
    let focus = "(() => { const link = [...document.querySelectorAll('#live a')].find(a => a.textContent.includes('mallory')); \
                 link.focus(); window.before = link; return link === document.activeElement })()";
    assert_eq!(browser.evaluate(focus).await, true);
    spend(&server, "alice", 20).await;
    browser.wait_for("user alice").await;
    let is_kept =
        "document.activeElement.textContent === 'user mallory' && document.activeElement !== window.before";
    assert_eq!(browser.evaluate(is_kept).await, true);
    browser.close().await;
}
