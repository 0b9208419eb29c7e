use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::InvalidAccount;

/// The well-known NAT64 prefix, 64:ff9b::/96 (RFC 6052): the last 32 bits are the IPv4 address behind it.
const NAT64: u128 = 0x0064_ff9b << 96;

/// How many leading bits of an IPv6 address name one account: 1 to 128.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Prefix(u8);

impl Default for Ipv6Prefix {
    /// A /64, what one customer commonly has.
    fn default() -> Self {
        Self(64)
    }
}

impl Ipv6Prefix {
    /// From a number of bits.
    pub fn new(bits: u8) -> Option<Self> {
        (1..=128).contains(&bits).then_some(Self(bits))
    }

    /// The number of bits.
    pub const fn bits(self) -> u8 {
        self.0
    }
}

/// IPv4-mapped and NAT64 addresses are their IPv4 address; other IPv6 addresses are their network, written
/// `2001:db8::/64`, in which form they are accepted again.
pub(super) fn normalise(id: &str, prefix: Ipv6Prefix) -> Result<Box<str>, InvalidAccount> {
    let (address, bits) = match id.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (id, None),
    };
    let address: IpAddr = address.parse().map_err(|_| InvalidAccount::NotAnAddress)?;
    let name = match address {
        // The one spelling that is read.
        IpAddr::V4(_) if bits.is_none() => return Ok(id.into()),
        IpAddr::V4(_) => return Err(InvalidAccount::NotAnAddress),
        IpAddr::V6(v6) => match embedded(v6) {
            Some(v4) => v4.to_string(),
            None => network(v6, prefix),
        },
    };
    if bits.is_some() && name != id {
        return Err(InvalidAccount::NotAnAddress);
    }
    Ok(name.into())
}

fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let bits = address.to_bits();
    let nat64 = (bits >> 32 << 32 == NAT64).then_some(Ipv4Addr::from_bits(bits as u32));
    address.to_ipv4_mapped().or(nat64)
}

fn network(address: Ipv6Addr, Ipv6Prefix(bits): Ipv6Prefix) -> String {
    if bits == 128 {
        return address.to_string();
    }
    let mask = u128::MAX << (128 - bits);
    format!("{}/{bits}", Ipv6Addr::from_bits(address.to_bits() & mask))
}
