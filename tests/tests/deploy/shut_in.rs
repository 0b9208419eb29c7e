//! Wherever the server is run, it is nobody, writes nowhere and has no rights.

use super::text;

/// What is between two texts, the first time.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    text.split_once(begin)
        .and_then(|(_, rest)| rest.split_once(end))
        .unwrap_or_else(|| panic!("no {begin}"))
        .0
}

#[track_caller]
fn assert_all(text: &str, settings: &[&str]) {
    for setting in settings {
        assert!(text.lines().any(|line| line.trim() == *setting), "no {setting} in {text}");
    }
}

#[test]
fn both_images_run_as_nobody() {
    for image in ["server", "fileserver"] {
        let dockerfile = text("Dockerfile");
        assert_all(between(&dockerfile, &format!(" AS {image}\n"), "ENTRYPOINT"), &["USER 10001:10001"]);
    }
}

#[test]
fn the_containers_of_docker_compose_have_no_rights() {
    let compose = text("docker-compose.yml");
    let rights = ["cap_drop: [ALL]", "security_opt: [\"no-new-privileges:true\"]"];
    let server = between(&compose, "x-quota-server:", "x-fileserver:");
    assert_all(server, &rights);
    assert_all(server, &["read_only: true"]);
    assert_all(between(&compose, "x-fileserver:", "services:"), &rights);
}

#[test]
fn a_pod_and_a_unit_are_shut_in() {
    assert_all(
        &text("deploy/kubernetes/quota-server.yaml"),
        &[
            "automountServiceAccountToken: false",
            "runAsNonRoot: true",
            "runAsUser: 10001",
            "seccompProfile: { type: RuntimeDefault }",
            "allowPrivilegeEscalation: false",
            "readOnlyRootFilesystem: true",
            "capabilities: { drop: [ALL] }",
        ],
    );
    assert_all(
        &text("deploy/systemd/quota-server.service"),
        &[
            "DynamicUser=yes",
            "CapabilityBoundingSet=",
            "NoNewPrivileges=yes",
            "ProtectSystem=strict",
            "PrivateDevices=yes",
        ],
    );
}
