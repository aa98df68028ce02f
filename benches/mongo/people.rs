//! The users that all of this works on: everything about a person follows from a number, so that
//! every answer can be checked.

use locality_uuid::{Generator, LocalityId, Mode};
use polynym::directory::{
    Decision, EncodedUser, Mutation, NewIdentity, NewUser, ReadSet, Record, Tenant, Timestamp,
    User, UserChange, Value,
};
use polynym::identifier::{Identifier, IdentityKey, Kind};
use xxhash_rust::xxh3::xxh3_64;

use crate::Result;

/// The identities of a person, one of each of three kinds.
pub const KINDS: u64 = 3;

/// When everybody was made.
const TIME: Timestamp = Timestamp::from_millis(1_790_000_000_123);
const FIRST: [&str; 16] = [
    "ada",
    "alan",
    "barbara",
    "claude",
    "donald",
    "edith",
    "frances",
    "grace",
    "hedy",
    "john",
    "katherine",
    "leslie",
    "margaret",
    "niklaus",
    "radia",
    "tony",
];
const LAST: [&str; 16] = [
    "allen", "backus", "bell", "clarke", "dijkstra", "hamilton", "hoare", "hopper", "johnson",
    "knuth", "lamarr", "lamport", "liskov", "lovelace", "perlman", "turing",
];

/// The people 0 to `len`, as they are loaded.
pub struct People {
    ids: Vec<LocalityId>,
    /// Of each person's wire form, by which an answer is known to be right.
    hashes: Vec<u64>,
}

impl People {
    pub fn new(len: u64) -> Result<Self> {
        let ids = Generator::new(Mode::Variable);
        let ids: Vec<_> = (0..len).map(|_| ids.next_id()).collect();
        let hash = |(n, id): (usize, &LocalityId)| {
            Ok(xxh3_64(EncodedUser::of(&user(n as u64, *id)?).as_bytes()))
        };
        let hashes = ids.iter().enumerate().map(hash).collect::<Result<_>>()?;
        Ok(Self { ids, hashes })
    }

    pub fn len(&self) -> u64 {
        self.ids.len() as u64
    }

    pub fn id(&self, n: u64) -> LocalityId {
        self.ids[n as usize]
    }

    pub fn user(&self, n: u64) -> Result<User> {
        user(n, self.id(n))
    }

    /// Whether these bytes are the wire form of person `n` as it was loaded.
    pub fn is_right(&self, n: u64, wire: &[u8]) -> bool {
        xxh3_64(wire) == self.hashes[n as usize]
    }
}

/// The key of one of the person's identities.
pub fn key(n: u64, kind: u64) -> Result<IdentityKey> {
    let (kind, value) = identifier(n, kind);
    let key = format!("{},{},{value}", Tenant::DEFAULT, kind.as_str());
    IdentityKey::from_stored(key).ok_or_else(|| "not a key".into())
}

fn identifier(n: u64, kind: u64) -> (Kind, String) {
    let (first, last) = (FIRST[(n % 16) as usize], LAST[(n / 16 % 16) as usize]);
    match kind {
        0 => (Kind::Email, format!("{first}.{last}.{n}@example.com")),
        1 => (Kind::Handle, format!("{first}_{n}")),
        _ => (Kind::Social, format!("github/{}", 10_000_000 + n)),
    }
}

fn user(n: u64, id: LocalityId) -> Result<User> {
    outcome(&creation(n, id), None)
}

/// The outcome of a mutation by the rules alone.
pub fn outcome(mutation: &Mutation, before: Option<Record>) -> Result<User> {
    let mut view = ReadSet::optimistic();
    let id = mutation.user_id().ok_or("a mutation of no user")?;
    view.add_user(id, before);
    match mutation.decide(&view)? {
        Decision::Ready(effects) => Ok(effects.into_outcome().into_user()?),
        Decision::NeedsReads(_) => Err("a mutation that needs more than its user".into()),
    }
}

/// The mutation that creates person `n`.
pub fn creation(n: u64, id: LocalityId) -> Mutation {
    let (first, last) = (FIRST[(n % 16) as usize], LAST[(n / 16 % 16) as usize]);
    let draft = NewUser {
        display_name: format!("{first} {last} {n}"),
        identities: (0..KINDS).map(|kind| identity(identifier(n, kind))).collect(),
        attributes: [("level".to_owned(), Value::Int((n % 10) as i64))].into(),
    };
    mutation(id, UserChange::Create(draft))
}

/// The mutation that links one more handle, the one with this number, to a user.
pub fn link(id: LocalityId, number: u64) -> Mutation {
    mutation(id, UserChange::Link(identity((Kind::Handle, link_handle(number)))))
}

/// The key that [`link`] takes.
pub fn link_key(number: u64) -> Result<IdentityKey> {
    let key = format!("{},{},{}", Tenant::DEFAULT, Kind::Handle.as_str(), link_handle(number));
    IdentityKey::from_stored(key).ok_or_else(|| "not a key".into())
}

/// Handles begin with different letters, as those of people do.
fn link_handle(number: u64) -> String {
    format!("{}_link_{number}", FIRST[(number % 16) as usize])
}

fn identity((kind, value): (Kind, String)) -> NewIdentity {
    let display = value.clone();
    let identifier = Identifier::from_canonical(kind, value);
    NewIdentity::new(identifier, display)
}

fn mutation(user_id: LocalityId, change: UserChange) -> Mutation {
    Mutation::of_user(Tenant::DEFAULT, user_id, TIME, change)
}

/// A bijection that looks random (SplitMix64, Steele, Lea and Flood 2014).
pub fn mixed(n: u64) -> u64 {
    let mut z = n.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
