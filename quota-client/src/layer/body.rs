use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use http::header::CONTENT_TYPE;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tonic::Status;
use tower::BoxError;

use crate::{Denial, Meter, Permit};

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
        inner: Option<MeteredBody<B>>,
        refusal: Bytes,
        // Released when the body has ended, or is dropped.
        permit: Option<Permit>,
        shed: Option<Shed>,
    }
}

/// What ends a body before its time.
pub(super) struct Shed {
    told: Pin<Box<dyn Future<Output = Denial> + Send>>,
    is_grpc: bool,
}

impl Shed {
    pub(super) fn new(meter: Meter, is_grpc: bool) -> Self {
        Self { told: Box::pin(async move { meter.is_shed().await }), is_grpc }
    }

    /// The last word of a body that is ended: trailers, or an error.
    fn last_word(&self, denial: Denial) -> Result<Frame<Bytes>, BoxError> {
        if !self.is_grpc {
            return Err(denial.into());
        }
        let (parts, ()) = Status::from(denial).into_http().into_parts();
        let mut trailers = parts.headers;
        trailers.remove(CONTENT_TYPE);
        Ok(Frame::trailers(trailers))
    }
}

impl<B> ResponseBody<B> {
    pub(super) const fn new(inner: MeteredBody<B>, permit: Option<Permit>, shed: Option<Shed>) -> Self {
        Self { inner: Some(inner), refusal: Bytes::new(), permit, shed }
    }
}

impl<B> From<String> for ResponseBody<B> {
    fn from(refusal: String) -> Self {
        Self { inner: None, refusal: refusal.into(), permit: None, shed: None }
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
        let mut this = self.project();
        if let Some(shed) = this.shed
            && let Poll::Ready(denial) = shed.told.as_mut().poll(cx)
        {
            let last_word = shed.last_word(denial);
            this.inner.set(None);
            (*this.permit, *this.shed) = (None, None);
            return Poll::Ready(Some(last_word));
        }
        if let Some(inner) = this.inner.as_mut().as_pin_mut() {
            let frame = ready!(inner.poll_frame(cx));
            if matches!(frame, Some(Err(_)) | None) {
                (*this.permit, *this.shed) = (None, None);
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let refusal = mem::take(this.refusal);
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

impl<B> std::fmt::Debug for ResponseBody<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResponseBody").field("permit", &self.permit).finish_non_exhaustive()
    }
}
