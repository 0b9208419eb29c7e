//! A real browser: headless Chromium, driven by its own `chromedriver` over WebDriver.

use std::path::PathBuf;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use fantoccini::actions::{InputSource as _, KeyAction, KeyActions};
use fantoccini::elements::Element;
use fantoccini::error::CmdError;
use fantoccini::wd::{Capabilities, WebDriverCompatibleCommand};
use fantoccini::{Client, ClientBuilder, Locator};
use http::Method;
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tempfile::TempDir;
use url::{ParseError, Url};

use crate::process::{Process, Program};
use crate::wait::{PATIENCE, until};

/// How a page is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Of the window, in CSS pixels.
    pub width: u32,
    /// The same.
    pub height: u32,
    /// Whether the reader wants dark colours.
    pub is_dark: bool,
}

/// A browser with one window and nobody's profile.
#[derive(Debug)]
pub struct Browser {
    client: Client,
    /// The browser ends with it: they talk through a pipe.
    _driver: Process,
    /// What both leave behind.
    _folder: TempDir,
}

impl Browser {
    /// Starts one.
    ///
    /// # Panics
    ///
    /// Panics where `chromedriver` or Chromium is missing, as every method does when the browser does not do as it is told.
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let driver = Program::new("chromedriver").arg("--port=0").env("TMPDIR", folder.path());
        let mut driver = driver.start();
        let line = driver.wait_for_line("started successfully on port").await;
        let port: String = line.chars().filter(char::is_ascii_digit).collect();
        // Chromium's own sandbox is not for root, and a container's /dev/shm is too small for it.
        let arguments =
            ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--remote-debugging-pipe"];
        let capabilities = json!({
            "goog:chromeOptions": { "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL" },
        });
        let Value::Object(capabilities) = capabilities else { unreachable!("an object was written") };
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(Capabilities::from_iter(capabilities))
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .expect("a browser");
        Self { client, _driver: driver, _folder: folder }
    }

    /// Opens a page, and waits until it is loaded.
    pub async fn open(&self, url: &str) {
        self.client.goto(url).await.unwrap_or_else(|error| panic!("{url}: {error}"));
    }

    /// Where it is.
    pub async fn url(&self) -> String {
        self.client.current_url().await.expect("an address").to_string()
    }

    /// What a person sees of the page.
    pub async fn text(&self) -> String {
        self.client.find(Locator::Css("body")).await.expect("a page").text().await.expect("text")
    }

    /// Waits until the page shows a text.
    pub async fn wait_for(&self, text: &str) {
        let what = format!("the page shows {text:?}");
        until(PATIENCE, &what, async || {
            // While another page is loaded there is none.
            let body = self.client.find(Locator::Css("body")).await.ok()?;
            body.text().await.ok()?.contains(text).then_some(())
        })
        .await;
    }

    /// The first element of a CSS selector.
    pub async fn find(&self, selector: &str) -> Element {
        let found = self.client.find(Locator::Css(selector)).await;
        found.unwrap_or_else(|error| panic!("{selector}: {error}"))
    }

    /// Types into a field.
    pub async fn fill(&self, selector: &str, text: &str) {
        self.find(selector).await.send_keys(text).await.unwrap_or_else(|error| panic!("{selector}: {error}"));
    }

    /// Clicks on an element as soon as it is there; it may lead to another page.
    pub async fn click(&self, selector: &str) {
        until(PATIENCE, &format!("{selector} can be clicked"), async || {
            // A live page may replace it after it was found.
            self.client.find(Locator::Css(selector)).await.ok()?.click().await.ok()
        })
        .await;
    }

    /// Presses keys, one after the other, wherever the focus is.
    pub async fn press(&self, keys: &str) {
        let press =
            |keys: KeyActions, value| keys.then(KeyAction::Down { value }).then(KeyAction::Up { value });
        let keys = keys.chars().fold(KeyActions::new("keyboard".to_owned()), press);
        self.client.perform_actions(keys).await.expect("a keyboard");
    }

    /// The value of a JavaScript expression.
    pub async fn evaluate(&self, expression: &str) -> Value {
        let value = self.client.execute(&format!("return {expression}"), Vec::new()).await;
        value.unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    /// What pages wrote to the console, and the browser about them, since it was last asked: errors, and violations of a
    /// page's policy.
    pub async fn console(&self) -> Vec<String> {
        let entries = self.issue("se/log", json!({ "type": "browser" })).await.expect("the console");
        let entries = entries.as_array().cloned().unwrap_or_default();
        entries.iter().map(|entry| entry["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Runs no script of a page from now on.
    pub async fn disable_scripts(&self) {
        self.devtools("Emulation.setScriptExecutionDisabled", json!({ "value": true })).await;
    }

    /// Looks at pages in this way from now on.
    pub async fn look(&self, look: Look) {
        let metrics = json!({ "width": look.width, "height": look.height, "deviceScaleFactor": 1, "mobile": look.width < 600 });
        self.devtools("Emulation.setDeviceMetricsOverride", metrics).await;
        let scheme = if look.is_dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.devtools("Emulation.setEmulatedMedia", media).await;
    }

    /// The whole page as a PNG.
    pub async fn screenshot(&self, file: PathBuf) {
        let size = self.devtools("Page.getLayoutMetrics", json!({})).await["cssContentSize"].clone();
        let clip = json!({ "x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1 });
        let shot = json!({ "format": "png", "captureBeyondViewport": true, "clip": clip });
        let shot = self.devtools("Page.captureScreenshot", shot).await;
        let png = BASE64_STANDARD.decode(shot["data"].as_str().expect("a picture")).expect("base64");
        std::fs::write(&file, png).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }

    /// Ends it.
    pub async fn close(self) {
        self.client.close().await.expect("an end");
    }

    async fn devtools(&self, command: &str, parameters: Value) -> Value {
        let body = json!({ "cmd": command, "params": parameters });
        self.issue("goog/cdp/execute", body).await.unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    async fn issue(&self, path: &'static str, body: Value) -> Result<Value, CmdError> {
        self.client.issue_cmd(OfChromium { path, body }).await
    }
}

/// A command that WebDriver has only in Chromium.
#[derive(Debug)]
struct OfChromium {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for OfChromium {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, ParseError> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.path))
    }

    fn method_and_body(&self, _url: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(self.body.to_string()))
    }
}
