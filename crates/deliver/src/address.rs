//! The addresses to which events may go. A tenant's admin names a URL, and this server connects to
//! it from within its own network: so only public addresses count, unless the operator names
//! others.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::network::Network;
use url::{Host, Url};

/// The maximum bytes of a URL.
const MAX_URL_BYTES: usize = 2_048;

/// Ranges of IPv4 that are not public: those of IANA's registry of special-purpose addresses,
/// multicast, and the address at which virtual machines of Azure find their host.
const SPECIAL_V4: [(Ipv4Addr, u8); 18] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 31, 196, 0), 24),
    (Ipv4Addr::new(192, 52, 193, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(192, 175, 48, 0), 24),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Multicast, what is reserved, and the broadcast address.
    (Ipv4Addr::new(224, 0, 0, 0), 3),
];

/// The range of all public addresses of IPv6, which has these special ones: Teredo and others of
/// `2001::/23`, documentation, 6to4, and the direct delegation of AS112.
const PUBLIC_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
const SPECIAL_V6: [(Ipv6Addr, u8); 5] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0), 48),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];
/// Addresses of IPv4 as networks without IPv4 see them (NAT64).
const NAT64: (Ipv6Addr, u8) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// The addresses to which a server sends events.
#[derive(Clone, Debug, Default)]
pub struct AddressPolicy {
    /// Networks that are allowed although they are not public, also without TLS.
    allowed: Vec<Network>,
}

/// The reason why a URL is none of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlFault {
    /// It is no URL, or is too long.
    #[error("is no URL of at most 2,048 bytes: write https://, a host and a path")]
    Malformed,
    /// It has another scheme.
    #[error("has no https:// (http:// is for networks of --delivery-allow)")]
    Scheme,
    /// It has a user name, a password or a fragment.
    #[error("has a user name, a password or a fragment: receivers check the signature instead")]
    Extra,
    /// Its host is an address that is not public.
    #[error("names an address that is not public, and that --delivery-allow does not name")]
    Address,
}

impl AddressPolicy {
    /// A policy that allows these networks beside the public addresses.
    pub const fn new(allowed: Vec<Network>) -> Self {
        Self { allowed }
    }

    /// Reads the URL of a receiver. If its host is a name, each connection checks its addresses.
    ///
    /// # Errors
    /// [`UrlFault`].
    pub fn parse_url(&self, text: &str) -> Result<Url, UrlFault> {
        if text.len() > MAX_URL_BYTES {
            return Err(UrlFault::Malformed);
        }
        let url = Url::parse(text).map_err(|_| UrlFault::Malformed)?;
        let is_plain = match url.scheme() {
            "https" => false,
            "http" if !self.allowed.is_empty() => true,
            _ => return Err(UrlFault::Scheme),
        };
        let has_user = !url.username().is_empty() || url.password().is_some();
        if has_user || url.fragment().is_some() {
            return Err(UrlFault::Extra);
        }
        // A host of digits, in any base, is an address by now.
        let address = match url.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::from(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::from(address)),
            Some(Host::Domain(_)) => None,
            None => return Err(UrlFault::Malformed),
        };
        match address.is_none_or(|address| self.permits(address, is_plain)) {
            true => Ok(url),
            false => Err(UrlFault::Address),
        }
    }

    /// Whether a server connects to this address. Without TLS it does so only if it is allowed by
    /// name.
    pub fn permits(&self, address: IpAddr, is_plain: bool) -> bool {
        // The same receiver, in another form.
        let address = address.to_canonical();
        self.allowed.iter().any(|network| network.contains(address))
            || !is_plain && is_public(address)
    }
}

/// Whether anybody may have this address.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(v6) if is_in(NAT64, v6) => {
            let [.., a, b, c, d] = v6.octets();
            is_public_v4(Ipv4Addr::new(a, b, c, d))
        }
        IpAddr::V6(v6) => is_in(PUBLIC_V6, v6) && !SPECIAL_V6.iter().any(|range| is_in(*range, v6)),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let is_in = |(first, bits): &(Ipv4Addr, u8)| {
        Network::new(IpAddr::V4(*first), *bits).contains(address.into())
    };
    !SPECIAL_V4.iter().any(is_in)
}

