use std::process::Command;
use std::time::Duration;

use quota_tests::process::Program;
use quota_tests::wait::until;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docker-compose.yml");

/// For the images, from nothing on a slow machine.
const BUILD: Duration = Duration::from_secs(15 * 60);
/// For anything else.
const PATIENCE: Duration = Duration::from_secs(3 * 60);
/// Between two questions to docker, whose client is no light program.
const PACE: Duration = Duration::from_millis(200);

/// A project of docker-compose. All that was made for it is gone when it is dropped.
pub(crate) struct Compose {
    /// `docker compose`, or `docker-compose` where docker has no such plugin.
    command: &'static [&'static str],
    project: String,
    /// Variables that the file asks for.
    environment: Vec<(&'static str, String)>,
}

impl Compose {
    /// Builds the images and starts everything.
    pub(crate) async fn up(environment: Vec<(&'static str, String)>) -> Self {
        assert!(
            succeeds(&["docker", "info"]),
            "no Docker engine answers here: run one, or as root `scripts/with-engine scripts/test`"
        );
        let plugin: &[&str] = &["docker", "compose"];
        let command = if succeeds(&[plugin, &["version"]].concat()) { plugin } else { &["docker-compose"] };
        let compose = Self { command, project: format!("quota-test-{}", std::process::id()), environment };
        // The profile that is built soonest.
        compose.run(&["build", "--build-arg", "PROFILE=dev"], BUILD).await;
        compose.run(&["up", "-d"], PATIENCE).await;
        compose
    }

    /// Ends a service as a crash would (SIGKILL).
    pub(crate) async fn kill(&self, service: &str) {
        self.run(&["kill", service], PATIENCE).await;
    }

    /// Starts it again.
    pub(crate) async fn start(&self, service: &str) {
        self.run(&["start", service], PATIENCE).await;
    }

    /// Waits until the health checks of services are content.
    pub(crate) async fn until_healthy(&self, services: &[&str]) {
        let containers = self.run(&[&["ps", "-q"], services].concat(), PATIENCE).await;
        until(PATIENCE, &format!("{services:?} are healthy"), async || {
            let inspect = ["inspect", "--format", "{{.State.Health.Status}}"];
            let program = Program::new("docker").args(inspect).args(containers.lines());
            let healthy = output(program, PATIENCE).await.lines().all(|status| status == "healthy");
            if !healthy {
                tokio::time::sleep(PACE).await;
            }
            healthy.then_some(())
        })
        .await;
    }

    async fn run(&self, args: &[&str], patience: Duration) -> String {
        output(self.program(args), patience).await
    }

    fn program(&self, args: &[&str]) -> Program {
        let program = Program::new(self.command[0])
            .args(&self.command[1..])
            .args(["--file", FILE, "--project-name", &self.project])
            .args(args);
        self.environment.iter().fold(program, |program, (key, value)| program.env(key, value))
    }
}

impl Drop for Compose {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // What a program wrote is shown where a test fails.
            self.program(&["logs", "--no-color", "--tail", "100"]).start().wait();
        }
        self.program(&["down", "--volumes", "--rmi", "local"]).start().wait();
    }
}

/// What a program writes to standard output until its end, which must be a success.
async fn output(program: Program, patience: Duration) -> String {
    let mut process = program.start();
    let status = process.wait_for_exit_within(patience).await;
    assert!(status.success(), "{status}");
    process.stdout()
}

fn succeeds(command: &[&str]) -> bool {
    Command::new(command[0]).args(&command[1..]).output().is_ok_and(|output| output.status.success())
}
