use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use deadpool::Runtime;
use deadpool::managed::{Object, Pool, PoolError};
use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{AsyncConnectionConfig, ErrorKind, FromRedisValue, IntoConnectionInfo as _, RedisError};

use super::manager::Manager;
use crate::config;
use crate::store::{Cause, StoreError};

/// How long may take what no decision waits for: a thousand nodes with all that they report are some megabytes.
const ASIDE_TIMEOUT: Duration = Duration::from_secs(1);

/// How long the first connection may take, and its first answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The connections to one Redis: bounded, made when they are needed, dropped when they prove bad.
pub(super) struct Connections {
    pool: Pool<Manager>,
    deadline: Duration,
    tls: bool,
}

impl Connections {
    pub(super) fn new(settings: &config::Store, url: &config::RedisUrl) -> Result<Self, StoreError> {
        // Every call has its own deadline, in which a connection is made and answers.
        let timeouts = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let address = url.expose().into_connection_info().map_err(|error| classify(&error))?;
        let address = address.set_tcp_settings(TcpSettings::default().set_nodelay(true));
        let manager = Manager::new(address, timeouts).map_err(|error| classify(&error))?;
        let pool = Pool::builder(manager)
            .max_size(settings.pool_size)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| StoreError::Unreachable(error.to_string()))?;
        Ok(Self { pool, deadline: settings.deadline, tls: url.expose().starts_with("rediss:") })
    }

    /// Runs one call within the deadline, waiting for a connection included. It is never sent twice.
    ///
    /// A connection that broke, or that leads to a server which takes no writes any more, is dropped with its first
    /// error, so that the next call makes a new one, which may lead to another server.
    pub(super) async fn run<T: FromRedisValue>(
        &self,
        call: impl AsyncFnOnce(&mut MultiplexedConnection) -> Result<T, RedisError>,
    ) -> Result<T, StoreError> {
        self.run_within(self.deadline, call).await
    }

    /// The same for what no decision waits for.
    pub(super) async fn run_aside<T: FromRedisValue>(
        &self,
        call: impl AsyncFnOnce(&mut MultiplexedConnection) -> Result<T, RedisError>,
    ) -> Result<T, StoreError> {
        self.run_within(self.deadline.max(ASIDE_TIMEOUT), call).await
    }

    /// The same with time enough for a first connection. One to a port without TLS, which never answers a handshake,
    /// is an error that waiting does not mend.
    pub(super) async fn run_first<T: FromRedisValue>(
        &self,
        call: impl AsyncFnOnce(&mut MultiplexedConnection) -> Result<T, RedisError>,
    ) -> Result<T, StoreError> {
        match self.run_within(CONNECT_TIMEOUT, call).await {
            Err(StoreError::Timeout(_)) if self.tls => {
                Err(StoreError::Refused("no answer to the TLS handshake".to_owned(), Cause::Denied))
            }
            result => result,
        }
    }

    async fn run_within<T: FromRedisValue>(
        &self,
        deadline: Duration,
        call: impl AsyncFnOnce(&mut MultiplexedConnection) -> Result<T, RedisError>,
    ) -> Result<T, StoreError> {
        let called = async {
            let mut link = self.pool.get().await.map_err(from_pool)?;
            let result = call(&mut link.connection).await.map_err(|error| classify(&error));
            link.answered = true;
            if let Err(error) = &result
                && matches!(error.cause(), Cause::Connection | Cause::Readonly | Cause::Busy | Cause::Denied)
            {
                drop(Object::take(link));
            }
            result
        };
        tokio::time::timeout(deadline, called).await.map_err(|_| StoreError::Timeout(deadline))?
    }
}

fn from_pool(error: PoolError<RedisError>) -> StoreError {
    match error {
        PoolError::Backend(error) => classify(&error),
        other => StoreError::Unreachable(other.to_string()),
    }
}

/// What an error of Redis means for its caller. The messages carry no password: Redis never repeats one.
fn classify(error: &RedisError) -> StoreError {
    let cause = match (error.kind(), code(error.code(), error.detail())) {
        (ErrorKind::Io, _) if is_broken_tls(error) => Cause::Denied,
        (ErrorKind::Io, _) => return StoreError::Unreachable(error.to_string()),
        (ErrorKind::AuthenticationFailed, _) | (_, Some("NOAUTH" | "WRONGPASS" | "NOPERM")) => Cause::Denied,
        (_, Some("READONLY")) => Cause::Readonly,
        (_, Some("LOADING" | "BUSY" | "MASTERDOWN" | "NOREPLICAS" | "TRYAGAIN" | "CLUSTERDOWN")) => {
            Cause::Busy
        }
        (_, Some("OOM")) => Cause::Memory,
        _ => return StoreError::Malformed(error.to_string()),
    };
    StoreError::Refused(error.to_string(), cause)
}

/// The code of an error. Before Redis 7.0, what fails within a script comes as an error of the script, and its own
/// code is in the text: `Error running script (call to f_…): @user_script:155: @user_script: 155: -READONLY You can't …`.
fn code<'a>(code: Option<&'a str>, detail: Option<&'a str>) -> Option<&'a str> {
    let of_script = detail.filter(|detail| detail.starts_with("Error running script"));
    let within =
        of_script.and_then(|detail| detail.split(": -").nth(1)).and_then(|rest| rest.split(' ').next());
    within.or(code)
}

/// Whether TLS failed, most likely for the certificate: rustls says so as data that is invalid.
fn is_broken_tls(error: &RedisError) -> bool {
    let cause = error.source().and_then(|source| source.downcast_ref::<Arc<dyn Error + Send + Sync>>());
    let io = cause.and_then(|cause| cause.downcast_ref::<io::Error>());
    io.is_some_and(|io| io.kind() == io::ErrorKind::InvalidData)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_a_script_s_error_is_found_in_old_and_new_servers() {
        let old = "Error running script (call to f_f012): @user_script:155: @user_script: 155: -READONLY You can't \
                   write against a read only replica.";
        assert_eq!(code(Some("ERR"), Some(old)), Some("READONLY"));
        assert_eq!(
            code(Some("READONLY"), Some("You can't write against a read only replica.")),
            Some("READONLY")
        );
        assert_eq!(code(Some("ERR"), Some("ARGV[1] is no bucket length: -OOM")), Some("ERR"));
        assert_eq!(code(None, None), None);
    }
}
