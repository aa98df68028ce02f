//! The profile of a user: hashes of its names and addresses, to compare it with users that share a
//! key.

use locality_uuid::LocalityId;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::evidence::Reason;
use super::{email, name};
use crate::clock::Now;
use crate::model::attribute::Value;
use crate::model::record::{Hold, Record};
use crate::model::user::{State, User};
use crate::search::folding;
use crate::timestamp::time_text;
use polynym_identifier::{Identifier, IdentityKey, Kind, RawIdentifier, Rules, is_international};

/// The maximum number of addresses from attributes. Few users have more.
const MAX_TYPED_CONTACTS: usize = 32;
/// The maximum number of handles.
const MAX_HANDLES: usize = 8;
/// The maximum size of an attribute's text that may be an address.
const MAX_CONTACT_BYTES: usize = 254;

/// A key: users that share one are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(u64);

/// The bits of a key's class.
const CLASS: u64 = 0b111;
const OF_CONTACT: u64 = 0;
const OF_SKELETON: u64 = 1;
const OF_NAME: u64 = 2;
const OF_MARK: u64 = 3;
const OF_FULL_NAME: u64 = 4;

/// Distinguishes counts of mailboxes of identities from those of addresses in attributes.
const MAILBOX: u64 = 0x6d61_696c_626f_7800;
/// The maximum number of values of attributes that are evidence.
const MAX_MARKS: usize = 8;

impl Key {
    /// The bounds of all keys.
    pub const MIN: Self = Self(0);
    /// See [`Key::MIN`].
    pub const MAX: Self = Self(u64::MAX);

    const fn new(hash: u64, class: u64) -> Self {
        Self(hash & !CLASS | class)
    }

    /// The key halfway between two keys; `None` if they are equal.
    pub fn halfway(self, last: Self) -> Option<Self> {
        (self < last).then(|| Self(self.0 + (last.0 - self.0) / 2))
    }

    /// The key after this one.
    pub fn following(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }

    /// The only reason for users who share this key, if there is one: the others have keys of their
    /// own.
    pub const fn reason(self) -> Option<Reason> {
        match self.0 & CLASS {
            OF_NAME => Some(Reason::NearHandle),
            OF_MARK => Some(Reason::SameNameAndAttribute),
            OF_FULL_NAME => Some(Reason::SameName),
            _ => None,
        }
    }
}

/// The source of a user's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// An identity.
    Identity,
    /// An attribute.
    Attribute,
    /// A hold: the user is the former owner.
    Hold,
}

/// An email address or phone number of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Contact {
    /// The hash of the mailbox without dots, or of the number.
    pub loose: u64,
    /// The hash of the mailbox, or of the number.
    pub exact: u64,
    /// Email or phone.
    pub kind: Kind,
    /// Its source.
    pub source: Source,
}

impl Contact {
    /// The hash by which the users are counted who have an address of this mailbox as an identity.
    pub const fn mailbox(&self) -> u64 {
        self.loose ^ MAILBOX
    }
}

/// A handle of a user.
#[derive(Clone, PartialEq, Eq)]
pub struct Handle {
    /// The handle without the separators of its words.
    pub form: String,
    /// The hash of its skeleton, which lookalikes share.
    pub skeleton: u64,
}

/// The part of a user that is compared.
#[derive(Clone, PartialEq, Eq)]
pub struct Profile {
    /// The user's id.
    pub id: LocalityId,
    /// The hash of the display name, if any.
    pub name: Option<u64>,
    /// Whether it is a full name, which counts alone.
    pub is_full_name: bool,
    /// Addresses, sorted and each once.
    pub contacts: Vec<Contact>,
    /// Handles.
    pub handles: Vec<Handle>,
    /// The hashes of the display name with each value of an attribute that is evidence, sorted and
    /// each once.
    pub marks: Vec<u64>,
}

/// Whether users in this state may be duplicates: neither deleted nor merged.
pub const fn is_present(state: State) -> bool {
    matches!(state, State::Active | State::Disabled)
}

/// Computes the profiles of users.
#[derive(Clone, Debug)]
pub struct ProfileReader {
    /// The rules by which texts of attributes are parsed.
    pub rules: Rules,
    /// The seed of all hashes.
    pub seed: u64,
    /// The names of the attributes that are evidence.
    pub evidence: Vec<String>,
}

impl ProfileReader {
    /// The profile of a user, without the addresses that are held for it.
    pub fn profile(&self, user: &User) -> Profile {
        let identifiers = || user.identities.iter().map(|identity| &identity.identifier);
        let owned =
            identifiers().filter_map(|identifier| self.contact(identifier, Source::Identity));
        let texts = user.attributes.values().flat_map(texts);
        let typed = texts.filter_map(|text| self.typed_contact(text)).take(MAX_TYPED_CONTACTS);
        let handles =
            identifiers().filter(|identifier| identifier.kind() == Kind::Handle).take(MAX_HANDLES);

        let form = name::name_form(&user.display_name);
        let name = form.as_deref().map(|form| self.hash("name", form));
        let marks = name.map(|name| self.marks(user).map(move |(mark, _)| mark ^ name));
        let mut profile = Profile {
            id: user.id,
            name,
            is_full_name: form.as_deref().is_some_and(name::is_full),
            marks: marks.into_iter().flatten().take(MAX_MARKS).collect(),
            contacts: owned.chain(typed).collect(),
            handles: handles.map(|handle| self.handle(handle)).collect(),
        };
        profile.sort();
        profile
    }

