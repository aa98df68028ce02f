//! The profile of a user: hashes of its names and addresses, which are compared with those of
//! others. Users that have a key in common are compared.

use locality_uuid::LocalityId;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{email, name};
use crate::clock::Now;
use crate::model::attribute::Value;
use crate::model::record::Record;
use crate::model::user::{State, User};
use polynym_identifier::{Identifier, IdentityKey, Kind, RawIdentifier, Rules};

/// The addresses in attributes, and the handles, that are looked at. Few users have more.
const CONTACTS: usize = 32;
const HANDLES: usize = 8;
/// The longest text of an attribute that may be an address.
const CONTACT_BYTES: usize = 254;

/// Users with one key are compared. The order is that of the hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(u64);

/// The meaning of a key: the last two bits.
const CLASS: u64 = 0b11;
const OF_CONTACT: u64 = 0;
const OF_SKELETON: u64 = 1;
const OF_NAME: u64 = 2;

impl Key {
    /// The bounds of all keys.
    pub const MIN: Self = Self(0);
    /// See [`Key::MIN`].
    pub const MAX: Self = Self(u64::MAX);

    const fn new(hash: u64, class: u64) -> Self {
        Self(hash & !CLASS | class)
    }

    /// The middle between two keys; none where they are the same.
    pub fn halfway(self, most: Self) -> Option<Self> {
        (self < most).then(|| Self(self.0 + (most.0 - self.0) / 2))
    }

    /// The key after this one.
    pub fn following(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }

    /// Whether the users have this key for a display name and a part of a handle, and may have
    /// nothing else in common.
    pub const fn is_of_name(self) -> bool {
        self.0 & CLASS == OF_NAME
    }
}

/// The place where a user has an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// An identity.
    Identity,
    /// An attribute.
    Attribute,
    /// A hold: the user gave it up.
    Hold,
}

/// An email address or phone number of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Contact {
    /// Of the mailbox without dots, or of the number.
    pub loose: u64,
    /// Of the mailbox, or of the number.
    pub exact: u64,
    /// Email or phone.
    pub kind: Kind,
    /// The place where the user has it.
    pub source: Source,
}

/// A handle of a user.
#[derive(Clone, PartialEq, Eq)]
pub struct Handle {
    /// Without the characters that only part words.
    pub form: String,
    /// Of what it looks like.
    pub skeleton: u64,
}

/// A user, as far as it is compared.
#[derive(Clone, PartialEq, Eq)]
pub struct Profile {
    /// The user's id.
    pub id: LocalityId,
    /// Of the display name; none where there is none.
    pub name: Option<u64>,
    /// Addresses, in their order and each once.
    pub contacts: Vec<Contact>,
    /// Handles.
    pub handles: Vec<Handle>,
}

/// Whether users in this state may be duplicates: they are neither deleted nor part of another.
pub const fn is_present(state: State) -> bool {
    matches!(state, State::Active | State::Disabled)
}

/// Reads users.
#[derive(Clone, Copy, Debug)]
pub struct ProfileReader {
    /// The rules by which texts of attributes are parsed.
    pub rules: Rules,
    /// The seed of all hashes.
    pub seed: u64,
}

impl ProfileReader {
    /// The profile of a user, without the addresses that are held for it.
    pub fn profile(&self, user: &User) -> Profile {
        let own = user.identities.iter().map(|identity| &identity.identifier);
        let own = own.filter_map(|identifier| self.contact(identifier, Source::Identity));
        let texts = user.attributes.values().flat_map(texts);
        let typed = texts.filter_map(|text| self.typed_contact(text)).take(CONTACTS);
        let handles = user.identities.iter().map(|identity| &identity.identifier);
        let handles = handles.filter(|identifier| identifier.kind() == Kind::Handle).take(HANDLES);
        let name = name::name_form(&user.display_name);

        let mut profile = Profile {
            id: user.id,
            name: name.map(|form| self.hash("name", &form)),
            contacts: own.chain(typed).collect(),
            handles: handles.map(|handle| self.handle(handle)).collect(),
        };
        profile.sort();
        profile
    }

