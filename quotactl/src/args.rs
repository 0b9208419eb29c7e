use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

/// Asks the quota service who consumes what, which limits hold and why, and steps in.
///
/// Exit codes: 0 yes, 1 no (denied, to be backed off from, not ready), 2 wrong usage, 3 no server answers, 4 the server
/// refuses, 5 its answer cannot be read or written.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
    /// Print the server's answer as JSON.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Where the server is, and who asks. What is given stands before the environment, and that before the file.
#[derive(Debug, ClapArgs)]
pub(crate) struct ConnectionArgs {
    /// The server's HTTP address [default: http://127.0.0.1:8080].
    #[arg(long, global = true, env = "QUOTACTL_ADDRESS", value_name = "URL")]
    pub(crate) address: Option<String>,
    /// A file with the bearer token.
    #[arg(long, global = true, env = "QUOTACTL_TOKEN_FILE", value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// A file with certificates (PEM) of who may have signed the server's, instead of the common ones.
    #[arg(long, global = true, env = "QUOTACTL_CA_FILE", value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// A file with `address`, `token_file` and `ca_file` in TOML [default: quotactl.toml in the configuration folder].
    #[arg(long, global = true, env = "QUOTACTL_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// How long to wait for an answer.
    #[arg(long, global = true, default_value = "10s", value_parser = humantime::parse_duration)]
    pub(crate) timeout: Duration,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The heaviest accounts of the last minute.
    Top(Top),
    /// What one account used, and its limits.
    Account(Account),
    /// Every fileserver, or one: its pressure, when it was seen, and who is cut on it.
    Nodes {
        /// One alone.
        node: Option<String>,
    },
    /// The limits in force on fileservers, by kind and resource.
    Limits {
        /// One alone.
        node: Option<String>,
    },
    /// Would a request of these accounts be let in? It reserves nothing.
    Check(Check),
    /// Should these accounts back off, and for how long?
    Backoff(Backoff),
    /// What was decided for single accounts.
    #[command(subcommand)]
    Override(Override),
    /// The switch: whether limits are off, in shadow or enforced.
    #[command(subcommand)]
    Mode(Mode),
    /// How many requests of each class of traffic are in progress.
    Classes,
    /// A table of prices, from what RPCs cost.
    Prices {
        /// How far back.
        #[arg(long, default_value = "1d", value_parser = humantime::parse_duration)]
        since: Duration,
    },
    /// Whom enforcing refuses, or would have refused, by account and RPC.
    WouldDeny {
        /// How far back.
        #[arg(long, default_value = "1h", value_parser = humantime::parse_duration)]
        since: Duration,
        /// Of one kind alone.
        #[arg(long)]
        kind: Option<Kind>,
    },
    /// Each denial as it happens.
    Tail,
    /// Whether the server is ready.
    Health,
    /// Completions for a shell, to be sourced.
    Completions { shell: Shell },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Top {
    #[arg(long, default_value = "user")]
    pub(crate) kind: Kind,
    #[arg(long, default_value = "cpu")]
    pub(crate) resource: Resource,
    /// On one fileserver alone.
    #[arg(long)]
    pub(crate) node: Option<String>,
    #[arg(long, default_value_t = 20)]
    pub(crate) limit: u32,
    /// Again and again, every so often, until it is interrupted.
    #[arg(long, value_name = "EVERY", num_args = 0..=1, default_missing_value = "2s", value_parser = humantime::parse_duration)]
    pub(crate) watch: Option<Duration>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Account {
    pub(crate) kind: Kind,
    pub(crate) id: String,
    /// With its limit on that fileserver.
    #[arg(long)]
    pub(crate) node: Option<String>,
}

/// Whom a request is charged to.
#[derive(Debug, ClapArgs)]
#[group(required = true, multiple = true)]
pub(crate) struct Accounts {
    #[arg(long)]
    pub(crate) repo: Option<String>,
    #[arg(long)]
    pub(crate) user: Option<String>,
    #[arg(long)]
    pub(crate) ip: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) accounts: Accounts,
    #[arg(long)]
    pub(crate) node: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Backoff {
    #[command(flatten)]
    pub(crate) accounts: Accounts,
    #[arg(long)]
    pub(crate) node: Option<String>,
    /// How often it was told to wait before.
    #[arg(long, default_value_t = 0)]
    pub(crate) attempt: u32,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Override {
    /// All of them.
    List,
    /// One account's.
    Get { kind: Kind, id: String },
    /// Decides something for one account.
    Set(SetOverride),
    /// Undoes it.
    Remove { kind: Kind, id: String },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SetOverride {
    pub(crate) kind: Kind,
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) what: What,
    /// Why; it is shown to whoever asks.
    #[arg(long)]
    pub(crate) reason: String,
    /// It ends by itself after so long.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) expires_in: Option<Duration>,
}

/// What is decided; one of these.
#[derive(Debug, ClapArgs)]
#[group(required = true, multiple = false)]
pub(crate) struct What {
    /// It may use so many times as much as others of its kind.
    #[arg(long)]
    pub(crate) weight: Option<f64>,
    /// Its own limits, such as cpu=600s,memory=4GiB,network=unlimited.
    #[arg(long, value_name = "RESOURCE=LIMIT", value_delimiter = ',', value_parser = limit)]
    pub(crate) limits: Option<Vec<(Resource, String)>>,
    /// It is charged, and never refused.
    #[arg(long)]
    pub(crate) exempt: bool,
    /// It is always refused.
    #[arg(long)]
    pub(crate) blocked: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Mode {
    /// What is switched.
    List,
    /// Switches everything, one fileserver, or one kind of account.
    Set {
        mode: ModeName,
        #[command(flatten)]
        of: Scope,
        /// Why.
        #[arg(long)]
        reason: String,
    },
    /// Undoes it.
    Clear {
        #[command(flatten)]
        of: Scope,
    },
}

/// What is switched: everything where nothing is given.
#[derive(Debug, ClapArgs)]
#[group(multiple = false)]
pub(crate) struct Scope {
    #[arg(long)]
    pub(crate) node: Option<String>,
    #[arg(long)]
    pub(crate) kind: Option<Kind>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Kind {
    Repo,
    User,
    Ip,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Resource {
    Cpu,
    Memory,
    Network,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ModeName {
    Off,
    Shadow,
    Enforce,
}

impl Kind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Repo => "repo",
            Self::User => "user",
            Self::Ip => "ip",
        }
    }
}

impl Resource {
    pub(crate) const ALL: [Self; 3] = [Self::Cpu, Self::Memory, Self::Network];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Network => "network",
        }
    }
}

impl ModeName {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Shadow => "shadow",
            Self::Enforce => "enforce",
        }
    }
}

