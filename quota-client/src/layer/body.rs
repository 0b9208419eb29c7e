use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf as _, Bytes};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::Meter;

pin_project! {
    /// A body whose bytes are counted. Its work goes on until it has ended or is dropped.
    #[derive(Debug)]
    pub struct MeteredBody<B> {
        #[pin]
        inner: B,
        meter: Option<Meter>,
        count: fn(&Meter, u64),
    }
}

impl<B> MeteredBody<B> {
    pub(super) fn received(inner: B, meter: Option<Meter>) -> Self {
        Self { inner, meter, count: Meter::received }
    }

    pub(super) fn sent(inner: B, meter: Option<Meter>) -> Self {
        Self { inner, meter, count: Meter::sent }
    }
}

impl<B: Body> Body for MeteredBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        let frame = std::task::ready!(this.inner.poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let (Some(data), Some(meter)) = (frame.data_ref(), &this.meter) {
                    (this.count)(meter, data.remaining() as u64);
                }
            }
            Some(Err(_)) | None => *this.meter = None,
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

pin_project! {
    /// The body of a response: the service's, whose bytes are counted, or that of a refusal.
    #[derive(Debug)]
    pub struct ResponseBody<B> {
        #[pin]
        inner: Option<MeteredBody<B>>,
        refusal: Bytes,
    }
}

impl<B> ResponseBody<B> {
    pub(super) fn metered(inner: MeteredBody<B>) -> Self {
        Self { inner: Some(inner), refusal: Bytes::new() }
    }
}

impl<B> From<String> for ResponseBody<B> {
    fn from(refusal: String) -> Self {
        Self { inner: None, refusal: refusal.into() }
    }
}

impl<B: Body<Data = Bytes>> Body for ResponseBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        if let Some(inner) = this.inner.as_pin_mut() {
            return inner.poll_frame(cx);
        }
        let refusal = std::mem::take(this.refusal);
        Poll::Ready((!refusal.is_empty()).then(|| Ok(Frame::data(refusal))))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().map_or(self.refusal.is_empty(), Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Some(inner) => inner.size_hint(),
            None => SizeHint::with_exact(self.refusal.len() as u64),
        }
    }
}
