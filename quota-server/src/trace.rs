//! Traces: a span of each request on both ports, as a child of its caller's where that is told, and one of each call to the
//! store within it. Where no collector is named, no layer is installed, and what makes spans does nothing.
//!
//! No span names an account: routes and methods do not, and paths are left out.

mod exporter;
mod request;
mod spans;

use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider};
use tokio::task::spawn_blocking;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::dynamic_filter_fn;
use tracing_subscriber::registry::LookupSpan;

use self::exporter::Telling;
pub(crate) use self::request::{of_grpc, of_http};
pub(crate) use self::spans::{TARGET, failed, of_check, of_store, outcome};
use crate::config::Trace;

/// The most spans that wait to be sent, some MB; further ones are dropped.
const MOST_WAITING: usize = 4096;

/// The most spans in one message.
const MOST_AT_ONCE: usize = 512;

/// How long a span waits for others, at most.
const SEND_INTERVAL: Duration = Duration::from_secs(1);

/// How long the collector may take for a message.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the last spans may take when the server stops.
const LAST_TIMEOUT: Duration = Duration::from_secs(2);

/// Sends spans to a collector, beside the requests that they are of.
pub(crate) struct Traces(SdkTracerProvider);

impl Traces {
    /// Connects when there is something to send. Needs a Tokio runtime.
    pub(crate) fn open(settings: &Trace) -> Result<Self, ExporterBuildError> {
        let exporter = SpanExporter::builder()
            .with_tonic()
            .with_endpoint(settings.otlp.to_string())
            .with_timeout(SEND_TIMEOUT)
            .build()?;
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(MOST_WAITING)
            .with_max_export_batch_size(MOST_AT_ONCE)
            .with_scheduled_delay(SEND_INTERVAL)
            .build();
        let processor =
            BatchSpanProcessor::builder(Telling::new(exporter)).with_batch_config(batches).build();
        let of_roots = Sampler::TraceIdRatioBased(settings.sample);
        let provider = SdkTracerProvider::builder()
            .with_span_processor(processor)
            .with_sampler(Sampler::ParentBased(Box::new(of_roots)))
            .with_resource(Resource::builder().with_service_name("quota-server").build())
            .build();
        Ok(Self(provider))
    }

    /// Takes the spans of requests, and of what is done within one; no events, since the log has those.
    pub(crate) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        let within_a_request =
            dynamic_filter_fn(|metadata, context: &tracing_subscriber::layer::Context<'_, S>| {
                spans::is_ours(metadata)
                    && (metadata.name() == spans::REQUEST || context.lookup_current().is_some())
            });
        tracing_opentelemetry::layer()
            .with_tracer(self.0.tracer("quota-server"))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_level(false)
            .with_tracked_inactivity(false)
            // Nobody within asks OpenTelemetry where he is.
            .with_context_activation(false)
            .with_filter(within_a_request.with_max_level_hint(LevelFilter::INFO))
    }

    /// Sends what is left, and ends.
    pub(crate) async fn end(self) {
        let ended = spawn_blocking(move || self.0.shutdown_with_timeout(LAST_TIMEOUT)).await;
        if let Ok(Err(error)) = ended {
            tracing::warn!(%error, "the last spans were not sent");
        }
    }
}
