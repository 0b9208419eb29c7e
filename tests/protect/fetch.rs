//! One clone over git's smart HTTP protocol, version 2 (gitprotocol-v2(5)): what is served is real, and what comes is
//! thrown away, so that a client costs this machine next to nothing.

use reqwest::Client;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};

/// How a clone ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fetched {
    /// All of it came.
    Whole,
    /// Refused before the first byte, with the seconds after which to come back.
    Refused { retry_after: Option<u64> },
    /// Broken off, or no answer.
    Failed,
}

/// Who clones what.
#[derive(Clone)]
pub(crate) struct Fetch {
    pub(crate) http: Client,
    /// Of the repository.
    pub(crate) url: String,
    pub(crate) user: String,
    /// The commit that is wanted.
    pub(crate) commit: String,
}

impl Fetch {
    /// Asks for the capabilities as git does, and then for everything.
    pub(crate) async fn run(&self) -> Fetched {
        let refs = self.http.get(format!("{}/info/refs?service=git-upload-pack", self.url));
        match self.send(refs).await {
            Fetched::Whole => {}
            other => return other,
        }
        let pack = self.http.post(format!("{}/git-upload-pack", self.url)).body(request(&self.commit));
        self.send(pack.header(CONTENT_TYPE, "application/x-git-upload-pack-request")).await
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Fetched {
        let request = request.header("Git-Protocol", "version=2").basic_auth(&self.user, Some("any"));
        let Ok(mut response) = request.send().await else { return Fetched::Failed };
        if matches!(response.status().as_u16(), 429 | 503) {
            let retry_after =
                response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
            return Fetched::Refused { retry_after };
        }
        if response.status() != 200 {
            return Fetched::Failed;
        }
        loop {
            match response.chunk().await {
                Ok(Some(_)) => {}
                Ok(None) => return Fetched::Whole,
                Err(_) => return Fetched::Failed,
            }
        }
    }
}

/// The command `fetch`, without any commit that the client has.
fn request(commit: &str) -> String {
    let line = |text: &str| format!("{:04x}{text}", text.len() + 4);
    let want = line(&format!("want {commit}\n"));
    format!("{}0001{}{want}{}0000", line("command=fetch\n"), line("no-progress\n"), line("done\n"))
}
