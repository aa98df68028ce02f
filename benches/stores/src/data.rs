//! The same users for every store: a document of 318 bytes, and three identity keys of some 30
//! bytes.

pub const DOCUMENT: usize = 318;

pub struct User {
    pub id: [u8; 16],
    pub document: Vec<u8>,
    pub keys: [String; 3],
}

/// What a claim holds: the id of the user, then the version of the rules that made the key.
pub type Claim = [u8; 18];

impl User {
    pub fn number(n: u64) -> Self {
        let (high, low) = (mixed(n), mixed(!n));
        let mut id = [0; 16];
        id[..8].copy_from_slice(&high.to_be_bytes());
        id[8..].copy_from_slice(&low.to_be_bytes());
        let keys = [0, 1, 2].map(|kind| key(n, kind));
        let mut document = n.to_be_bytes().to_vec();
        let text = format!("default User number {n} {} {high:x} {low:x} ", keys.join(" "));
        document.extend(text.bytes().chain(NOTE.bytes().cycle()).take(DOCUMENT - document.len()));
        Self { id, document, keys }
    }

    pub fn claim(&self) -> Claim {
        let mut claim = [0; 18];
        claim[..16].copy_from_slice(&self.id);
        claim[17] = 1;
        claim
    }
}

const NOTE: &str = "some sixty bytes that stand for what a company knows of a user, and a bit more of it. ";

/// One of the three identity keys of user `n`.
pub fn key(n: u64, kind: u64) -> String {
    match kind {
        0 => format!("default:email:user{n}@example.com"),
        1 => format!("default:handle:user-{n}-{:x}", n & 0xFFF),
        _ => format!("default:social:github/{}", 10_000_000 + n),
    }
}

/// A bijection that looks random (SplitMix64, Steele, Lea and Flood 2014).
pub fn mixed(n: u64) -> u64 {
    let mut z = n.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
