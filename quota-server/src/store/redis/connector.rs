use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, ConnectionInfo, IntoConnectionInfo, ProtocolVersion, RedisResult,
};

use super::link::Link;
use super::sentinel::Sentinel;

/// Makes connections to one server.
pub(super) struct Connector {
    address: ConnectionInfo,
    /// Where it, rather than the address, says where a connection leads.
    sentinel: Option<Sentinel>,
    config: AsyncConnectionConfig,
}

impl Connector {
    /// To the server at an address, or to the one that Sentinel names.
    pub(super) fn new(
        address: impl IntoConnectionInfo,
        sentinel: Option<Sentinel>,
        most_calls: usize,
    ) -> RedisResult<Self> {
        let address = address.into_connection_info()?;
        let address = address.set_tcp_settings(TcpSettings::default().set_nodelay(true));
        // Every call has its own deadline, and who waits for a connection has one.
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        Ok(Self { address, sentinel, config: config.set_pipeline_buffer_size(most_calls) })
    }

    pub(super) async fn connect(&self) -> RedisResult<Link> {
        let address = match &self.sentinel {
            None => self.address.clone(),
            Some(sentinel) => sentinel.primary().await?,
        };
        let client = Client::open(that_tells(address))?;
        Link::new(&client, &self.config).await
    }
}

/// Only RESP3 connections tell when they are closed. The name of the library is not told: it takes a right (`CLIENT SETINFO`) that
/// cannot be given to a user of an older Redis, and is noted where it is missing.
fn that_tells(address: ConnectionInfo) -> ConnectionInfo {
    let settings = address.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    address.set_redis_settings(settings.set_skip_set_lib_name())
}
