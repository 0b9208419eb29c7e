use super::*;
use crate::{BuildError, PressureSettings};

fn error(builder: Builder) -> BuildError {
    builder.build().unwrap_err()
}

#[tokio::test]
async fn fileservers_with_one_list_spread_over_it() {
    let fakes = [Fake::start().await, Fake::start().await];
    for number in 0..16 {
        let name = format!("gitaly-{number}");
        let client = super::builder(&fakes).node(&name).spread(true).build().unwrap();
        drop(allowed(&client, &fetch()).await);
        // The same again.
        let client = super::builder(&fakes).node(&name).spread(true).build().unwrap();
        drop(allowed(&client, &fetch()).await);
    }
    let asked = fakes.map(|fake| fake.heard().checks);
    let first: Vec<_> = asked[0].iter().map(|check| &check.node).collect();
    assert!(first.len() < 32 && !first.is_empty(), "all are asked: {first:?}");
    assert!(first.chunks(2).all(|pair| pair[0] == pair[1]), "each has its own: {first:?}");
}

#[tokio::test]
async fn what_cannot_work_is_refused() {
    let builder = |endpoint: &str| Client::builder().endpoints([endpoint]);
    for endpoint in [
        "",
        "quota-1",
        "quota-1:8081",
        "ftp://quota-1:21",
        "http://",
        "http://user:word@quota-1:8081",
        "http://quota-1:8081/path",
        "http://quota 1:8081",
        "http://:8081",
        "http://[]:8081",
        "http://[quota-1]:8081",
        "http://quota-1:",
        "http://quota-1:0",
        "http://quota-1:99999",
        "http://quota-1:port",
    ] {
        let refused = error(builder(endpoint));
        assert!(matches!(refused, BuildError::Endpoint(_)), "{endpoint:?}");
        let shown = format!("{:?}", endpoint.rsplit('@').next().unwrap());
        assert!(refused.to_string().contains(&shown), "{refused}");
    }
    for endpoint in
        ["http://quota-1", "http://quota-1/", "http://192.0.2.1:1", "http://[::1]:65535", "http://[::1]"]
    {
        assert!(builder(endpoint).build().is_ok(), "{endpoint:?}");
    }
    let good = || builder("http://quota-1:8081");
    assert!(matches!(error(good().endpoints([""; 0])), BuildError::NoEndpoint));
    assert!(matches!(error(good().token("")), BuildError::Token));
    assert!(matches!(error(good().token("two\nlines")), BuildError::Token));
    assert_eq!(error(good().node("x".repeat(257))).to_string(), "node must be at most 256 bytes");
    assert_eq!(error(good().node("a\nb")).to_string(), "node must not contain control characters");
    for duration in [Duration::ZERO, Duration::from_secs(3601), Duration::MAX] {
        assert!(matches!(error(good().deadline(duration)), BuildError::Duration("deadline")));
        assert!(matches!(error(good().report_interval(duration)), BuildError::Duration("report_interval")));
    }
    let pressure = PressureSettings { memory: f64::NAN, ..PressureSettings::default() };
    assert_eq!(
        error(good().pressure(pressure)).to_string(),
        "pressure.memory must be more than 0, and at most 1"
    );
    let tls = error(builder("https://quota-1:8081").ca_certificate("not PEM")).to_string();
    let reason = if cfg!(feature = "tls") { "is not PEM" } else { "takes the feature `tls`" };
    assert!(
        tls.starts_with("TLS cannot be set up for https://quota-1:8081: ") && tls.contains(reason),
        "{tls}"
    );
}

#[test]
fn a_runtime_is_needed() {
    assert!(matches!(error(Client::builder().endpoints(["http://quota-1:8081"])), BuildError::NoRuntime));
}

#[tokio::test]
async fn the_token_is_not_shown() {
    let builder = |token: &str| Client::builder().endpoints(["http://quota-1:8081"]).token(token);
    let client = builder("s3cret").build().unwrap();
    let refused = error(builder("s3cret\n"));
    let shown = format!("{:?} {client:?} {refused:?} {refused}", builder("s3cret"));
    assert!(!shown.contains("s3cret"), "{shown}");
}
