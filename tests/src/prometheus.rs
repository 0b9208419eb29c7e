//! A real Prometheus that scrapes the servers of a test.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};

use serde_json::Value;
use tempfile::TempDir;

use crate::http::Http;
use crate::ports::Port;
use crate::process::{Process, Program};
use crate::wait::{PATIENCE, until};

/// How often it scrapes and evaluates: twice a second.
const PACE: &str = "500ms";

/// A running Prometheus, gone when dropped.
#[derive(Debug)]
pub struct Prometheus {
    http: Http,
    process: Process,
    _folder: TempDir,
    /// The last field, so that the port is given up when nothing listens there any more.
    _port: Port,
}

impl Prometheus {
    /// Starts one with a file of rules, that scrapes these as the job `quota-server`, and waits until it answers.
    pub async fn start(rules: &str, targets: &[SocketAddr]) -> Self {
        let (folder, port) = (tempfile::tempdir().expect("a temporary folder"), Port::free());
        let targets: Vec<_> = targets.iter().map(ToString::to_string).collect();
        let config = format!(
            "global: {{ scrape_interval: {PACE}, scrape_timeout: {PACE}, evaluation_interval: {PACE} }}\n\
             rule_files: [rules.yml]\n\
             scrape_configs: [{{ job_name: quota-server, static_configs: [{{ targets: {targets:?} }}] }}]\n"
        );
        let write = |name, text: &str| {
            fs::write(folder.path().join(name), text).expect("a folder that can be written");
        };
        write("prometheus.yml", &config);
        write("rules.yml", rules);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.number()));
        let path = |name| folder.path().join(name).display().to_string();
        let process = Program::new("prometheus")
            .arg(format!("--config.file={}", path("prometheus.yml")))
            .arg(format!("--storage.tsdb.path={}", path("data")))
            .arg(format!("--web.listen-address={address}"))
            .start();
        let mut prometheus = Self { http: Http::new(address), process, _folder: folder, _port: port };
        prometheus.wait_until_ready().await;
        prometheus
    }

    /// What an instant query gives: labels and value of each series.
    ///
    /// # Panics
    ///
    /// Panics where it cannot be parsed or evaluated.
    pub async fn query(&self, query: &str) -> Vec<(Value, String)> {
        let answer = self.http.query("/api/v1/query", &[("query", query)]).await;
        assert_eq!(answer.status, 200, "{query}: {}", answer.text());
        let body = answer.json();
        let series = body["data"]["result"].as_array().expect("series");
        let value = |series: &Value| series["value"][1].as_str().expect("a value").to_owned();
        series.iter().map(|series| (series["metric"].clone(), value(series))).collect()
    }

    /// The labels of the alerts of a name that fire.
    pub async fn firing(&self, alert: &str) -> Vec<Value> {
        let body = self.http.get("/api/v1/alerts").await.json();
        let alerts = body["data"]["alerts"].as_array().expect("alerts");
        let firing = alerts.iter().filter(|it| it["state"] == "firing" && it["labels"]["alertname"] == alert);
        firing.map(|it| it["labels"].clone()).collect()
    }

    async fn wait_until_ready(&mut self) {
        until(PATIENCE, "prometheus is ready", async || {
            if let Some(status) = self.process.exit_status() {
                panic!("prometheus ended ({status})\n{}", self.process.output());
            }
            let answer = self.http.try_get("/-/ready").await.ok()?;
            (answer.status == 200).then_some(())
        })
        .await;
    }
}