fn is_in((first, bits): (Ipv6Addr, u8), address: Ipv6Addr) -> bool {
    Network::new(IpAddr::V6(first), bits).contains(address.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Addresses in each of the special ranges.
    const NOT_PUBLIC_V4: [&str; 27] = [
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.0.1",
        "168.63.129.16",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.8",
        "192.0.0.170",
        "192.0.2.1",
        "192.31.196.1",
        "192.52.193.1",
        "192.88.99.1",
        "192.168.1.1",
        "192.175.48.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.9",
        "224.0.0.1",
        "239.1.1.1",
        "240.0.0.1",
        "255.255.255.255",
    ];
    const NOT_PUBLIC_V6: [&str; 25] = [
        "::",
        "::1",
        "::8.8.8.8",
        "64:ff9b:1::808:808",
        "100::1",
        "100:0:0:1::1",
        "2001::1",
        "2001:2::1",
        "2001:10::1",
        "2001:20::1",
        "2001:1::1",
        "2001:db8::1",
        "2002:808:808::1",
        "2620:4f:8000::1",
        "3fff::1",
        "3fff:fff::1",
        "5f00::1",
        "4000::1",
        "fc00::1",
        "fd00:ec2::254",
        "fdff::1",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "ffff::1",
    ];

    fn policy(allowed: &[&str]) -> AddressPolicy {
        AddressPolicy::new(allowed.iter().map(|network| network.parse().unwrap()).collect())
    }

    fn permits(policy: &AddressPolicy, address: &str) -> bool {
        policy.permits(address.parse().unwrap(), false)
    }

    #[test]
    fn public_addresses_pass() {
        let policy = policy(&[]);
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "168.63.129.17",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450:4001::1",
            "2001:4860:4860::8888",
            "64:ff9b::808:808",
            "::ffff:8.8.8.8",
        ] {
            assert!(permits(&policy, address), "{address}");
            assert!(!policy.permits(address.parse().unwrap(), true), "{address} without TLS");
        }
    }

    #[test]
    fn special_addresses_do_not_pass_in_any_form() {
        let policy = policy(&[]);
        for address in NOT_PUBLIC_V4 {
            let [a, b, c, d] = address.parse::<Ipv4Addr>().unwrap().octets();
            let forms = [
                address.to_owned(),
                format!("::ffff:{address}"),
                format!("::{address}"),
                format!("64:ff9b::{address}"),
                format!("64:ff9b:1::{address}"),
                format!("2002:{a:02x}{b:02x}:{c:02x}{d:02x}::1"),
                format!(
                    "2001:0:808:808::{:x}:{:x}",
                    0xffff ^ (u16::from(a) << 8 | u16::from(b)),
                    0xffff ^ (u16::from(c) << 8 | u16::from(d))
                ),
            ];
            for form in forms {
                assert!(!permits(&policy, &form), "{form}");
            }
        }
        for address in NOT_PUBLIC_V6 {
            assert!(!permits(&policy, address), "{address}");
        }
    }

    #[test]
    fn networks_that_the_operator_names_pass_also_without_tls() {
        let policy = policy(&["127.0.0.0/8", "fd00::/8"]);
        for address in ["127.0.0.1", "::ffff:127.0.0.1", "fd00::1"] {
            assert!(policy.permits(address.parse().unwrap(), true), "{address}");
        }
        for address in ["10.0.0.1", "::1", "fe80::1"] {
            assert!(!permits(&policy, address), "{address}");
        }
        assert_eq!(
            policy.parse_url("http://127.0.0.1:80/a").unwrap().port_or_known_default(),
            Some(80)
        );
        assert_eq!(policy.parse_url("http://8.8.8.8/"), Err(UrlFault::Address));
    }

    #[test]
    fn urls_are_of_https_and_of_public_hosts() {
        let policy = policy(&[]);
        for good in ["https://example.com/hook?a=b", "https://8.8.8.8:8443/", "https://[2606::1]"] {
            assert!(policy.parse_url(good).is_ok(), "{good}");
        }
        let faults = [
            ("", UrlFault::Malformed),
            ("example.com/hook", UrlFault::Malformed),
            ("https://", UrlFault::Malformed),
            ("http://example.com/", UrlFault::Scheme),
            ("file:///etc/passwd", UrlFault::Scheme),
            ("gopher://example.com/", UrlFault::Scheme),
            ("https://ana@example.com/", UrlFault::Extra),
            ("https://ana:secret@example.com/", UrlFault::Extra),
            ("https://example.com/#part", UrlFault::Extra),
            ("https://127.0.0.1/", UrlFault::Address),
            ("https://2130706433/", UrlFault::Address),
            ("https://0x7f000001/", UrlFault::Address),
            ("https://0177.0.0.1/", UrlFault::Address),
            ("https://127.1/", UrlFault::Address),
            ("https://0xa9fea9fe/", UrlFault::Address),
            ("https://①②⑦.0.0.1/", UrlFault::Address),
            ("https://169.254.169.254./latest", UrlFault::Address),
            ("https://[::ffff:7f00:1]/", UrlFault::Address),
            ("https://[fd00:ec2::254]/", UrlFault::Address),
        ];
        for (text, fault) in faults {
            assert_eq!(policy.parse_url(text), Err(fault), "{text}");
        }
        let long = format!("https://example.com/{}", "a".repeat(MAX_URL_BYTES));
        assert_eq!(policy.parse_url(&long), Err(UrlFault::Malformed));
    }
}
