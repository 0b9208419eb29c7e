//! A body that can be ended though nobody polls it: while a client does not read, its connection asks for no more, and
//! what the request holds would be held for as long as he likes.

use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http_body::{Body, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tonic::Status;
use tower::BoxError;

use super::Leave;
use super::body::MeteredBody;
use crate::{Denial, Meter};

pub(super) struct Endable<B> {
    held: Arc<Mutex<Held<B>>>,
    is_grpc: bool,
    /// Waits for the word to end.
    listener: AbortHandle,
}

/// What is given up at the end, whoever ends it.
struct Held<B> {
    body: Option<Pin<Box<MeteredBody<B>>>>,
    leave: Leave,
    /// Why it was ended, until that is said.
    denial: Option<Denial>,
    waker: Option<Waker>,
}

impl<B: Send + 'static> Endable<B> {
    pub(super) fn new(body: MeteredBody<B>, leave: Leave, meter: Meter, is_grpc: bool) -> Self {
        let held = Held { body: Some(Box::pin(body)), leave, denial: None, waker: None };
        let held = Arc::new(Mutex::new(held));
        let listening = Arc::clone(&held);
        let listener = tokio::spawn(async move {
            let denial = meter.is_shed().await;
            let (given_up, waker) = {
                let mut held = listening.lock();
                // One that has ended by itself in this very moment was whole.
                held.denial = held.body.is_some().then_some(denial);
                ((held.body.take(), mem::take(&mut held.leave)), held.waker.take())
            };
            drop(given_up);
            if let Some(waker) = waker {
                waker.wake();
            }
        });
        Self { held, is_grpc, listener: listener.abort_handle() }
    }
}

impl<B> Endable<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    pub(super) fn poll_frame(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut held = self.held.lock();
        if let Some(denial) = held.denial.take() {
            return Poll::Ready(Some(last_word(denial, self.is_grpc)));
        }
        let Some(body) = &mut held.body else { return Poll::Ready(None) };
        let Poll::Ready(frame) = body.as_mut().poll_frame(cx) else {
            held.waker = Some(cx.waker().clone());
            return Poll::Pending;
        };
        if matches!(frame, Some(Err(_)) | None) {
            let given_up = (held.body.take(), mem::take(&mut held.leave));
            drop(held);
            self.listener.abort();
            drop(given_up);
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }
}

impl<B: Body> Endable<B> {
    pub(super) fn is_end_stream(&self) -> bool {
        let held = self.held.lock();
        held.denial.is_none() && held.body.as_ref().is_none_or(Body::is_end_stream)
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        self.held.lock().body.as_ref().map_or_else(SizeHint::default, Body::size_hint)
    }
}

impl<B> Drop for Endable<B> {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

/// The last word of a body that is ended: trailers, or an error.
fn last_word(denial: Denial, is_grpc: bool) -> Result<Frame<Bytes>, BoxError> {
    if !is_grpc {
        return Err(denial.into());
    }
    let (parts, ()) = Status::from(denial).into_http().into_parts();
    let mut trailers = parts.headers;
    trailers.remove(CONTENT_TYPE);
    Ok(Frame::trailers(trailers))
}
