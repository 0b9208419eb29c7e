use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode, Uri};
use quota_core::{Account, Charge, Cost, Kind, PerResource, WindowLength};
use tower::ServiceExt as _;

use crate::auth::{Auth, Known};
use crate::history::History;
use crate::large::Large;
use crate::quota::Quota;
use crate::readiness::{Readiness, StoreKind};
use crate::store::{Clock, Entry, MemoryStore, Report, Store};
use crate::{grpc, http};

/// Whoever is asked about in this name, it is not by chance.
const BYSTANDER: &str = "bystander-0d1f";

/// What the bystander has used, of each resource.
const USED: u64 = 1_000_000;

/// The most of an answer that is read: all of any but those that never end.
const MOST_READ: usize = 64 << 20;

/// A server without tokens, on a store in memory whose clock stands still.
pub(super) struct Served {
    store: Arc<MemoryStore>,
    quota: Arc<Quota>,
    readiness: Arc<Readiness>,
    auth: Arc<Auth>,
}

/// An answer.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Served {
    pub(super) async fn start() -> Self {
        let clock = Clock::Manual(Arc::new(1_764_500_000_123_456.into()));
        let store = Arc::new(MemoryStore::new(WindowLength::default(), 1000, clock));
        let cost = Cost::saturating(PerResource::new(USED, USED, USED));
        let charges = vec![Charge { age: Default::default(), cost }];
        let entries = vec![Entry { account: bystander(), charges, releases: Vec::new() }];
        store.settle(&Report { mark: None, entries }).await.unwrap();
        let quota = Arc::new(Quota::bare(Arc::clone(&store) as Arc<dyn Store>));
        let readiness = Arc::new(Readiness::new(Arc::clone(&quota.store), StoreKind::Memory));
        Self { store, quota, readiness, auth: Arc::new(Auth::new(Known::Anyone)) }
    }

    pub(super) fn http(&self) -> Router {
        let (quota, readiness, auth) = self.parts();
        http::router(quota, readiness, auth, Arc::new(History::default()), Large::default(), false).unwrap()
    }

    pub(super) fn grpc(&self) -> Router {
        let (quota, readiness, auth) = self.parts();
        grpc::routes(quota, readiness, auth, Large::default(), false).unwrap().into_axum_router()
    }

    fn parts(&self) -> (Arc<Quota>, Arc<Readiness>, Arc<Auth>) {
        (Arc::clone(&self.quota), Arc::clone(&self.readiness), Arc::clone(&self.auth))
    }

    /// Whatever was asked in others' names, they have used what they had.
    pub(super) async fn spares_the_bystander(&self, input: &[u8]) {
        if input.windows(BYSTANDER.len()).any(|part| part == BYSTANDER.as_bytes()) {
            return;
        }
        let told = self.store.usage(&[bystander()]).await.unwrap();
        assert_eq!(*told.accounts[0].usage(), PerResource::new(USED, USED, USED));
    }
}

fn bystander() -> Account {
    Account::from_spelling(Kind::User, BYSTANDER).unwrap()
}

/// A request; none where no client could send it.
pub(super) fn request<'a>(
    method: &str,
    path: &str,
    headers: impl IntoIterator<Item = (&'a str, &'a str)>,
    body: Vec<u8>,
) -> Option<Request<Body>> {
    let mut request =
        Request::builder().method(Method::try_from(method).ok()?).uri(Uri::try_from(path).ok()?);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    request.body(Body::from(body)).ok()
}

/// What a router answers; of what never ends, the head alone.
pub(super) async fn ask(router: Router, request: Request<Body>, ends: bool) -> Answer {
    let response = router.oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let ends = ends && parts.headers.get("content-type").is_none_or(|kind| kind != "text/event-stream");
    let body = if ends { to_bytes(body, MOST_READ).await.unwrap() } else { Bytes::new() };
    Answer { status: parts.status, headers: parts.headers, body }
}