    /// The addresses that are held for a user.
    pub fn held(&self, record: &Record, now: Now) -> Vec<Contact> {
        let is_valid = |hold: &&Hold| !hold.guard && !now.is_past(hold.until);
        let valid = record.internals.holds.iter().filter(is_valid);
        valid.filter_map(|hold| self.held_contact(&hold.key)).collect()
    }

    /// The keys of a user, including those of holds in its profile.
    pub fn keys(&self, profile: &Profile) -> Vec<Key> {
        let contacts = profile.contacts.iter().map(|contact| Key::new(contact.loose, OF_CONTACT));
        let skeletons = profile.handles.iter().map(|handle| Key::new(handle.skeleton, OF_SKELETON));
        let marks = profile.marks.iter().map(|mark| Key::new(*mark, OF_MARK));
        let mut keys: Vec<_> = contacts.chain(skeletons).chain(marks).collect();
        if let Some(name) = profile.name {
            for handle in &profile.handles {
                let [first, last] = name::ends(&handle.form);
                keys.push(Key::new(self.hash("first", first) ^ name, OF_NAME));
                keys.push(Key::new(self.hash("last", last) ^ name, OF_NAME));
            }
            keys.extend(profile.is_full_name.then(|| Key::new(name, OF_FULL_NAME)));
        }
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// The hashes of values of attributes that are evidence, with their texts.
    pub(super) fn marks<'u>(&'u self, user: &'u User) -> impl Iterator<Item = (u64, String)> + 'u {
        let present = self.evidence.iter().filter_map(|name| user.attributes.get_key_value(name));
        present.flat_map(move |(name, value)| {
            let seed = self.hash("attribute", name);
            value_texts(value).into_iter().filter_map(move |text| {
                let form = folding::words(&text).join(" ");
                (!form.is_empty()).then(|| (xxh3_64_with_seed(form.as_bytes(), seed), text))
            })
        })
    }

    fn handle(&self, identifier: &Identifier) -> Handle {
        let guard = identifier.guard();
        let skeleton = guard.as_ref().map_or(identifier.canonical(), |guard| guard.skeleton());
        Handle {
            form: name::handle_form(identifier.canonical()),
            skeleton: self.hash("skeleton", skeleton),
        }
    }

    /// The address in an attribute's text: an email, or a phone number in international form.
    pub(super) fn typed_contact(&self, text: &str) -> Option<Contact> {
        let raw = match text.trim() {
            long if long.len() > MAX_CONTACT_BYTES => return None,
            number if is_international(number) => RawIdentifier::Phone { number, region: "" },
            email if email.contains('@') => RawIdentifier::Email(email),
            _ => return None,
        };
        self.contact(&self.rules.parse(raw).ok()?, Source::Attribute)
    }

    fn held_contact(&self, key: &IdentityKey) -> Option<Contact> {
        let (_, kind, value) = key.parts();
        let identifier = Identifier::from_canonical(kind.parse().ok()?, value.to_owned());
        self.contact(&identifier, Source::Hold)
    }

    pub(super) fn contact(&self, identifier: &Identifier, source: Source) -> Option<Contact> {
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

    /// The hashes of addresses in attributes alone, without dots and tags, each once.
    fn in_attributes(&self) -> impl Iterator<Item = u64> {
        let mut loose: Vec<_> = self
            .contacts
            .iter()
            .filter(|contact| contact.source == Source::Attribute)
            .map(|contact| contact.loose)
            .collect();
        loose.dedup();
        loose.into_iter()
    }

    /// The hashes by which users are counted who share a value: a name, an address in an attribute,
    /// a mailbox, or a name with an attribute.
    pub fn counted(&self) -> impl Iterator<Item = u64> {
        let owned = self.contacts.iter().filter(|contact| contact.source == Source::Identity);
        let emails = owned.filter(|contact| contact.kind == Kind::Email);
        let mut mailboxes: Vec<_> = emails.map(Contact::mailbox).collect();
        mailboxes.dedup();
        let marks = self.marks.iter().copied();
        self.name.into_iter().chain(self.in_attributes()).chain(mailboxes).chain(marks)
    }

    /// Sorts the addresses. Of several sources of one address, an identity comes first and stays.
    fn sort(&mut self) {
        self.contacts.sort_unstable();
        self.contacts.dedup_by_key(|contact| (contact.loose, contact.exact));
        self.marks.sort_unstable();
        self.marks.dedup();
    }
}

/// The values of an attribute as texts.
fn value_texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::List(items) => items.clone(),
        Value::Int(number) => vec![number.to_string()],
        Value::Double(number) => vec![number.to_string()],
        Value::Bool(yes) => vec![yes.to_string()],
        Value::Time(time) => vec![time_text(*time)],
    }
}

/// The texts of an attribute's value.
pub(super) fn texts(value: &Value) -> &[String] {
    match value {
        Value::String(text) => std::slice::from_ref(text),
        Value::List(items) => items,
        Value::Int(_) | Value::Double(_) | Value::Bool(_) | Value::Time(_) => &[],
    }
}
