//! Open files: each connection is one, and many systems let a process have 1,024 of them unless it asks for more.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Of those that are no connections: the store's, the log, files of the configuration.
const OTHERS: usize = 64;

/// Asks for as many as there may be, and says where that is too few for so many connections.
pub(crate) fn raise(connections: usize) {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::warn!(%error, "the limit of open files cannot be raised");
    }
    let wanted = (connections + OTHERS) as u64;
    if let Some(most) = maximum.filter(|most| *most < wanted) {
        tracing::warn!(
            most,
            wanted,
            "fewer files may be open than connections are taken: http.max_connections, grpc.max_connections"
        );
    }
}
