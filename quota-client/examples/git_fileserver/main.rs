//! A git fileserver with quotas: bare repositories below a folder, over git's smart HTTP protocol.
//!
//! ```text
//! cargo run --example git_fileserver -- --root /srv/git --config quota-client/examples/git_fileserver/settings.toml
//! git clone http://alice:any@127.0.0.1:8000/group/project.git
//! ```
//!
//! Without `--config` it asks and meters, and limits nothing by itself. `/-/metrics` has its figures for Prometheus.
//!
//! It shows how a fileserver adopts `quota-client`, and is no server for the public: whoever asks is who he says he
//! is. The name of HTTP Basic is taken for the user, and its password is not looked at.
//!
//! A fetch or push is admitted when it asks for the references, before any work. What follows belongs to it, and is
//! metered and not refused: a push that was admitted just below the limit finishes, its hooks included. Only after more
//! requests than git makes is it asked about again.

mod caller;
mod child;
mod conversations;
mod git;
mod refusal;
mod repositories;
mod server;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use metrics_exporter_prometheus::PrometheusBuilder;
use quota_client::{Client, Settings};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// How long requests that run may go on after the server is told to stop.
const GRACE: Duration = Duration::from_secs(20);

/// How long it may take until processes that were killed have ended.
const REAPED: Duration = Duration::from_secs(2);

/// How long the last report may take.
const LAST_REPORT: Duration = Duration::from_secs(5);

/// Serves bare git repositories, with quotas.
#[derive(Parser)]
struct Flags {
    /// Where to listen; port 0 takes any that is free.
    #[arg(long, default_value = "127.0.0.1:8000")]
    listen: SocketAddr,
    /// The folder below which the repositories are.
    #[arg(long)]
    root: PathBuf,
    /// A file with the settings of `quota-client`, such as settings.toml beside this program's sources.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The name of this fileserver.
    #[arg(long)]
    node: Option<String>,
    /// The gRPC address of a quota server; may be given several times.
    #[arg(long)]
    quota_server: Vec<String>,
    /// What the quota server knows this fileserver by.
    #[arg(long, env = git::TOKEN_VARIABLE, hide_env_values = true)]
    token: Option<String>,
}

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    match serve(Flags::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody can be told where standard error is closed.
            let _ = writeln!(std::io::stderr(), "git_fileserver: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(flags: Flags) -> Result<(), Box<dyn Error>> {
    // Before the client is built, which asks it for its figures.
    let metrics = PrometheusBuilder::new().install_recorder()?;
    let quota = client(&flags)?;
    let server = server::Server::new(quota.clone(), &flags.root, metrics)?;
    let children = server.children();
    let listening = TcpListener::bind(flags.listen).await;
    let listener = listening.map_err(|error| format!("--listen {}: {error}", flags.listen))?;
    let app = server.router().into_make_service_with_connect_info::<SocketAddr>();
    // Caught before anybody is told that it listens.
    let stop = stop_signal()?;
    tracing::info!(root = %flags.root.display(), "serves");
    writeln!(std::io::stdout(), "listening on http://{}", listener.local_addr()?)?;
    let (told, is_told) = tokio::sync::oneshot::channel();
    let serving = axum::serve(listener, app).with_graceful_shutdown(async move {
        stop.await;
        // Nobody listens where serving has ended before.
        let _ = told.send(());
    });
    let all_ended = async {
        serving.await?;
        children.all_reaped().await;
        std::io::Result::Ok(())
    };
    tokio::select! {
        ended = all_ended => ended?,
        () = async { if is_told.await.is_ok() { tokio::time::sleep(GRACE).await } } => {
            tracing::warn!("requests still run after {GRACE:?}: they are ended");
            children.end_all();
            if tokio::time::timeout(REAPED, children.all_reaped()).await.is_err() {
                tracing::warn!("processes that were killed still run: what they use is not reported");
            }
        }
    }
    if !quota.shutdown(LAST_REPORT).await {
        tracing::warn!("the last report was not acknowledged");
    }
    Ok(())
}

/// By the settings, and by the command line, which stands before them.
fn client(flags: &Flags) -> Result<Client, Box<dyn Error>> {
    let mut quota = Client::builder().rpcs(git::rpcs());
    if let Some(file) = &flags.config {
        let named = |error: &dyn Error| format!("--config {}: {error}", file.display());
        let text = std::fs::read_to_string(file).map_err(|error| named(&error))?;
        quota = quota.settings(Settings::from_toml(&text).map_err(|error| named(&error))?);
    }
    if let Some(node) = &flags.node {
        quota = quota.node(node);
    }
    if !flags.quota_server.is_empty() {
        quota = quota.endpoints(&flags.quota_server);
    }
    if let Some(token) = &flags.token {
        quota = quota.token(token);
    }
    Ok(quota.build()?)
}

fn stop_signal() -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
