//! A client of the HTTP API that hides nothing: status, headers and body as they came.

use std::net::SocketAddr;

use reqwest::header::HeaderMap;
use reqwest::{Body, Client, ClientBuilder, Method, Url};
use serde_json::Value;

use crate::wait::PATIENCE;

/// The media type of server-sent events.
const EVENTS: &str = "text/event-stream";

/// A client of one server.
#[derive(Clone, Debug)]
pub struct Http {
    client: Client,
    address: SocketAddr,
    token: Option<String>,
}

/// Server-sent events, as they come.
#[derive(Debug)]
pub struct Events {
    response: reqwest::Response,
    unread: String,
}

impl Events {
    /// The name and the data of the next, past those that only show that the stream lives; `None` at the end.
    pub async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            while let Some((event, rest)) = self.unread.split_once("\n\n") {
                let of = |field: &str| event.lines().find_map(|line| line.strip_prefix(field)).map(str::trim);
                let told = of("event:").map(|name| {
                    let data = serde_json::from_str(of("data:").expect("data")).expect("JSON");
                    (name.to_owned(), data)
                });
                self.unread = rest.to_owned();
                if told.is_some() {
                    return told;
                }
            }
            let chunk = self.response.chunk().await.expect("a stream that does not break")?;
            self.unread.push_str(std::str::from_utf8(&chunk).expect("whole characters"));
        }
    }
}

/// An answer, read to its end; of a stream of events, which has none, the head.
#[derive(Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// A header, where there is one of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("a header of printable ASCII"))
    }

    /// The body as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a body of UTF-8")
    }

    /// The body as JSON.
    ///
    /// # Panics
    ///
    /// Panics with the body if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{}: no JSON ({error}): {:?}", self.status, self.text()))
    }

    /// The path of the field that a problem document is about.
    pub fn field(&self) -> Option<String> {
        Some(self.json()["errors"][0]["field"].as_str()?.to_owned())
    }
}

impl Http {
    /// A client of the server at `address`, which connects when it is used.
    pub fn new(address: SocketAddr) -> Self {
        Self::of(Client::builder(), address)
    }

    /// The same, with a new connection for each request.
    pub fn connecting_anew(address: SocketAddr) -> Self {
        Self::of(Client::builder().pool_max_idle_per_host(0), address)
    }

    fn of(client: ClientBuilder, address: SocketAddr) -> Self {
        let client = client.no_proxy().timeout(PATIENCE).build().expect("a client");
        Self { client, address, token: None }
    }

    /// The same client, with a token in each request.
    pub fn with_token(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.clone() }
    }

    /// Where the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// GET of a path, with what is behind its question mark, as they are.
    pub async fn get(&self, path: &str) -> Answer {
        self.request(Method::GET, path, Body::default()).await
    }

    /// GET of a path of a server that may not be there yet.
    pub async fn try_get(&self, path: &str) -> reqwest::Result<Answer> {
        self.try_send(Method::GET, self.url(path), Body::default()).await
    }

    /// GET of a path with parameters, which are encoded.
    pub async fn query(&self, path: &str, params: &[(&str, &str)]) -> Answer {
        let mut url = self.url(path);
        url.query_pairs_mut().extend_pairs(params);
        self.send(Method::GET, url, Body::default()).await
    }

    /// GET of a stream of events, which is read as it comes.
    pub async fn events(&self, path: &str) -> Events {
        let mut request = self.client.get(self.url(path));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        let response = request.send().await.expect("an answer");
        assert_eq!(
            (response.status().as_u16(), &response.headers()["content-type"]),
            (200, &EVENTS.parse().expect("a value"))
        );
        Events { response, unread: String::new() }
    }

    /// GET of an account's standing; its id is encoded, as one segment of the path.
    pub async fn account(&self, kind: &str, id: &str) -> Answer {
        let mut url = self.url("/v1/accounts");
        url.path_segments_mut().expect("a path").extend([kind, id]);
        self.send(Method::GET, url, Body::default()).await
    }

    /// Any request about what operators say of an account; its id is encoded, as one segment of the path.
    pub async fn account_override(&self, method: Method, kind: &str, id: &str, body: &str) -> Answer {
        let mut url = self.url("/v1/overrides");
        url.path_segments_mut().expect("a path").extend([kind, id]);
        self.send(method, url, body.to_owned().into()).await
    }

    /// POST of a JSON body.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_bytes(path, body.to_string()).await
    }

    /// POST of a JSON body to a server that may be gone.
    pub async fn try_post(&self, path: &str, body: &Value) -> reqwest::Result<Answer> {
        self.try_send(Method::POST, self.url(path), body.to_string().into()).await
    }

    /// POST of any body.
    pub async fn post_bytes(&self, path: &str, body: impl Into<Body>) -> Answer {
        self.request(Method::POST, path, body).await
    }

    /// Any request.
    pub async fn request(&self, method: Method, path: &str, body: impl Into<Body>) -> Answer {
        self.send(method, self.url(path), body.into()).await
    }

    fn url(&self, path: &str) -> Url {
        Url::parse(&format!("http://{}{path}", self.address)).expect("a path")
    }

    async fn send(&self, method: Method, url: Url, body: Body) -> Answer {
        let what = format!("{method} {}", url.path().chars().take(80).collect::<String>());
        self.try_send(method, url, body).await.unwrap_or_else(|error| panic!("{what}: no answer: {error:?}"))
    }

    async fn try_send(&self, method: Method, url: Url, body: Body) -> reqwest::Result<Answer> {
        let mut request =
            self.client.request(method, url).header("content-type", "application/json").body(body);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        let response = request.send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let is_endless = headers.get("content-type").is_some_and(|value| value == EVENTS);
        let body = if is_endless { Vec::new() } else { response.bytes().await?.into() };
        Ok(Answer { status, headers, body })
    }
}
