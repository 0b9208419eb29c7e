use std::path::Path;

use testcontainers::core::client::docker_client_instance;
use testcontainers::core::{ContainerPort, CopyDataSource};
use testcontainers::runners::AsyncRunner;
use testcontainers::{ContainerAsync, GenericImage, ImageExt};

use crate::certificates::Certificates;

const NAME: &str = "redis";
const TAG: &str = "7";

/// The image that is used where it is already present.
pub const IMAGE: &str = "redis:7";

/// A container with Redis, on the same port inside and outside.
#[derive(Debug)]
pub(super) struct Container {
    container: ContainerAsync<GenericImage>,
    running: bool,
}

/// Whether an engine answers and has the image, so that starting it pulls nothing.
pub(super) async fn available() -> bool {
    match docker_client_instance().await {
        Ok(docker) => docker.inspect_image(IMAGE).await.is_ok(),
        Err(_) => false,
    }
}

impl Container {
    pub(super) async fn start(port: u16, args: Vec<String>, certificates: Option<&Certificates>) -> Self {
        let command = ["redis-server", "--bind", "0.0.0.0", "--protected-mode", "no"].map(str::to_owned);
        let mut request = GenericImage::new(NAME, TAG)
            .with_cmd(command.into_iter().chain(args))
            .with_mapped_port(port, ContainerPort::Tcp(port));
        if let Some(Certificates { authority, identity }) = certificates {
            for file in [&authority.ca_file, &identity.cert_file, &identity.key_file] {
                request = request.with_copy_to(target(file), CopyDataSource::Data(read(file)));
            }
        }
        let container = request.start().await.expect("a container with Redis");
        Self { container, running: true }
    }

    /// Its address among containers.
    pub(super) async fn bridge_address(&self) -> String {
        self.container.get_bridge_ip_address().await.expect("a container on the bridge").to_string()
    }

    /// Starts it again after its end.
    pub(super) async fn launch(&mut self) {
        self.container.start().await.expect("a container that starts");
        self.running = true;
    }

    pub(super) async fn stop(&mut self) {
        self.end(None).await;
    }

    pub(super) async fn kill(&mut self) {
        // Nothing to wait for: the engine then sends SIGKILL.
        self.end(Some(0)).await;
    }

    pub(super) async fn pause(&mut self) {
        self.container.pause().await.expect("a container that pauses");
    }

    pub(super) async fn resume(&mut self) {
        self.container.unpause().await.expect("a container that goes on");
    }

    pub(super) async fn assert_running(&self) {
        if !self.container.is_running().await.expect("the state of a container") {
            let output = [self.container.stdout_to_vec().await, self.container.stderr_to_vec().await];
            let output = output.map(|bytes| String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned());
            panic!("the container with Redis ended\n{}", output.concat());
        }
    }

    async fn end(&mut self, patience_seconds: Option<i32>) {
        if self.running {
            self.container.stop_with_timeout(patience_seconds).await.expect("a container that stops");
            self.running = false;
        }
    }
}

/// The same path inside as outside, so that the server's arguments are the same.
fn target(file: &Path) -> String {
    file.to_str().expect("a temporary folder with a name in UTF-8").to_owned()
}

fn read(file: &Path) -> Vec<u8> {
    std::fs::read(file).expect("a certificate just written")
}
