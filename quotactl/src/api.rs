use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use ureq::http::{Response, StatusCode};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::typestate::WithoutBody;
use ureq::{Agent, Body, RequestBuilder};

use crate::connection::{self, Connection};
use crate::error::Error;

/// What stands for itself in a path: slashes of repositories do.
const IN_PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'`')
    .add(b'{')
    .add(b'}');

/// More than any answer has.
const MOST_BYTES: u64 = 64 << 20;

/// The server.
pub(crate) struct Api {
    agent: Agent,
    address: String,
    authorization: Option<String>,
}

/// What the server answered, whether it says yes or no.
pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) body: Value,
}

impl Api {
    pub(crate) fn new(connection: &Connection, timeout: Duration) -> Result<Self, Error> {
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .user_agent(concat!("quotactl/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(timeout))
            .timeout_recv_response(Some(timeout));
        if let Some(path) = &connection.ca_file {
            let roots = RootCerts::Specific(Arc::new(certificates(path)?));
            config = config.tls_config(TlsConfig::builder().root_certs(roots).build());
        }
        Ok(Self {
            agent: config.build().new_agent(),
            address: connection.address().to_owned(),
            authorization: connection.token()?.map(|token| format!("Bearer {token}")),
        })
    }

    /// Reads a path; `query` has what is given.
    pub(crate) fn get(&self, path: &str, query: &[(&str, Option<String>)]) -> Result<Answered, Error> {
        self.without_body(path, self.agent.get(format!("{}{path}", self.address)), query)
    }

    pub(crate) fn delete(&self, path: &str, query: &[(&str, Option<String>)]) -> Result<Answered, Error> {
        self.without_body(path, self.agent.delete(format!("{}{path}", self.address)), query)
    }

    fn without_body(
        &self,
        path: &str,
        mut request: RequestBuilder<WithoutBody>,
        query: &[(&str, Option<String>)],
    ) -> Result<Answered, Error> {
        for (name, value) in query {
            if let Some(value) = value {
                request = request.query(name, value);
            }
        }
        self.answered(path, self.authorized(request).call())
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Answered, Error> {
        let request = self.agent.post(format!("{}{path}", self.address));
        self.answered(path, self.authorized(request).send_json(body))
    }

    pub(crate) fn put(&self, path: &str, body: &Value) -> Result<Answered, Error> {
        let request = self.agent.put(format!("{}{path}", self.address));
        self.answered(path, self.authorized(request).send_json(body))
    }

    /// Reads server-sent events until the server ends them: the kind and data of each.
    pub(crate) fn events(
        &self,
        path: &str,
        mut each: impl FnMut(&str, &str) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let request = self.agent.get(format!("{}{path}", self.address)).header("accept", "text/event-stream");
        let response = self.authorized(request).call().map_err(|error| self.unreachable(&error))?;
        if !response.status().is_success() {
            return self.answered(path, Ok(response)).and_then(Answered::yes).map(drop);
        }
        let mut kind = String::new();
        for line in BufReader::new(response.into_body().into_reader()).lines() {
            let line = line.map_err(|error| self.broken(&error))?;
            match line.split_once(':') {
                Some(("event", value)) => value.trim_start().clone_into(&mut kind),
                Some(("data", value)) => each(&kind, value.trim_start())?,
                _ if line.is_empty() => kind.clear(),
                _ => {}
            }
        }
        Ok(())
    }

    fn authorized<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        match &self.authorization {
            Some(authorization) => request.header("authorization", authorization),
            None => request,
        }
    }

    fn answered(&self, path: &str, response: Result<Response<Body>, ureq::Error>) -> Result<Answered, Error> {
        let mut response = response.map_err(|error| self.unreachable(&error))?;
        let text = response.body_mut().with_config().limit(MOST_BYTES).read_to_string();
        let text = text.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        let body = match serde_json::from_str(&text) {
            Ok(body) => body,
            // A proxy's page, or nothing.
            Err(_) if text.is_empty() || !status.is_success() => Value::Null,
            Err(error) => return Err(Error::Answer { path: path.to_owned(), reason: error.to_string() }),
        };
        Ok(Answered { status, body })
    }

    fn unreachable(&self, error: &ureq::Error) -> Error {
        Error::Unreachable { address: self.address.clone(), reason: error.to_string() }
    }

    fn broken(&self, error: &std::io::Error) -> Error {
        Error::Unreachable { address: self.address.clone(), reason: error.to_string() }
    }
}

impl Answered {
    /// The body, where the server does as it was asked.
    pub(crate) fn yes(self) -> Result<Value, Error> {
        if self.status.is_success() { Ok(self.body) } else { Err(self.refused()) }
    }

    /// Why the server does not.
    pub(crate) fn refused(self) -> Error {
        let field = |name| self.body[name].as_str().map(str::to_owned);
        let detail = field("detail").or_else(|| field("title"));
        let detail = detail.or_else(|| self.status.canonical_reason().map(str::to_owned)).unwrap_or_default();
        Error::Refused { status: self.status.as_u16(), detail }
    }
}

/// A body in the shape that is expected.
pub(crate) fn parse<T: DeserializeOwned>(path: &str, body: &Value) -> Result<T, Error> {
    T::deserialize(body).map_err(|error| Error::Answer { path: path.to_owned(), reason: error.to_string() })
}

/// A path with a name at its end.
pub(crate) fn path(of: &str, name: &str) -> String {
    format!("{of}/{}", utf8_percent_encode(name, IN_PATH))
}

fn certificates(path: &Path) -> Result<Vec<Certificate<'static>>, Error> {
    let text = connection::read(path)?;
    let fault = |reason: String| Error::Usage(format!("{}: {reason}", path.display()));
    let mut found = Vec::new();
    for item in parse_pem(text.as_bytes()) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| fault(error.to_string()))? {
            found.push(certificate);
        }
    }
    if found.is_empty() { Err(fault("has no certificate".to_owned())) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_in_a_path_and_slashes_are_not() {
        assert_eq!(
            path("/v1/accounts/repo", "group/a b?#%.git"),
            "/v1/accounts/repo/group/a%20b%3F%23%25.git"
        );
    }

    #[test]
    fn a_refusal_says_what_the_server_says() {
        let refused = |status, body: Value| {
            let status = StatusCode::from_u16(status).unwrap();
            Answered { status, body }.yes().unwrap_err().to_string()
        };
        let problem = serde_json::json!({ "title": "Bad", "detail": "id: must be given" });
        assert_eq!(refused(400, problem), "the server refuses (400): id: must be given");
        assert_eq!(refused(502, Value::Null), "the server refuses (502): Bad Gateway");
    }
}
