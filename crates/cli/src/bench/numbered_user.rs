//! The users of a measurement. A number determines each user, so that every answer can be checked
//! without a list of users.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::hash::{BuildHasher, RandomState};

use polynym_proto::v1::identifier::Kind;
use polynym_proto::v1::{AttributeValue, Identifier, Identity, Social, User, attribute_value};

/// Identities of a user: an email, a handle and a social account.
pub const KINDS: usize = 3;

const FIRST: [&str; 16] = [
    "ada",
    "alan",
    "barbara",
    "claude",
    "donald",
    "edith",
    "edsger",
    "frances",
    "grace",
    "hedy",
    "john",
    "katherine",
    "leslie",
    "margaret",
    "radia",
    "tony",
];
const LAST: [&str; 16] = [
    "allen", "backus", "bell", "clarke", "dijkstra", "hamilton", "hoare", "hopper", "johnson",
    "knuth", "lamarr", "lamport", "liskov", "lovelace", "perlman", "turing",
];
const PROVIDER: &str = "github";
/// The capacity for an identifier's value, for numbers below a billion.
const VALUE_CAPACITY: usize = 48;

/// The first number of this run's new users. Numbers from here on are unused; loaded users have
/// small numbers.
pub fn new_run() -> u64 {
    let random = RandomState::new().hash_one(());
    1 << 63 | (random >> 33) << 32
}

/// The user with this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberedUser(pub u64);

impl NumberedUser {
    fn first(self) -> &'static str {
        FIRST[(self.0 % 16) as usize]
    }

    fn last(self) -> &'static str {
        LAST[(self.0 / 16 % 16) as usize]
    }

    /// The display name.
    pub fn name(self) -> String {
        let mut name = String::new();
        self.write_name(&mut name);
        name
    }

    fn write_name(self, out: &mut String) {
        out.clear();
        // Writing to a string cannot fail.
        let _ = write!(out, "{} {} {}", self.first(), self.last(), self.0);
    }

    /// Whether this is the user's display name. Overwrites `scratch`.
    pub fn is_named(self, name: &[u8], scratch: &mut String) -> bool {
        self.write_name(scratch);
        scratch.as_bytes() == name
    }

    /// One of the user's [`KINDS`] identifiers, in canonical form.
    pub fn identifier(self, kind: usize) -> Identifier {
        let mut value = String::with_capacity(VALUE_CAPACITY);
        self.write_value(kind, &mut value);
        let typed = match kind {
            0 => Kind::Email(value),
            1 => Kind::Handle(value),
            _ => Kind::Social(Social { provider: PROVIDER.to_owned(), subject: value }),
        };
        Identifier { kind: Some(typed) }
    }

    fn write_value(self, kind: usize, out: &mut String) {
        let (first, last, number) = (self.first(), self.last(), self.0);
        out.clear();
        let _ = match kind {
            0 => write!(out, "{first}.{last}.{number}@example.com"),
            1 => write!(out, "{first}_{number}"),
            _ => write!(out, "{}", 10_000_000 + number),
        };
    }

    /// Whether this is the user's identifier of the kind. Overwrites `scratch`.
    pub fn has_identifier(
        self,
        kind: usize,
        identifier: &Identifier,
        scratch: &mut String,
    ) -> bool {
        self.write_value(kind, scratch);
        match (kind, &identifier.kind) {
            (0, Some(Kind::Email(value))) | (1, Some(Kind::Handle(value))) => value == scratch,
            (2, Some(Kind::Social(Social { provider, subject }))) => {
                provider == PROVIDER && subject == scratch
            }
            _ => false,
        }
    }

    /// The user to create.
    pub fn user(self) -> User {
        let identity =
            |kind| Identity { identifier: Some(self.identifier(kind)), ..Default::default() };
        let level =
            AttributeValue { kind: Some(attribute_value::Kind::IntValue((self.0 % 10) as i64)) };
        User {
            display_name: self.name(),
            identities: (0..KINDS).map(identity).collect(),
            attributes: BTreeMap::from([("level".to_owned(), level)]),
            ..Default::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_deterministic_and_share_nothing() {
        let mut seen = std::collections::HashSet::new();
        for number in (0..2_000).chain([1 << 63, new_run()]) {
            let person = NumberedUser(number);
            assert_eq!(person.user(), NumberedUser(number).user());
            for kind in 0..KINDS {
                let identifier = person.identifier(kind);
                assert!(person.has_identifier(kind, &identifier, &mut String::new()));
                assert!(!person.has_identifier(
                    (kind + 1) % KINDS,
                    &identifier,
                    &mut String::new()
                ));
                assert!(!NumberedUser(number + 1).has_identifier(
                    kind,
                    &identifier,
                    &mut String::new()
                ));
                assert!(seen.insert(format!("{identifier:?}")));
            }
            assert!(person.is_named(person.name().as_bytes(), &mut String::new()));
            assert!(
                !person.is_named(NumberedUser(number + 1).name().as_bytes(), &mut String::new())
            );
        }
    }

    /// Measurements of other stores used users of the same size.
    #[test]
    fn a_user_has_about_318_bytes_in_an_answer() {
        let time = || Some(prost_types::Timestamp { seconds: 1_790_000_000, nanos: 123_000_000 });
        let mut user = NumberedUser(123_456).user();
        (user.user_id, user.tenant, user.etag) =
            ("x".repeat(36), "default".to_owned(), "x".repeat(16));
        (user.state, user.create_time, user.update_time) = (1, time(), time());
        for (kind, identity) in user.identities.iter_mut().enumerate() {
            NumberedUser(123_456).write_value(kind, &mut identity.display);
            (identity.link_time, identity.primary) = (time(), true);
        }
        let bytes = prost::Message::encoded_len(&user);
        assert!((300..=340).contains(&bytes), "{bytes}");
    }

    #[test]
    fn identifiers_are_canonical() {
        use polynym_identifier::{Identifier, RawIdentifier};
        for number in [0, 17, 255, 999_999, u64::MAX >> 1] {
            let Some(Kind::Email(email)) = NumberedUser(number).identifier(0).kind else {
                panic!()
            };
            assert_eq!(Identifier::parse(RawIdentifier::Email(&email)).unwrap().canonical(), email);
            let Some(Kind::Handle(handle)) = NumberedUser(number).identifier(1).kind else {
                panic!()
            };
            assert_eq!(
                Identifier::parse(RawIdentifier::Handle(&handle)).unwrap().canonical(),
                handle
            );
        }
    }

    #[test]
    fn new_runs_start_at_unused_numbers() {
        let run = new_run();
        assert!(run >= 1 << 63 && run & 0xffff_ffff == 0);
        assert_ne!(run, new_run());
    }
}