fn limit(text: &str) -> Result<(Resource, String), String> {
    let (resource, limit) = text.split_once('=').ok_or("must be RESOURCE=LIMIT")?;
    Ok((Resource::from_str(resource, false)?, limit.to_owned()))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_agree_with_each_other() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_wrong_name_suggests_the_right_one() {
        for (line, hint) in
            [(["quotactl", "acount", "user", "u"], "account"), (["quotactl", "account", "usr", "u"], "user")]
        {
            let error = Args::try_parse_from(line).unwrap_err().to_string();
            assert!(error.contains(&format!("'{hint}'")), "{error}");
        }
    }

    #[test]
    fn an_override_decides_one_thing() {
        let parse = |what: &[&str]| {
            let line = ["quotactl", "override", "set", "user", "u", "--reason", "r"];
            Args::try_parse_from(line.iter().chain(what))
        };
        for what in
            [&["--weight", "2"][..], &["--limits", "cpu=6s,network=unlimited"], &["--exempt"], &["--blocked"]]
        {
            assert!(parse(what).is_ok(), "{what:?}");
        }
        for what in [&[][..], &["--exempt", "--blocked"], &["--limits", "gpu=1s"], &["--limits", "cpu"]] {
            assert!(parse(what).is_err(), "{what:?}");
        }
    }
}
