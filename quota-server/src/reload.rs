//! The configuration file while the server runs: looked at again and again, and put in force where it is good.
//!
//! It is looked at by its path and nothing else, so that it may be replaced by a rename or by a link that points elsewhere, and what
//! lies beside it is of no matter. What is found must be found twice, so that a file that is being written is left alone. All of
//! it is checked first, then put in force; where it is no good, what was in force stays so.

mod watch;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::spawn_blocking;

use self::watch::{Found, Watch};
use crate::auth::{Auth, Known};
use crate::config::{Change, ConfigError, Loaded, Source};
use crate::quota::Quota;
use crate::tls::Tls;

/// How often the file is looked at. A new one is in force after two looks.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// The most settings that are named in a line of the log.
const MOST_NAMED: usize = 50;

/// The files that are named in the configuration, and may change without it.
#[derive(Clone)]
pub(crate) struct Files {
    pub(crate) auth: Arc<Auth>,
    pub(crate) tls: Option<Arc<Tls>>,
}

/// What decides by the configuration.
#[derive(Clone)]
pub(crate) struct Decider {
    pub(crate) quota: Arc<Quota>,
    pub(crate) files: Files,
}

/// Follows a configuration file.
pub(crate) struct Reloader {
    source: Arc<Source>,
    running: Arc<Loaded>,
    watch: Watch,
    /// What was refused last, and why.
    refusal: Option<(Found, String)>,
    decider: Decider,
}

impl Files {
    /// Reads those of tokens and certificates anew.
    pub(crate) async fn reread(&self) {
        let Self { auth, tls } = self.clone();
        let reread = move || {
            auth.reread();
            if let Some(tls) = tls {
                tls.reread();
            }
        };
        // Nothing in it panics, and a runtime that ends drops this as well.
        let _ = spawn_blocking(reread).await;
    }
}

impl Reloader {
    pub(crate) fn new(source: Source, running: Loaded, decider: Decider) -> Self {
        let watch = Watch::new(Ok(running.text().map(str::to_owned)));
        Self { source: Arc::new(source), running: Arc::new(running), watch, refusal: None, decider }
    }

    /// Looks at the file until dropped, and at once when told to.
    pub(crate) async fn run(mut self, told: Arc<Notify>) {
        loop {
            let is_told = tokio::select! {
                () = tokio::time::sleep(LOOK_INTERVAL) => false,
                () = told.notified() => true,
            };
            let source = Arc::clone(&self.source);
            let Ok(found) = spawn_blocking(move || source.text()).await else { return };
            if is_told {
                self.decider.files.reread().await;
            }
            if let Some(found) = self.watch.look(found.map_err(|error| error.to_string()), is_told) {
                let found = found.clone();
                self.judge(found, is_told).await;
            }
        }
    }

    async fn judge(&mut self, found: Found, is_told: bool) {
        match self.put_in_force(found.clone()).await {
            Ok(changes) => {
                self.refusal = None;
                tell(&changes);
            }
            Err(error) => {
                self.decider.quota.metrics.config.refused();
                self.watch.refused();
                let before = self.refusal.replace((found, error.to_string()));
                // What is judged again for the same reason is no news.
                if is_told || before != self.refusal {
                    tracing::warn!(%error, "the configuration is refused: the last one stays in force");
                }
            }
        }
    }

    async fn put_in_force(&mut self, found: Found) -> Result<Vec<Change>, Box<dyn Error + Send + Sync>> {
        let text = found?;
        let is_blank = text.as_deref().is_some_and(|text| text.trim().is_empty());
        let (source, running) = (Arc::clone(&self.source), Arc::clone(&self.running));
        let read = spawn_blocking(move || {
            let (loaded, changes) = source.reload(text, &running)?;
            let known = Known::open(&loaded.config().auth)?;
            Ok::<_, Box<dyn Error + Send + Sync>>((loaded, changes, known))
        });
        let (loaded, changes, known) = read.await??;
        if let Some(file) = self.source.file().filter(|_| is_blank && !changes.is_empty()) {
            return Err(ConfigError::Empty(file.to_owned()).into());
        }
        let Decider { quota, files } = &self.decider;
        files.auth.replace(known);
        quota.adopt(loaded.config());
        quota.refresh().await;
        let pending = changes.iter().filter(|change| change.takes_restart).count();
        quota.metrics.config.accepted(loaded.config().digest, pending);
        self.running = Arc::new(loaded);
        Ok(changes)
    }
}

/// Says what is in force now, and what is not yet.
fn tell(changes: &[Change]) {
    let (later, now): (Vec<_>, Vec<_>) = changes.iter().partition(|change| change.takes_restart);
    if now.is_empty() {
        tracing::info!("the configuration was read, and nothing in it changes what is in force");
    } else {
        tracing::info!(changed = listed(&now), "the configuration is reloaded");
    }
    if !later.is_empty() {
        tracing::warn!(changed = listed(&later), "what changed in the file takes a restart");
    }
}

fn listed(changes: &[&Change]) -> String {
    let mut named: Vec<_> = changes.iter().take(MOST_NAMED).map(ToString::to_string).collect();
    if let Some(further) = changes.len().checked_sub(MOST_NAMED).filter(|further| *further > 0) {
        named.push(format!("{further} more"));
    }
    named.join("; ")
}
