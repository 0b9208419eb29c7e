//! Ports for servers that are stopped and started again on the same address.

use std::env;
use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::process;

/// Below Linux's ephemeral range (32768 and up), so that no outgoing connection takes a port while its server is
/// stopped; so is the bus port of a Redis Cluster node, 10,000 above.
const RANGE: Range<u16> = 20_000..22_700;

/// A loopback port that no other test has, in this process or another, as long as this value lives.
#[derive(Debug)]
pub struct Port {
    number: u16,
    /// Locked until the file is closed.
    _lock: File,
}

impl Port {
    /// Takes a port on which nothing listens.
    pub fn free() -> Self {
        let folder = env::temp_dir().join("quota-tests-ports");
        fs::create_dir_all(&folder).expect("the folder for the locks of ports");
        let count = u32::from(RANGE.end - RANGE.start);
        // Processes start at different places, so that they rarely try each other's ports.
        let first = process::id().wrapping_mul(37) % count;
        (0..count)
            .map(|step| RANGE.start + u16::try_from((first + step) % count).expect("below the range's size"))
            .find_map(|number| {
                let lock = File::create(folder.join(number.to_string())).ok()?;
                lock.try_lock().ok()?;
                TcpListener::bind((Ipv4Addr::LOCALHOST, number)).ok()?;
                Some(Self { number, _lock: lock })
            })
            .unwrap_or_else(|| panic!("no free port in {RANGE:?}"))
    }

    /// The port's number.
    pub fn number(&self) -> u16 {
        self.number
    }
}
