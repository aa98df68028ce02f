//! Networks of addresses, as `--delivery-allow` names them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The addresses that begin with these bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// The network of addresses whose first bits are those of `address`.
    pub(crate) const fn new(address: IpAddr, bits: u8) -> Self {
        Self { address, bits }
    }

    /// Whether it has this address.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let differing = own.to_bits() ^ other.to_bits();
                differing.leading_zeros() >= u32::from(self.bits)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let differing = own.to_bits() ^ other.to_bits();
                differing.leading_zeros() >= u32::from(self.bits)
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = String;

    /// Reads an address, or an address and a number of bits: `10.0.0.0/8`.
    fn from_str(text: &str) -> Result<Self, String> {
        let rule = || format!("{text:?} is no network such as 10.0.0.0/8 or fd00::/8");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| rule())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Some(most), |bits| bits.parse().ok().filter(|bits| *bits <= most));
        Ok(Self { address, bits: bits.ok_or_else(rule)? })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_the_addresses_of_its_first_bits() {
        let contains = |network: &str, address: &str| {
            network.parse::<Network>().unwrap().contains(address.parse().unwrap())
        };
        assert!(contains("10.0.0.0/8", "10.255.0.1") && !contains("10.0.0.0/8", "11.0.0.0"));
        assert!(contains("10.1.2.3", "10.1.2.3") && !contains("10.1.2.3", "10.1.2.2"));
        assert!(contains("0.0.0.0/0", "255.1.2.3") && !contains("0.0.0.0/0", "::1"));
        assert!(contains("fd00::/8", "fdff::1") && !contains("fd00::/8", "fe00::1"));
        assert!(contains("::/0", "fe80::1") && contains("::1", "::1"));
        assert!(
            contains("172.16.0.0/12", "172.31.9.9") && !contains("172.16.0.0/12", "172.32.0.1")
        );
    }

    #[test]
    fn other_texts_are_no_networks() {
        for bad in ["", "10.0.0.0/33", "::/129", "10/8", "10.0.0.0/", "example.com", "10.0.0.0/-1"]
        {
            assert!(bad.parse::<Network>().is_err(), "{bad}");
        }
    }
}
