use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower::BoxError;

use super::Leave;
use super::endable::Endable;
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
        let frame = ready!(this.inner.poll_frame(cx));
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
    pub struct ResponseBody<B> {
        #[pin]
        inner: Inner<B>,
        // Released when the body has ended, or is dropped.
        leave: Leave,
    }
}

pin_project! {
    #[project = InnerProjection]
    enum Inner<B> {
        Refusal { text: Bytes },
        Metered { #[pin] body: MeteredBody<B> },
        Endable { body: Endable<B> },
    }
}

impl<B> ResponseBody<B> {
    pub(super) const fn new(body: MeteredBody<B>, leave: Leave) -> Self {
        Self { inner: Inner::Metered { body }, leave }
    }

    /// One that ends when its work is told to.
    pub(super) fn endable(body: Endable<B>) -> Self {
        Self { inner: Inner::Endable { body }, leave: Leave::default() }
    }
}

impl<B> From<String> for ResponseBody<B> {
    fn from(refusal: String) -> Self {
        Self { inner: Inner::Refusal { text: refusal.into() }, leave: Leave::default() }
    }
}

impl<B> Body for ResponseBody<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.project();
        match this.inner.project() {
            InnerProjection::Metered { body } => {
                let frame = ready!(body.poll_frame(cx));
                if matches!(frame, Some(Err(_)) | None) {
                    *this.leave = Leave::default();
                }
                Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
            }
            InnerProjection::Endable { body } => body.poll_frame(cx),
            InnerProjection::Refusal { text } => {
                let text = mem::take(text);
                Poll::Ready((!text.is_empty()).then(|| Ok(Frame::data(text))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.inner {
            Inner::Refusal { text } => text.is_empty(),
            Inner::Metered { body } => body.is_end_stream(),
            Inner::Endable { body } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Inner::Refusal { text } => SizeHint::with_exact(text.len() as u64),
            Inner::Metered { body } => body.size_hint(),
            Inner::Endable { body } => body.size_hint(),
        }
    }
}

impl<B> std::fmt::Debug for ResponseBody<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResponseBody").field("leave", &self.leave).finish_non_exhaustive()
    }
}
