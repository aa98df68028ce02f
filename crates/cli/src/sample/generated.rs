//! Any number of sample users. A seed and a number determine each user, so that the same command
//! prints the same users. Some have errors and duplicates, like real data.

use fastrand::Rng;

use super::names::{SCRIPTS, Script};

/// The domains of addresses (RFC 2606).
const DOMAINS: [&str; 3] = ["example.com", "example.org", "example.net"];
/// The earliest time in attributes: 2015-01-01T00:00:00Z.
const START_MILLIS: i64 = 1_420_070_400_000;
const DAY_MILLIS: i64 = 86_400_000;
/// The number of attributes with names and values of their own.
const NAMED_ATTRIBUTES: usize = 24;

/// The characters of codes, and how many of them the shortest code has before its check character.
#[derive(Clone, Copy)]
struct Alphabet {
    /// As many as a prime.
    characters: &'static [u8],
    min_digits: usize,
}

/// Without those that look alike.
const LETTERS: Alphabet = Alphabet { characters: b"abcdefghjkmnpqrstuvwxyz", min_digits: 6 };
const DIGITS: Alphabet = Alphabet { characters: b"0123456", min_digits: 10 };

/// A sample user.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleUser {
    /// The display name.
    pub display_name: String,
    /// Identifiers in text form, such as `email:joe@example.com`.
    pub identifiers: Vec<String>,
    /// The attributes.
    pub attributes: Vec<(String, SampleValue)>,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum SampleValue {
    /// A string.
    Text(String),
    /// A whole number.
    Int(i64),
    /// A number.
    Double(f64),
    /// A boolean.
    Bool(bool),
    /// An instant, in milliseconds.
    Time(i64),
    /// Several strings.
    List(Vec<String>),
}

/// The users of a seed.
#[derive(Clone, Copy, Debug)]
pub struct SampleUsers {
    /// The seed.
    pub seed: u64,
    /// The number of attributes of each user.
    pub attributes: usize,
    /// The percentage of users with an error or a duplicate.
    pub dirty: u8,
}

/// The names of a user.
struct FullName {
    script: &'static Script,
    first: (&'static str, &'static str),
    last: (&'static str, &'static str),
    /// The number in letters, which makes identifiers unique and far from each other.
    code: String,
}

impl SampleUsers {
    /// The user with this number.
    pub fn user(&self, n: u64) -> SampleUser {
        let mut rng = self.rng(n, 1);
        let person = self.full_name(n);
        let is_dirty = n > 0 && rng.u8(0..100) < self.dirty;
        let mut user = SampleUser {
            display_name: person.display_name(),
            identifiers: self.identifiers(n, &person, &mut rng),
            attributes: self.attributes_of(n, &person, &mut rng),
        };
        if is_dirty {
            self.make_dirty(n, &mut user, &mut rng);
        }
        user
    }

    fn rng(&self, n: u64, stream: u64) -> Rng {
        let mixed =
            n.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ stream.wrapping_mul(0xd1b5_4a32_d192_ed03);
        Rng::with_seed(self.seed.wrapping_mul(0xff51_afd7_ed55_8ccd) ^ mixed)
    }

    fn full_name(&self, n: u64) -> FullName {
        let mut rng = self.rng(n, 0);
        let script = &SCRIPTS[rng.usize(0..SCRIPTS.len())];
        let (first, last) = (script.first[rng.usize(0..8)], script.last[rng.usize(0..8)]);
        FullName { script, first, last, code: code(n, LETTERS) }
    }

    /// An address, a handle and an account; some have a phone as well.
    fn identifiers(&self, n: u64, person: &FullName, rng: &mut Rng) -> Vec<String> {
        // A handle has one script; a right-to-left one must end in a letter.
        let handle = match rng.u8(0..10) {
            0 if !person.script.is_right_to_left() => {
                format!("{}_{}_{}", person.first.0, code(n, DIGITS), person.last.0)
            }
            _ => format!("{}_{}", person.first.1, person.code),
        };
        let account = format!("social:github/{}", 1_000_000 + n);
        let mut identifiers =
            vec![format!("email:{}", self.email(n)), format!("handle:{handle}"), account];
        // Numbers from 0100 to 0199 are reserved for fiction.
        if n.is_multiple_of(200) && n / 200 < 700 {
            let area = [212, 310, 415, 512, 617, 702, 808][(n / 20_000) as usize % 7];
            identifiers.push(format!("phone:+1{area}55501{:02}", n / 200 % 100));
        }
        identifiers
    }

    fn email(&self, n: u64) -> String {
        let FullName { first, last, code, .. } = self.full_name(n);
        let domain = DOMAINS[n as usize % DOMAINS.len()];
        format!("{}.{}.{code}@{domain}", first.1, last.1)
    }

    fn attributes_of(
        &self,
        n: u64,
        person: &FullName,
        rng: &mut Rng,
    ) -> Vec<(String, SampleValue)> {
        (0..self.attributes).map(|at| attribute(at, n, person, rng)).collect()
    }

