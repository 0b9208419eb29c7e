//! What becomes of what is said in this process: lines of the log, and spans for a collector.

use std::error::Error;
use std::io;

use tracing_subscriber::filter::{Directive, EnvFilter};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{fmt, registry};

use crate::config::{Config, LogFormat};
use crate::trace::{self, Traces};

/// The log and the traces of this process, from their begin until [`Logging::end`].
pub struct Logging {
    traces: Option<Traces>,
}

impl Logging {
    /// Begins, once in a process, in a Tokio runtime. The level is that of RUST_LOG.
    pub fn start(config: &Config) -> Result<Self, Box<dyn Error>> {
        let lines = fmt::layer().with_writer(io::stderr);
        let lines = match config.log.format {
            LogFormat::Text => lines.boxed(),
            LogFormat::Json => {
                lines.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed()
            }
        };
        let log = registry().with(lines.with_filter(filter()?));
        let traces = config.trace.as_ref().map(Traces::open).transpose()?;
        match &traces {
            None => log.try_init()?,
            Some(traces) => log.with(traces.layer()).try_init()?,
        }
        if let Some(settings) = &config.trace {
            tracing::info!(otlp = %settings.otlp, sample = settings.sample, "spans are sent");
        }
        Ok(Self { traces })
    }

    /// Sends the last spans, for two seconds at most.
    pub async fn end(self) {
        if let Some(traces) = self.traces {
            traces.end().await;
        }
    }
}

/// What is a line of the log.
fn filter() -> Result<EnvFilter, Box<dyn Error>> {
    let filter = EnvFilter::builder().with_default_directive(tracing::Level::INFO.into()).from_env_lossy();
    // What operators change is on record, whatever else is of interest.
    let audit: Directive = "audit=info".parse()?;
    let spans: Directive = format!("{}=off", trace::TARGET).parse()?;
    Ok(filter.add_directive(audit).add_directive(spans))
}
