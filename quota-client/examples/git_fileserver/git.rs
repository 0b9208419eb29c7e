//! Git's smart HTTP protocol, as gitprotocol-http(5) has it.

use std::path::Path;
use std::process::{Command, Stdio};

use axum::http::Method;

/// Where the environment holds the quota service's token, which is none of the business of git and its hooks.
pub(crate) const TOKEN_VARIABLE: &str = "QUOTA_TOKEN";

/// What a conversation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Service {
    /// A fetch or clone.
    UploadPack,
    /// A push.
    ReceivePack,
}

/// Where in its conversation a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It asks for the references, and begins the conversation.
    InfoRefs,
    /// It fetches or pushes.
    Post,
}

impl Service {
    const ALL: [Self; 2] = [Self::UploadPack, Self::ReceivePack];

    /// The name in addresses, and that of the command.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::UploadPack => "git-upload-pack",
            Self::ReceivePack => "git-receive-pack",
        }
    }

    /// The RPC that prices and metrics know a request by.
    pub(crate) const fn rpc(self, step: Step) -> &'static str {
        match (self, step) {
            (Self::UploadPack, Step::InfoRefs) => "/gitaly.SmartHTTPService/InfoRefsUploadPack",
            (Self::ReceivePack, Step::InfoRefs) => "/gitaly.SmartHTTPService/InfoRefsReceivePack",
            (Self::UploadPack, Step::Post) => "/gitaly.SmartHTTPService/PostUploadPackWithSidechannel",
            (Self::ReceivePack, Step::Post) => "/gitaly.SmartHTTPService/PostReceivePack",
        }
    }
}

/// The names of all RPCs.
pub(crate) fn rpcs() -> impl Iterator<Item = &'static str> {
    let steps = [Step::InfoRefs, Step::Post];
    Service::ALL.into_iter().flat_map(move |service| steps.map(|step| service.rpc(step)))
}

/// What an address asks for: of which repository, what, and at which step. None where it is no request of the
/// protocol.
pub(crate) fn route<'a>(
    method: &Method,
    path: &'a str,
    query: Option<&str>,
) -> Option<(&'a str, Service, Step)> {
    if method == Method::GET {
        let repo = path.strip_suffix("/info/refs")?;
        let wanted = query?.split('&').find_map(|pair| pair.strip_prefix("service="))?;
        let service = Service::ALL.into_iter().find(|service| service.name() == wanted)?;
        Some((repo, service, Step::InfoRefs))
    } else if method == Method::POST {
        let (repo, wanted) = path.rsplit_once('/')?;
        let service = Service::ALL.into_iter().find(|service| service.name() == wanted)?;
        Some((repo, service, Step::Post))
    } else {
        None
    }
}

/// The protocol that a client asks for in the header `Git-Protocol`, if it can be handed on: keys and values between
/// colons, such as `version=2`.
pub(crate) fn protocol(header: Option<&str>) -> Option<&str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"=:._-/".contains(&byte);
    header.filter(|text| text.len() <= 256 && text.bytes().all(is_plain))
}

/// What comes before the references: the service's name and a flush, in pkt-lines. Protocol v2 has no such thing.
pub(crate) fn preamble(service: Service, protocol: Option<&str>) -> String {
    if protocol.is_some_and(|keys| keys.split(':').any(|key| key == "version=2")) {
        return String::new();
    }
    let line = format!("# service={}\n", service.name());
    format!("{:04x}{line}0000", line.len() + 4)
}

/// Makes of a command that runs git the one that answers a request.
pub(crate) fn answering(
    mut command: Command,
    service: Service,
    step: Step,
    repo: &Path,
    protocol: Option<&str>,
) -> Command {
    command.arg(service.name().trim_start_matches("git-")).arg("--stateless-rpc");
    if step == Step::InfoRefs {
        command.arg("--http-backend-info-refs");
    }
    command.arg(repo).stdin(Stdio::piped()).stdout(Stdio::piped()).env_remove(TOKEN_VARIABLE);
    match protocol {
        Some(protocol) => command.env("GIT_PROTOCOL", protocol),
        None => command.env_remove("GIT_PROTOCOL"),
    };
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_the_protocol() {
        let get = |path, query| route(&Method::GET, path, query);
        let refs = get("group/project.git/info/refs", Some("service=git-upload-pack"));
        assert_eq!(refs, Some(("group/project.git", Service::UploadPack, Step::InfoRefs)));
        let post = route(&Method::POST, "group/project.git/git-receive-pack", None);
        assert_eq!(post, Some(("group/project.git", Service::ReceivePack, Step::Post)));
        assert_eq!(get("x/info/refs", None), None, "the dumb protocol");
        assert_eq!(get("x/info/refs", Some("service=git-upload-archive")), None);
        assert_eq!(get("x/HEAD", Some("service=git-upload-pack")), None);
        assert_eq!(route(&Method::POST, "x/git-gc", None), None);
        assert_eq!(route(&Method::PUT, "x/git-upload-pack", None), None);
    }

    #[test]
    fn git_does_not_know_the_token() {
        let (git, repo) = (Command::new("git"), Path::new("/srv/x.git"));
        let command = answering(git, Service::ReceivePack, Step::Post, repo, None);
        assert!(command.get_envs().any(|variable| variable == (TOKEN_VARIABLE.as_ref(), None)));
    }

    #[test]
    fn the_preamble_is_of_the_old_protocols_alone() {
        let preamble = |protocol| preamble(Service::UploadPack, protocol);
        assert_eq!(preamble(None), "001e# service=git-upload-pack\n0000");
        assert_eq!(preamble(Some("version=1")), preamble(None));
        assert_eq!(preamble(Some("object-format=sha1:version=2")), "");
    }

    #[test]
    fn a_strange_protocol_is_not_handed_on() {
        assert_eq!(protocol(Some("version=2:a.b=c")), Some("version=2:a.b=c"));
        assert_eq!(protocol(Some("version=2\nX=1")), None);
        assert_eq!(protocol(Some(&"x".repeat(257))), None);
    }
}
