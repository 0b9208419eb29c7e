use fantoccini::key::Key;
use quota_tests::browser::Browser;
use quota_tests::server::{MEMORY, TestServer};
use quota_tests::wait::{PATIENCE, until};

use super::{check, server_and_browser, url};

#[tokio::test]
async fn an_override_made_in_the_page_refuses_the_account_until_it_is_removed() {
    let (server, browser) = server_and_browser().await;
    browser.click("nav a[href='/dashboard/overrides']").await;
    browser.fill("#say [name=id]", "alice").await;
    // Without a reason it is refused, with the field and what was typed.
    browser.click("#say button").await;
    browser.wait_for("reason must say why").await;
    assert_eq!(browser.evaluate("document.querySelector('#say [name=id]').value").await, "alice");
    assert_eq!(browser.evaluate("document.activeElement.name").await, "reason");
    assert_eq!(check(&server, "alice").await, 200);

    browser.press("runs wild, ticket 17").await;
    browser.click("#say button").await;
    browser.wait_for("runs wild, ticket 17").await;
    assert_eq!(browser.url().await, url(&server, "/dashboard/overrides"), "a reload sends nothing again");
    assert_eq!(check(&server, "alice").await, 429);

    browser.click("button[aria-label='Remove the override of user alice']").await;
    browser.wait_for("Nothing is said of any account.").await;
    assert_eq!(check(&server, "alice").await, 200);
    // The status of the refused form is what the browser says of it.
    let console = browser.console().await;
    assert!(console.iter().all(|line| line.contains("400 (Bad Request)")), "{console:?}");
    browser.close().await;
}

#[tokio::test]
async fn a_weight_and_limits_are_typed_where_they_are_chosen() {
    let (server, browser) = server_and_browser().await;
    browser.open(&url(&server, "/dashboard/overrides?kind=repo&id=project-1#say")).await;
    assert!(!browser.find("#say [name=cpu]").await.is_displayed().await.unwrap());
    browser.click("#say [value=limits]").await;
    browser.fill("#say [name=cpu]", "10s").await;
    browser.fill("#say [name=network]", "1GiB").await;
    browser.fill("#say [name=reason]", "mirrors by night").await;
    browser.click("#say button").await;
    browser.wait_for("limits cpu 10s network 1GiB").await;
    let said = server.http.get("/v1/overrides/repo/project-1").await.json();
    assert_eq!(said["limits"]["cpu"], "10s");
    browser.close().await;
}

#[tokio::test]
async fn the_keyboard_is_enough() {
    let (server, browser) = server_and_browser().await;
    browser.open(&url(&server, "/dashboard/overrides")).await;
    tab_to(&browser, "#say [name=id]").await;
    browser.press("alice").await;
    tab_to(&browser, "#say [name=reason]").await;
    browser.press("by keyboard").await;
    browser.press(&Key::Enter.to_string()).await;
    browser.wait_for("by keyboard").await;
    assert_eq!(check(&server, "alice").await, 429);
    tab_to(&browser, "button[aria-label='Remove the override of user alice']").await;
    browser.press(&Key::Enter.to_string()).await;
    browser.wait_for("Nothing is said of any account.").await;
    assert_eq!(check(&server, "alice").await, 200);
    browser.close().await;
}

/// Presses the key until an element has the focus, and the focus is seen.
async fn tab_to(browser: &Browser, selector: &str) {
    until(PATIENCE, &format!("tabs lead to {selector}"), async || {
        browser.press(&Key::Tab.to_string()).await;
        let is_there = format!("document.activeElement.matches(\"{selector}\")");
        (browser.evaluate(&is_there).await == true).then_some(())
    })
    .await;
    assert_eq!(browser.evaluate("getComputedStyle(document.activeElement).outlineStyle").await, "solid");
}

#[tokio::test]
async fn what_is_switched_down_is_said_on_every_page() {
    let (server, browser) = server_and_browser().await;
    browser.click("nav a[href='/dashboard/overrides']").await;
    browser.fill("#switch [name=reason]", "incident 9").await;
    browser.click("#switch button").await;
    for path in ["/", "/dashboard/top", "/dashboard/denials", "/dashboard/accounts/user/alice"] {
        browser.open(&url(&server, path)).await;
        browser.wait_for("Switched to shadow: everything. incident 9").await;
    }
    browser.open(&url(&server, "/dashboard/overrides")).await;
    browser.click("button[aria-label='Switch back everything']").await;
    browser.wait_for("Limits are enforced as they are configured.").await;
    assert_eq!(browser.console().await, [""; 0]);
    browser.close().await;
}

#[tokio::test]
async fn a_form_of_another_site_changes_nothing() {
    let (server, browser) = server_and_browser().await;
    // Another port is another origin, of the same site; a page without an address is of none.
    let other = TestServer::start(MEMORY, "").await;
    let form = format!(
        "const form = document.createElement('form'); form.method = 'post'; form.action = '{}'; \
         for (const [name, value] of Object.entries({{kind: 'user', id: 'alice', word: 'blocked', reason: 'csrf'}})) {{ \
         const field = document.createElement('input'); field.name = name; field.value = value; form.append(field); }} \
         document.body.append(form); form.submit()",
        url(&server, "/dashboard/overrides")
    );
    for from in ["about:blank".to_owned(), format!("http://{}/healthz", other.http.address())] {
        browser.open(&from).await;
        browser.evaluate(&format!("(() => {{ {form} }})()")).await;
        browser.wait_for("This is taken from a page of this server alone").await;
    }
    assert_eq!(check(&server, "alice").await, 200);
    browser.close().await;
}
