//! A network of its own for a server of a test: a namespace of Linux, and the one link that leads to it, which breaks as
//! networks do: no connection is closed, nobody is told, and what TCP sends again arrives late.
//!
//! A process holds the namespace. The kernel kills it when the test's process ends in whatever way, and removes namespace and
//! link, as soon as it has given up the connections that were in it.

use std::env;
use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;

use crate::ports::Port;
use crate::process::{Process, Program, find};
use crate::wait::{PATIENCE, until};

/// The first address of those for networks under test (RFC 2544): there are four for each port.
const FIRST: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);

/// A hardware address that nobody has: what is sent there is lost.
const NOBODY: &str = "02:00:00:00:00:01";

/// A namespace, and the link to it. Both are gone when this is dropped.
#[derive(Debug)]
pub struct Network {
    holder: Process,
    /// What the link is called on both sides.
    link: String,
    outside: Ipv4Addr,
    inside: Ipv4Addr,
}

/// What the link loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// All: it is down.
    All,
    /// What goes to the server.
    Requests,
    /// What comes from the server.
    Replies,
}

impl Network {
    /// Makes one, whose name and addresses are of a port that nobody else has. The error is why it cannot be made: it takes root.
    ///
    /// # Panics
    ///
    /// Panics where a program is missing.
    pub async fn of(port: &Port) -> Result<Self, String> {
        assert!(find("ip").is_some(), "no network for this test: install ip (`apt-get install iproute2`)");
        let holder = hold().await?;
        let number = u32::from(FIRST) + 4 * u32::from(port.number());
        let [outside, inside] = [1, 2].map(|step| Ipv4Addr::from(number + step));
        let network = Self { holder, link: format!("quota-{}", port.number()), outside, inside };
        let Self { link, holder, .. } = &network;
        // Of a test that was killed.
        let _ = network.outside(&format!("link del {link}"));
        network.outside(&format!("link add {link} type veth peer name {link} netns {}", holder.id()))?;
        network.outside(&format!("address add {outside}/30 dev {link}"))?;
        network.outside(&format!("link set {link} up"))?;
        network.inside(&format!("address add {inside}/30 dev {link}"))?;
        network.inside(&format!("link set {link} up"))?;
        Ok(network)
    }

    /// Whether one can be made here. It says why, where not.
    ///
    /// # Panics
    ///
    /// Panics in CI, where nothing may be left out.
    pub async fn is_possible() -> bool {
        let Err(why) = Self::of(&Port::free()).await else { return true };
        assert!(env::var("CI").as_deref() != Ok("true"), "in CI this must run: {why}");
        eprintln!("not run: no network can be made here: {why}");
        false
    }

    /// What its link is called.
    pub fn link(&self) -> &str {
        &self.link
    }

    /// Where a server in it is reached.
    pub fn address(&self) -> Ipv4Addr {
        self.inside
    }

    /// A program that runs in it.
    pub fn program(&self, name: &str) -> Program {
        Program::new("nsenter").arg(self.entrance()).arg(name)
    }

    /// Loses something from now on.
    ///
    /// # Panics
    ///
    /// Panics if the link cannot be changed; so does [`Network::mend`].
    pub fn lose(&self, loss: Loss) {
        let Self { link, outside, inside, .. } = self;
        let to_nobody = format!("lladdr {NOBODY} dev {link} nud permanent");
        let done = match loss {
            Loss::All => self.inside(&format!("link set {link} down")),
            Loss::Requests => self.outside(&format!("neighbour replace {inside} {to_nobody}")),
            Loss::Replies => self.inside(&format!("neighbour replace {outside} {to_nobody}")),
        };
        done.expect("a link of one's own");
    }

    /// Loses it no more.
    pub fn mend(&self, loss: Loss) {
        let Self { link, outside, inside, .. } = self;
        let done = match loss {
            Loss::All => self.inside(&format!("link set {link} up")),
            Loss::Requests => self.outside(&format!("neighbour del {inside} dev {link}")),
            Loss::Replies => self.inside(&format!("neighbour del {outside} dev {link}")),
        };
        done.expect("a link of one's own");
    }

    /// Waits until all that was sent to the server has arrived there: TCP sends what was lost again, of connections that
    /// their owners have given up, too.
    pub async fn is_quiet(&self) {
        until(PATIENCE, "what was lost is sent again", async || (self.under_way() == 0).then_some(())).await;
    }

    /// How many connections have bytes under way to the server, by `/proc/net/tcp`: a number, the own address, the other's,
    /// a state, the bytes not acknowledged, and more.
    fn under_way(&self) -> usize {
        let connections = fs::read_to_string("/proc/net/tcp").expect("the connections of this machine");
        // The bytes of the address as a number of this machine.
        let inside = format!("{:08X}:", u32::from_ne_bytes(self.inside.octets()));
        let is_under_way = |line: &&str| {
            let fields: Vec<&str> = line.split_whitespace().take(5).collect();
            matches!(fields[..], [_, _, other, _, bytes]
                if other.starts_with(&inside) && !bytes.starts_with("00000000:"))
        };
        connections.lines().filter(is_under_way).count()
    }

    fn entrance(&self) -> String {
        format!("--net=/proc/{}/ns/net", self.holder.id())
    }

    /// Runs `ip` on this side of the link.
    fn outside(&self, args: &str) -> Result<(), String> {
        run(Command::new("ip").args(args.split(' ')))
    }

    /// Runs `ip` in the namespace.
    fn inside(&self, args: &str) -> Result<(), String> {
        run(Command::new("nsenter").arg(self.entrance()).arg("ip").args(args.split(' ')))
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // At once, rather than when the kernel gets to it. It may not have been made.
        let _ = self.outside(&format!("link del {}", self.link));
    }
}

/// A process in a namespace of its own.
async fn hold() -> Result<Process, String> {
    let of = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
    let mut holder = Program::new("unshare").args(["--net", "sleep", "infinity"]).start();
    let is_there = until(PATIENCE, "a process enters a namespace", async || {
        if holder.exit_status().is_some() {
            return Some(false);
        }
        (of(&holder.id().to_string())? != of("self")?).then_some(true)
    })
    .await;
    if is_there { Ok(holder) } else { Err(holder.stderr().trim().to_owned()) }
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
