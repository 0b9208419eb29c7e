use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use quota_proto::check_label;

use super::error::ConfigError;
use super::layers::Settings;
use super::list::{Element, elements};
use super::tls::Tls;
use crate::auth::{ANONYMOUS, Caller, Certificate, Digest, Nodes, Role, Secret, Token};

/// The most tokens, and the most certificates: each is compared with what a request or a connection shows.
const MOST: usize = 1000;

/// The most nodes that one may speak for.
const MAX_NODES: usize = 1000;

/// What a token may have.
pub(super) const TOKEN_KEYS: [&str; 5] = ["name", "role", "nodes", "sha256", "file"];

/// What a certificate may have.
pub(super) const CERTIFICATE_KEYS: [&str; 4] = ["name", "role", "nodes", "subject"];

/// Who may ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Auth {
    /// Whether the server listens to others than this machine although it asks nobody for a token.
    pub disabled: bool,
    /// Those that are known by a token. Where nobody is known, everybody may everything.
    pub tokens: Vec<Token>,
    /// Those that are known by a certificate.
    pub certificates: Vec<Certificate>,
}

impl Auth {
    pub(super) fn read(settings: &Settings, tls: Option<&Tls>) -> Result<Self, ConfigError> {
        let (tokens_list, certificates_list) = (["auth", "tokens"], ["auth", "certificates"]);
        let mut callers: Vec<Caller> = Vec::new();
        let mut tokens: Vec<Token> = Vec::new();
        for element in elements(settings, &tokens_list, &TOKEN_KEYS, MOST)? {
            let token = Token { caller: caller(&element, &mut callers)?, secret: secret(&element)? };
            if tokens.iter().any(|other| other.secret == token.secret) {
                return Err(element.fault("name", "must have a token of its own".into()));
            }
            tokens.push(token);
        }
        let mut certificates: Vec<Certificate> = Vec::new();
        for element in elements(settings, &certificates_list, &CERTIFICATE_KEYS, MOST)? {
            let caller = caller(&element, &mut callers)?;
            let subject: Box<str> = element.required("subject", |text| match text {
                "" => Err("must not be empty".to_owned()),
                subject => label(subject).map(|()| subject.into()),
            })?;
            if certificates.iter().any(|other| other.subject == subject) {
                return Err(element.fault("subject", "is another's".into()));
            }
            certificates.push(Certificate { caller, subject });
        }
        if !certificates.is_empty() && tls.is_none_or(|tls| tls.client_ca.is_none()) {
            let reason = "need tls.client_ca, whose authorities vouch for them";
            return Err(settings.fault(&certificates_list, reason.into()));
        }
        let disabled = settings.flag(&["auth", "disabled"])?;
        if disabled && !callers.is_empty() {
            let reason = "must not be true where there are auth.tokens or auth.certificates: they would be of no effect";
            return Err(settings.fault(&["auth", "disabled"], reason.into()));
        }
        Ok(Self { disabled, tokens, certificates })
    }

    /// Whether anybody is known.
    pub fn knows_nobody(&self) -> bool {
        self.tokens.is_empty() && self.certificates.is_empty()
    }

    /// Whether the server may listen to others than this machine.
    pub(super) fn is_said(&self) -> bool {
        self.disabled || !self.knows_nobody()
    }
}

fn secret(element: &Element<'_>) -> Result<Secret, ConfigError> {
    let digest = element.text("sha256", |text| {
        Digest::from_hex(text)
            .ok_or_else(|| "must be 64 hexadecimal digits, as sha256sum writes them".to_owned())
    })?;
    let file = element.text("file", |text| match text {
        "" => Err("must be the path of a file".to_owned()),
        path => Ok(PathBuf::from(path)),
    })?;
    match (digest, file) {
        (Some(digest), None) => Ok(Secret::Digest(digest)),
        (None, Some(file)) => Ok(Secret::File(file)),
        (None, None) => Err(element.fault("sha256", "must be given, or file".into())),
        (Some(_), Some(_)) => Err(element.fault("file", "must not be given with sha256".into())),
    }
}

/// Who it is. Whoever has the same name is the same.
fn caller(element: &Element<'_>, known: &mut Vec<Caller>) -> Result<Caller, ConfigError> {
    let name = element.required("name", |text| match text {
        "" => Err("must not be empty".to_owned()),
        ANONYMOUS => Err("is what everybody is called where there are no tokens".to_owned()),
        name => label(name).map(|()| Arc::from(name)),
    })?;
    let role: Role = element.required("role", str::parse)?;
    let named = element.texts("nodes")?;
    if named.len() > MAX_NODES {
        return Err(element.fault("nodes", format!("must be at most {MAX_NODES}")));
    }
    for node in &named {
        label(node).map_err(|reason| element.fault("nodes", format!("each {reason}")))?;
    }
    let nodes: BTreeSet<Box<str>> =
        named.into_iter().filter(|node| !node.is_empty()).map(Into::into).collect();
    let nodes = match role {
        Role::Fileserver if nodes.is_empty() => {
            return Err(
                element.fault("nodes", "must name the nodes that the fileserver may speak for".into())
            );
        }
        Role::Fileserver => Nodes::Named(Arc::new(nodes)),
        Role::Reader | Role::Admin if nodes.is_empty() => Nodes::All,
        Role::Reader | Role::Admin => {
            return Err(element.fault("nodes", "are of a fileserver alone".into()));
        }
    };
    let caller = Caller { name, role, nodes };
    if known.iter().any(|other| other.name == caller.name && *other != caller) {
        return Err(element.fault("name", "is another's, with another role or other nodes".into()));
    }
    known.push(caller.clone());
    Ok(caller)
}

fn label(text: &str) -> Result<(), String> {
    check_label("", text).map_err(|invalid| invalid.reason)
}
