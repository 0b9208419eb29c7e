//! Runs the quota service.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use quota_server::Server;
use quota_server::config::{Loaded, Source};
use quota_server::logging::Logging;
use tokio::signal::unix::{SignalKind, signal};

/// The quota service: what repositories, users and addresses may consume, over HTTP and gRPC.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The configuration file (TOML). Without one, the built-in defaults hold: HTTP on 127.0.0.1:8080, gRPC on
    /// 127.0.0.1:8081, usage in memory. Environment variables QUOTA__SECTION__KEY stand before the file.
    #[arg(long, env = "QUOTA_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Say whether the configuration is good, and exit.
    #[arg(long)]
    check_config: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let read = Source::of_process(args.config).and_then(|source| Ok((source.load()?, source)));
    let (loaded, source) = match read {
        Ok(read) => read,
        Err(error) => {
            eprintln!("quota-server: {error}");
            return ExitCode::from(2);
        }
    };
    if args.check_config {
        if let Err(error) = Server::check(loaded.config()) {
            eprintln!("quota-server: {error}");
            return ExitCode::from(2);
        }
        println!("the configuration is good");
        return ExitCode::SUCCESS;
    }
    let logging = match Logging::start(loaded.config()) {
        Ok(logging) => logging,
        Err(error) => {
            eprintln!("quota-server: {error}");
            return ExitCode::FAILURE;
        }
    };
    let ended = run(source, loaded).await;
    if let Err(error) = &ended {
        tracing::error!(%error, "cannot start");
    }
    logging.end().await;
    if ended.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn run(source: Source, loaded: Loaded) -> Result<(), Box<dyn std::error::Error>> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    // From the beginning, since it ends a process that does not wait for it.
    let mut hangup = signal(SignalKind::hangup())?;
    let told = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tracing::info!("stopping");
    };
    tokio::pin!(told);
    // Starting may take as long as a store that does not answer.
    let mut server = tokio::select! {
        server = Server::start(loaded.config().clone()) => server?,
        () = &mut told => return Ok(()),
    };
    server.follow(source, loaded);
    loop {
        tokio::select! {
            () = &mut told => break,
            Some(()) = hangup.recv() => server.reload(),
        }
    }
    server.stop().await;
    Ok(())
}
