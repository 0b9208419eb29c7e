use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use super::clock;
use crate::network::Network;
use crate::process::{Process, Program, Signal, find};

/// A `redis-server` of this machine.
#[derive(Debug)]
pub(super) struct Local {
    process: Process,
    /// Its own, if any; gone after the process.
    network: Option<Network>,
    folder: PathBuf,
    args: Vec<String>,
    stepping_clock: bool,
}

impl Local {
    pub(super) fn start(
        folder: &Path,
        args: Vec<String>,
        stepping_clock: bool,
        network: Option<Network>,
    ) -> Self {
        if stepping_clock {
            clock::set(folder, 0);
        }
        let process = launch(folder, &args, stepping_clock, network.as_ref());
        Self { process, network, folder: folder.to_owned(), args, stepping_clock }
    }

    /// Starts it again after its end.
    pub(super) fn launch(&mut self) {
        self.process = launch(&self.folder, &self.args, self.stepping_clock, self.network.as_ref());
    }

    pub(super) fn network(&self) -> Option<&Network> {
        self.network.as_ref()
    }

    /// Where it is reached.
    pub(super) fn address(&self) -> Ipv4Addr {
        address(self.network())
    }

    pub(super) async fn stop(&mut self) {
        if self.process.exit_status().is_some() {
            return;
        }
        // A paused one must go on to hear of its end.
        self.process.resume();
        self.process.signal(Signal::TERM);
        self.process.wait_for_exit().await;
    }

    pub(super) fn kill(&mut self) {
        self.process.kill();
    }

    pub(super) fn pause(&mut self) {
        self.process.pause();
    }

    pub(super) fn resume(&mut self) {
        self.process.resume();
    }

    pub(super) fn assert_running(&mut self) {
        if let Some(status) = self.process.exit_status() {
            panic!("redis-server ended ({status})\n{}", self.process.output());
        }
    }
}

fn address(network: Option<&Network>) -> Ipv4Addr {
    network.map_or(Ipv4Addr::LOCALHOST, Network::address)
}

fn launch(folder: &Path, args: &[String], stepping_clock: bool, network: Option<&Network>) -> Process {
    assert!(
        find("redis-server").is_some(),
        "no Redis for this test: install redis-server (`apt-get install redis-server`), \
         or run a Docker engine that has the image {}",
        super::IMAGE
    );
    let program = match network {
        Some(network) => network.program("redis-server"),
        None => Program::new("redis-server"),
    };
    let program = if stepping_clock { clock::given_to(program, folder) } else { program };
    let folder = folder.to_str().expect("a temporary folder with a name in UTF-8");
    program.args(["--bind", &address(network).to_string(), "--dir", folder]).args(args).start()
}