    /// Adds one of five kinds of errors and duplicates to a user.
    fn make_dirty(&self, n: u64, user: &mut SampleUser, rng: &mut Rng) {
        let other = rng.u64(0..n);
        match rng.u8(0..5) {
            // A duplicate with a different spelling of the address.
            0 => {
                let email = self.email(other);
                let (local, domain) = email.split_once('@').unwrap_or_default();
                let spelling = local.replacen('.', "", 1);
                user.identifiers[0] = format!("email:{spelling}+work@{domain}");
                user.display_name = self.full_name(other).display_name();
            }
            // The address of another user.
            1 => user.identifiers[0] = format!("email:{}", self.email(other).to_uppercase()),
            // An invalid address.
            2 => user.identifiers[0] = user.identifiers[0].replace('@', " at "),
            // The address of another user in an attribute.
            3 => {
                let email = SampleValue::Text(self.email(other));
                user.attributes.push(("contact".to_owned(), email));
            }
            // A badly formatted name.
            _ => user.display_name = format!("  {}  ", user.display_name.to_uppercase()),
        }
    }
}

impl FullName {
    fn display_name(&self) -> String {
        match self.script.is_reversed {
            true => format!("{}{}", self.last.0, self.first.0),
            false => format!("{} {}", self.first.0, self.last.0),
        }
    }
}

/// The number in these characters, with a check character: codes of one length differ in at least
/// two places, and not by a swap of neighbours. A search for duplicates finds handles of people of
/// one name that are closer.
fn code(mut n: u64, Alphabet { characters, min_digits }: Alphabet) -> String {
    let base = characters.len() as u64;
    let (mut digits, mut check) = (Vec::new(), 0);
    while n > 0 || digits.len() < min_digits {
        digits.push(n % base);
        n /= base;
        // A weight is no multiple of the base.
        let weight = digits.len() as u64 % (base - 1) + 1;
        check += weight * digits[digits.len() - 1];
    }
    digits.push(check % base);
    digits.iter().map(|digit| char::from(characters[*digit as usize])).collect()
}

/// The attribute at a position.
fn attribute(at: usize, n: u64, person: &FullName, rng: &mut Rng) -> (String, SampleValue) {
    let pick = |rng: &mut Rng, all: &[&str]| SampleValue::Text(all[rng.usize(0..all.len())].into());
    let (name, value) = match at {
        0 => ("team", pick(rng, &["search", "payments", "design", "platform", "support"])),
        1 => ("languages", SampleValue::List(vec![person.script.language.into(), "en".into()])),
        2 => ("country", SampleValue::Text(person.script.country.into())),
        3 => ("employee_number", SampleValue::Int(100_000 + n as i64)),
        4 => ("hire_date", SampleValue::Time(START_MILLIS + rng.i64(0..4_000) * DAY_MILLIS)),
        5 => ("plan", pick(rng, &["free", "team", "enterprise"])),
        6 => ("newsletter", SampleValue::Bool(rng.bool())),
        7 => ("credit_score", SampleValue::Double(f64::from(rng.u32(0..10_000)) / 100.0)),
        8 => ("office", pick(rng, &["Berlin", "Lagos", "Tokyo", "São Paulo", "Seoul", "Austin"])),
        9 => ("floor", SampleValue::Int(rng.i64(0..30))),
        10 => ("cost_center", SampleValue::Text(format!("CC-{:04}", rng.u16(0..500)))),
        11 => ("job_title", pick(rng, &["Engineer", "Designer", "Manager", "Analyst"])),
        12 => ("department", pick(rng, &["R&D", "Sales", "Finance", "Operations"])),
        13 => ("preferred_language", SampleValue::Text(person.script.language.into())),
        14 => ("login_count", SampleValue::Int(rng.i64(0..5_000))),
        15 => {
            ("last_login_time", SampleValue::Time(START_MILLIS + rng.i64(0..345_600_000) * 1_000))
        }
        16 => ("device.platform", pick(rng, &["ios", "android", "web", "linux"])),
        17 => ("referral.source", pick(rng, &["search", "friend", "event", "advert"])),
        18 => ("consent.marketing", SampleValue::Bool(rng.bool())),
        19 => ("time_zone", pick(rng, &["Europe/Berlin", "Asia/Tokyo", "America/New_York"])),
        20 => ("badge_number", SampleValue::Text(format!("B{:07}", rng.u32(0..9_999_999)))),
        21 => ("storage_used_gb", SampleValue::Double(f64::from(rng.u16(0..2_000)) / 10.0)),
        22 => ("tags", SampleValue::List(vec!["sample".into(), person.code.clone()])),
        23 => ("legal_name", SampleValue::Text(person.display_name())),
        _ => ("", SampleValue::Text(format!("value {}", rng.u16(0..1_000)))),
    };
    match at {
        ..NAMED_ATTRIBUTES => (name.to_owned(), value),
        _ => (format!("custom.field-{at}"), value),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use polynym_identifier::{Identifier, RawIdentifier};

    fn users(seed: u64, dirty: u8) -> SampleUsers {
        SampleUsers { seed, attributes: 20, dirty }
    }

    #[test]
    fn a_seed_gives_the_same_users() {
        let of = |seed| (0..50).map(|n| users(seed, 20).user(n)).collect::<Vec<_>>();
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
    }

    #[test]
    fn clean_users_are_valid_and_share_nothing() {
        let mut seen = HashSet::new();
        for user in (0..20_000).map(|n| users(1, 0).user(n)) {
            assert_eq!(user.attributes.len(), 20);
            for text in user.identifiers {
                let raw = RawIdentifier::from_text(&text).unwrap();
                let parsed = Identifier::parse(raw).unwrap_or_else(|e| panic!("{text}: {e}"));
                assert!(seen.insert(parsed.clone()), "{text}");
            }
        }
    }
}
