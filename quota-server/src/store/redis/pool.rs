use deadpool::Runtime;
use deadpool::managed::{self, Object, PoolError};
use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Cmd, ConnectionInfo, FromRedisValue, IntoConnectionInfo, RedisError, RedisResult,
    ScriptInvocation, Value,
};

use super::error::classify;
use super::manager::Manager;
use super::sentinel::Sentinel;
use crate::store::{Cause, StoreError};

/// What is asked of one key: one command or script, which does all or nothing.
#[derive(Clone, Copy)]
pub(super) enum Call<'a> {
    Script(&'a ScriptInvocation<'a>),
    Command(&'a Cmd),
}

/// The connections to one server: bounded, made when they are needed, dropped when they prove bad.
#[derive(Clone)]
pub(super) struct Pool(managed::Pool<Manager>);

impl Pool {
    /// To the server at an address, or to the one that Sentinel names.
    pub(super) fn to(
        address: impl IntoConnectionInfo,
        sentinel: Option<Sentinel>,
        size: usize,
    ) -> Result<Self, StoreError> {
        // Every call has its own deadline, in which a connection is made and answers.
        let timeouts = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let address = address.into_connection_info().map_err(|error| classify(&error))?;
        let manager =
            Manager::new(without_delay(address), sentinel, timeouts).map_err(|error| classify(&error))?;
        let pool = managed::Pool::builder(manager)
            .max_size(size)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| StoreError::Unreachable(error.to_string()))?;
        Ok(Self(pool))
    }

    /// Runs one call on a connection, as one that a node has sent where it is `asking`. The outer error: there is none.
    pub(super) async fn call<T: FromRedisValue>(
        &self,
        call: Call<'_>,
        asking: bool,
    ) -> Result<RedisResult<T>, StoreError> {
        let mut link = self.0.get().await.map_err(from_pool)?;
        let result = call.run_on(&mut link.connection, asking).await;
        settle(link, result.as_ref().err());
        Ok(result)
    }

    /// Runs commands in one round trip; one that fails is no reason to know nothing of the others.
    pub(super) async fn read(&self, commands: &[&Cmd]) -> Result<Vec<RedisResult<Value>>, StoreError> {
        let mut asked = redis::pipe();
        for command in commands {
            asked.add_command((*command).clone());
        }
        let mut link = self.0.get().await.map_err(from_pool)?;
        let result = asked.ignore_errors().query_async(&mut link.connection).await;
        settle(link, result.as_ref().err());
        result.map_err(|error| classify(&error))
    }
}

impl Call<'_> {
    async fn run_on<T: FromRedisValue>(
        self,
        connection: &mut MultiplexedConnection,
        asking: bool,
    ) -> RedisResult<T> {
        if asking {
            redis::cmd("ASKING").exec_async(connection).await?;
        }
        match self {
            Self::Script(script) => script.invoke_async(connection).await,
            Self::Command(command) => command.query_async(connection).await,
        }
    }
}

/// Gives a connection back whose call has ended, unless it is of no use any more.
fn settle(mut link: Object<Manager>, error: Option<&RedisError>) {
    link.answered = true;
    if error.is_some_and(proves_bad) {
        drop(Object::take(link));
    }
}

fn without_delay(address: ConnectionInfo) -> ConnectionInfo {
    address.set_tcp_settings(TcpSettings::default().set_nodelay(true))
}

/// Whether a call that ended so shows that its connection is of no use any more. One to a node that has handed a slot over is.
fn proves_bad(error: &RedisError) -> bool {
    let cause = classify(error).cause();
    error.redirect_node().is_none()
        && matches!(cause, Cause::Connection | Cause::Readonly | Cause::Busy | Cause::Denied)
}

fn from_pool(error: PoolError<RedisError>) -> StoreError {
    match error {
        PoolError::Backend(error) => classify(&error),
        other => StoreError::Unreachable(other.to_string()),
    }
}
