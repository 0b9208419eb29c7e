use std::fmt::Display;

use super::RedisServer;
use crate::certificates::Certificates;

/// How to start a Redis.
#[derive(Debug, Clone, Default)]
pub struct RedisOptions {
    pub(super) password: Option<String>,
    pub(super) user: Option<User>,
    pub(super) tls: bool,
    /// A process of this machine, whatever engine there is.
    pub(super) local: bool,
    /// Its clock is set by the test; a process of this machine, then.
    pub(super) stepping_clock: bool,
    /// It runs in a network of its own; a process of this machine, then.
    pub(super) own_network: bool,
    appendonly: bool,
    args: Vec<String>,
}

#[derive(Debug, Clone)]
pub(super) struct User {
    pub(super) name: String,
    pub(super) password: String,
    rules: String,
}

impl RedisOptions {
    /// The default user's password. Of letters and digits, since it goes into a URL as it is.
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// A user with rules of Redis's ACL, such as `~q1:* +@all -@dangerous`; [`RedisServer::url`] is then theirs.
    pub fn acl_user(mut self, name: &str, password: &str, rules: &str) -> Self {
        self.user =
            Some(User { name: name.to_owned(), password: password.to_owned(), rules: rules.to_owned() });
        self
    }

    /// TLS alone on the port, with a certificate for `localhost` and `127.0.0.1`; clients need none.
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Writes an append-only file, synced at each write: data survive a restart.
    pub fn appendonly(mut self) -> Self {
        self.appendonly = true;
        self
    }

    /// With a clock that [`RedisServer::set_clock`] sets.
    pub fn stepping_clock(mut self) -> Self {
        self.stepping_clock = true;
        self.local()
    }

    /// In a network that can be broken: [`RedisServer::network`]. It takes root.
    pub fn own_network(mut self) -> Self {
        self.own_network = true;
        self.local()
    }

    /// As a process of this machine: others reach it where clients do, and it reads files of this machine.
    pub(crate) fn local(mut self) -> Self {
        self.local = true;
        self
    }

    /// Further arguments of `redis-server`; they win over those that the other options make.
    pub fn args(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(ToString::to_string));
        self
    }

    /// Starts it and waits until it answers.
    ///
    /// # Panics
    ///
    /// Panics if there is no Redis to start, or it does not answer.
    pub async fn start(self) -> RedisServer {
        RedisServer::launch(self).await
    }

    pub(super) fn command_line(&self, port: u16, certificates: Option<&Certificates>) -> Vec<String> {
        let mut line = Line::default();
        match certificates {
            None => line.set("port", port),
            Some(Certificates { authority, identity }) => {
                line.set("port", 0);
                line.set("tls-port", port);
                line.set("tls-cert-file", identity.cert_file.display());
                line.set("tls-key-file", identity.key_file.display());
                line.set("tls-ca-cert-file", authority.ca_file.display());
                line.set("tls-auth-clients", "no");
            }
        }
        if self.own_network {
            // Else it answers its own machine alone.
            line.set("protected-mode", "no");
        }
        line.set("save", "");
        if self.appendonly {
            line.set("appendonly", "yes");
            line.set("appendfsync", "always");
        }
        if let Some(password) = &self.password {
            line.set("requirepass", password);
        }
        if let Some(user) = &self.user {
            line.0.extend([
                "--user".to_owned(),
                user.name.clone(),
                "on".to_owned(),
                format!(">{}", user.password),
            ]);
            line.0.extend(user.rules.split_whitespace().map(str::to_owned));
        }
        line.0.extend(self.args.iter().cloned());
        line.0
    }
}

#[derive(Default)]
struct Line(Vec<String>);

impl Line {
    fn set(&mut self, name: &str, value: impl Display) {
        self.0.extend([format!("--{name}"), value.to_string()]);
    }
}
