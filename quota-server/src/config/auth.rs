use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use quota_proto::check_label;

use super::error::ConfigError;
use super::layers::Settings;
use super::list::{Element, elements};
use crate::auth::{ANONYMOUS, Caller, Digest, Nodes, Role, Secret, Token};

/// The most tokens: each is compared with what a request shows.
const MAX_TOKENS: usize = 1000;

/// The most nodes that one may speak for.
const MAX_NODES: usize = 1000;

/// What a token may have.
pub(super) const TOKEN_KEYS: [&str; 5] = ["name", "role", "nodes", "sha256", "file"];

/// Who may ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Auth {
    /// Whether the server listens to others than this machine although it asks nobody for a token.
    pub disabled: bool,
    /// Those that are known; where there are none, everybody may everything.
    pub tokens: Vec<Token>,
}

impl Auth {
    pub(super) fn read(settings: &Settings) -> Result<Self, ConfigError> {
        let list = ["auth", "tokens"];
        let mut tokens: Vec<Token> = Vec::new();
        for element in elements(settings, &list, &TOKEN_KEYS, MAX_TOKENS)? {
            let token = token(&element)?;
            if tokens
                .iter()
                .any(|other| other.caller.name == token.caller.name && other.caller != token.caller)
            {
                return Err(element.fault("name", "is another's, with another role or other nodes".into()));
            }
            if tokens.iter().any(|other| other.secret == token.secret) {
                return Err(element.fault("name", "must have a token of its own".into()));
            }
            tokens.push(token);
        }
        let disabled = settings.flag(&["auth", "disabled"])?;
        if disabled && !tokens.is_empty() {
            let reason = "must not be true where there are auth.tokens: they would be of no effect";
            return Err(settings.fault(&["auth", "disabled"], reason.into()));
        }
        Ok(Self { disabled, tokens })
    }

    /// Whether the server may listen to others than this machine.
    pub(super) fn is_said(&self) -> bool {
        self.disabled || !self.tokens.is_empty()
    }
}

fn token(element: &Element<'_>) -> Result<Token, ConfigError> {
    let caller = caller(element)?;
    let digest = element.text("sha256", |text| {
        Digest::from_hex(text)
            .ok_or_else(|| "must be 64 hexadecimal digits, as sha256sum writes them".to_owned())
    })?;
    let file = element.text("file", |text| match text {
        "" => Err("must be the path of a file".to_owned()),
        path => Ok(PathBuf::from(path)),
    })?;
    let secret = match (digest, file) {
        (Some(digest), None) => Secret::Digest(digest),
        (None, Some(file)) => Secret::File(file),
        (None, None) => return Err(element.fault("sha256", "must be given, or file".into())),
        (Some(_), Some(_)) => return Err(element.fault("file", "must not be given with sha256".into())),
    };
    Ok(Token { caller, secret })
}

fn caller(element: &Element<'_>) -> Result<Caller, ConfigError> {
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
    Ok(Caller { name, role, nodes })
}

fn label(text: &str) -> Result<(), String> {
    check_label("", text).map_err(|invalid| invalid.reason)
}
