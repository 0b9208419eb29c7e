//! Certificates that are replaced, and that should have been.

use std::fs;

use super::super::{Outcome, Run, Scale};
use crate::certificates::Certificates;
use crate::redis::RedisServer;

/// How often.
const TIMES: usize = 3;

pub(super) async fn replaced(scale: &Scale) -> Outcome {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let certificates = Certificates::in_folder(folder.path());
    let Certificates { authority, identity } = &certificates;
    let redis = RedisServer::start().await;
    let mut run = Run::start_secured(&redis.url(), scale, &certificates).await;
    for times in 1..=TIMES {
        let next = authority.sign_local(&folder.path().join("next"));
        fs::copy(next.cert_file, &identity.cert_file).expect("a folder that can be written");
        // Meanwhile the key is of another certificate.
        run.goes_on_for(1).await;
        fs::copy(next.key_file, &identity.key_file).expect("a folder that can be written");
        run.is_told("new certificates are in use", times).await;
        run.goes_on_for(scale.checks / TIMES).await;
    }
    run.is_over().await;
    run.end().await
}

/// Who is connected does not see it: connections are closed, too.
pub(super) async fn of_redis_expired(scale: &Scale) -> Outcome {
    let redis = RedisServer::options().tls().local().start().await;
    let ca_file = redis.ca_file().display().to_string();
    let Certificates { authority, identity } = redis.certificates();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let expired = authority.sign_expired(folder.path());
    let mut run = Run::start_with(&redis.url(), scale, &[("SSL_CERT_FILE", &ca_file)]).await;
    let mut connected = redis.client().await;
    redis.show(&mut connected, &expired).await;
    let mut kill = redis::cmd("CLIENT");
    kill.arg("KILL").arg("TYPE").arg("normal");
    kill.exec_async(&mut connected).await.expect("connections that are closed");
    run.goes_on().await;
    redis.show(&mut connected, identity).await;
    run.is_over().await;
    run.end().await
}