    /// The addresses that are held for a user.
    pub fn held(&self, record: &Record, now: Now) -> Vec<Contact> {
        let holds = record.private.holds.iter();
        let holds = holds.filter(|hold| !hold.guard && !now.is_past(hold.until));
        holds.filter_map(|hold| self.held_contact(&hold.key)).collect()
    }

    /// The keys of a user, whose holds are in its profile.
    pub fn keys(&self, profile: &Profile) -> Vec<Key> {
        let contacts = profile.contacts.iter().map(|contact| Key::new(contact.loose, OF_CONTACT));
        let skeletons = profile.handles.iter().map(|handle| Key::new(handle.skeleton, OF_SKELETON));
        let mut keys: Vec<_> = contacts.chain(skeletons).collect();
        for (name, handle) in profile
            .name
            .iter()
            .flat_map(|name| profile.handles.iter().map(move |handle| (name, handle)))
        {
            let [first, last] = name::ends(&handle.form);
            keys.push(Key::new(self.hash("first", first) ^ name, OF_NAME));
            keys.push(Key::new(self.hash("last", last) ^ name, OF_NAME));
        }
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    fn handle(&self, identifier: &Identifier) -> Handle {
        let guard = identifier.guard();
        let skeleton = guard.as_ref().map_or(identifier.canonical(), |guard| guard.skeleton());
        Handle {
            form: name::handle_form(identifier.canonical()),
            skeleton: self.hash("skeleton", skeleton),
        }
    }

    /// A text of an attribute that is an email address, or a phone number in international form.
    fn typed_contact(&self, text: &str) -> Option<Contact> {
        let text = text.trim();
        if text.len() > CONTACT_BYTES {
            return None;
        }
        let raw = match text.starts_with('+') {
            true => RawIdentifier::Phone { number: text, region: "" },
            false if text.contains('@') => RawIdentifier::Email(text),
            false => return None,
        };
        self.contact(&self.rules.parse(raw).ok()?, Source::Attribute)
    }

    fn held_contact(&self, key: &IdentityKey) -> Option<Contact> {
        let (_, kind, value) = key.parts();
        let identifier = Identifier::from_canonical(kind.parse().ok()?, value.to_owned());
        self.contact(&identifier, Source::Hold)
    }

    fn contact(&self, identifier: &Identifier, source: Source) -> Option<Contact> {
        let kind = identifier.kind();
        let canonical = identifier.canonical();
        let [loose, exact] = match kind {
            Kind::Email => {
                let mailbox = email::mailbox(canonical);
                let loose = email::without_dots(&mailbox);
                [self.hash("email", &loose), self.hash("email", &mailbox)]
            }
            Kind::Phone => [self.hash("phone", canonical); 2],
            Kind::Handle | Kind::Social | Kind::Url => return None,
        };
        Some(Contact { loose, exact, kind, source })
    }

    fn hash(&self, of: &str, value: &str) -> u64 {
        let seed = xxh3_64_with_seed(of.as_bytes(), self.seed);
        xxh3_64_with_seed(value.as_bytes(), seed)
    }
}

impl Profile {
    /// Adds the addresses that are held for the user.
    pub fn add_held(&mut self, held: &[Contact]) {
        self.contacts.extend_from_slice(held);
        self.sort();
    }

    /// The addresses that the user has in attributes alone, each once: without dots and tags.
    pub fn in_attributes(&self) -> impl Iterator<Item = u64> {
        let mut loose: Vec<_> = self
            .contacts
            .iter()
            .filter(|contact| contact.source == Source::Attribute)
            .map(|contact| contact.loose)
            .collect();
        loose.dedup();
        loose.into_iter()
    }

    /// Keeps an address that the user has in several places as an identity if it is one.
    fn sort(&mut self) {
        self.contacts.sort_unstable();
        self.contacts.dedup_by_key(|contact| (contact.loose, contact.exact));
    }
}

/// The texts of an attribute's value.
fn texts(value: &Value) -> &[String] {
    match value {
        Value::String(text) => std::slice::from_ref(text),
        Value::List(items) => items,
        Value::Int(_) | Value::Double(_) | Value::Bool(_) | Value::Time(_) => &[],
    }
}
