//! Which server is the primary, as Sentinels tell.

use redis::io::tcp::TcpSettings;
use redis::sentinel::{SentinelClient, SentinelNodeConnectionInfo, SentinelServerType};
use redis::{ConnectionInfo, ErrorKind, IntoConnectionInfo as _, RedisError, RedisResult, TlsMode};
use tokio::task::JoinSet;

/// The Sentinels of a primary.
pub(super) struct Sentinel {
    addresses: Vec<ConnectionInfo>,
    name: Box<str>,
    servers: SentinelNodeConnectionInfo,
}

impl Sentinel {
    pub(super) fn new(sentinels: &[Box<str>], name: &str, server: &str, tls: bool) -> RedisResult<Self> {
        let addresses =
            sentinels.iter().map(|url| (&**url).into_connection_info()).collect::<RedisResult<_>>()?;
        let settings = server.into_connection_info()?.redis_settings().clone();
        let servers = SentinelNodeConnectionInfo::default()
            .set_redis_connection_info(settings)
            .set_tcp_settings(TcpSettings::default().set_nodelay(true));
        let servers = if tls { servers.set_tls_mode(TlsMode::Secure) } else { servers };
        Ok(Self { addresses, name: name.into(), servers })
    }

    /// The server that a Sentinel calls the primary, and that says so itself. All are asked at once, and the first to know
    /// is believed, so that one which does not answer keeps nobody waiting.
    pub(super) async fn primary(&self) -> RedisResult<ConnectionInfo> {
        let mut asked = JoinSet::new();
        for address in &self.addresses {
            let mut sentinel = SentinelClient::build(
                vec![address.clone()],
                &self.name,
                Some(self.servers.clone()),
                SentinelServerType::Master,
            )?;
            asked.spawn(async move { sentinel.async_get_client().await });
        }
        let mut unknown = RedisError::from((ErrorKind::MasterNameNotFoundBySentinel, "no Sentinel answers"));
        while let Some(told) = asked.join_next().await {
            match told {
                Ok(Ok(client)) => return Ok(client.get_connection_info().clone()),
                Ok(Err(error)) => unknown = error,
                Err(_) => {}
            }
        }
        Err(unknown)
    }
}
