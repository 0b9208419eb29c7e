use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

/// Sends spans, and tells that they cannot be sent once an outage.
#[derive(Debug)]
pub(super) struct Telling<E> {
    exporter: E,
    lost: AtomicBool,
}

impl<E> Telling<E> {
    pub(super) const fn new(exporter: E) -> Self {
        Self { exporter, lost: AtomicBool::new(false) }
    }
}

impl<E: SpanExporter> SpanExporter for Telling<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let sent = self.exporter.export(batch).await;
        let was_lost = self.lost.swap(sent.is_err(), Ordering::Relaxed);
        match &sent {
            Err(error) if !was_lost => tracing::warn!(%error, "spans cannot be sent, and are dropped"),
            Ok(()) if was_lost => tracing::info!("spans are sent again"),
            _ => {}
        }
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
