//! Makes a user of the parts that formats have.

use std::collections::BTreeMap;
use std::mem::{Discriminant, discriminant};

use polynym_identifier::{Identifier, RawIdentifier};
use polynym_lines::{identifier_message, raw_identifier};
use polynym_proto::v1::attribute_value::Kind as ValueKind;
use polynym_proto::v1::identifier::Kind;
use polynym_proto::v1::{AttributeValue, Identity, Phone, Social, State, StringList, User};
use prost_types::Timestamp;

use crate::notes::{Notes, is_secret};
use crate::providers;

/// The limits of a user, as servers have them by default.
const MAX_IDENTITIES: usize = 100;
const MAX_ATTRIBUTES: usize = 200;
/// The limits of an attribute.
pub const MAX_NAME_BYTES: usize = 256;
const MAX_TEXT_BYTES: usize = 4_096;
const MAX_LIST_ITEMS: usize = 100;
/// The names in the count of attributes that cannot have their own name.
const TWICE: &str = "attributes that occur twice";
const RESERVED: &str = "attributes with the name of an id";
/// Telephone numbers that are not valid.
const OTHER_PHONE: &str = "other_phone";
/// The attributes that only formats set: users are found again by them, so no attribute of a file
/// may pass for one.
const OWN_NAMES: [&str; 25] = [
    "auth0_user_id",
    "auth0_username",
    "entra_object_id",
    "entra_user_principal_name",
    "firebase_uid",
    "keycloak_id",
    "keycloak_username",
    "kratos_external_id",
    "kratos_id",
    "kratos_identifier",
    "kratos_organization_id",
    "kratos_schema_id",
    "kratos_username",
    "ldap_account_name",
    "ldap_dn",
    "ldap_entry_uuid",
    "ldap_ipa_unique_id",
    "ldap_ns_unique_id",
    "ldap_object_guid",
    "ldap_uid",
    "ldap_user_principal_name",
    "okta_id",
    "okta_login",
    "okta_status",
    "vcard_uid",
];

/// A user that is put together.
pub struct Person<'n> {
    /// The user so far.
    pub user: User,
    /// The data that are left out.
    pub notes: &'n mut Notes,
    /// Whether the file says which state the user has.
    pub has_state: bool,
    /// The kinds of providers by the names that somebody chose, as far as the file says them.
    pub kinds: Option<&'n BTreeMap<String, String>>,
    /// The name of the format, by which identities are verified.
    source: &'static str,
    /// The region of telephone numbers in national form; may be empty.
    pub region: String,
    /// The positions of identities whose identifiers are valid.
    positions: BTreeMap<Identifier, usize>,
    /// The kinds that have a primary identity.
    primaries: Vec<Discriminant<Kind>>,
    /// Why there is no user.
    fault: Option<String>,
}

impl<'n> Person<'n> {
    /// Nobody yet.
    pub fn new(source: &'static str, region: &str, notes: &'n mut Notes) -> Self {
        Self {
            user: User::default(),
            notes,
            has_state: false,
            kinds: None,
            source,
            region: region.to_owned(),
            positions: BTreeMap::new(),
            primaries: Vec::new(),
            fault: None,
        }
    }

    /// The user.
    ///
    /// # Errors
    /// There is none: in words.
    pub fn finish(self) -> Result<User, String> {
        self.fault.map_or(Ok(self.user), Err)
    }

    /// Says why there is no user. The first reason counts.
    pub fn fail(&mut self, fault: impl Into<String>) {
        self.fault.get_or_insert_with(|| fault.into());
    }

    /// Whether there is no user.
    pub const fn has_failed(&self) -> bool {
        self.fault.is_some()
    }

    /// Sets the display name, unless there is one or the text is blank.
    pub fn display_name(&mut self, text: &str) {
        if self.user.display_name.is_empty() {
            text.trim().clone_into(&mut self.user.display_name);
        }
    }

    /// Counts a name that is not the display name, since there was one.
    pub fn display_name_differs(&mut self, part: &str, text: &str) {
        if !text.trim().is_empty() && text.trim() != self.user.display_name {
            self.notes.left_out.add(part);
        }
    }

    /// Sets whether the user is disabled.
    pub fn set_disabled(&mut self, is_disabled: bool) {
        self.has_state = true;
        if is_disabled {
            self.user.set_state(State::Disabled);
        }
    }

    /// Says that a field has a state that is not known: nobody is active by mistake.
    pub fn unknown_state(&mut self, field: &str) {
        let field: String = field.chars().take(80).collect();
        self.fail(format!("{field} does not say whether the user is disabled: correct its value"));
    }

    /// Adds an email address.
    pub fn email(&mut self, text: &str) -> Option<usize> {
        let text = Some(text.trim()).filter(|text| !text.is_empty())?;
        self.identity(Kind::Email(text.to_owned()))
    }

    /// Adds a telephone number. One that is not valid is kept as an attribute.
    pub fn phone(&mut self, text: &str) -> Option<usize> {
        let number = Some(text.trim()).filter(|text| !text.is_empty())?;
        let region = match polynym_identifier::is_international(number) {
            true => String::new(),
            false => self.region.clone(),
        };
        if Identifier::parse(RawIdentifier::Phone { number, region: &region }).is_err() {
            self.notes.kept.add(OTHER_PHONE);
            self.append(OTHER_PHONE, number);
            return None;
        }
        self.identity(Kind::Phone(Phone { number: number.to_owned(), region }))
    }

    /// Adds the address of a profile.
    pub fn url(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.identity(Kind::Url(text.trim().to_owned()));
        }
    }

    /// Adds an account at a provider that the file names by its kind, with its name there, which
    /// may be empty.
    pub fn social(&mut self, provider: &str, subject: &str, name: &str) {
        self.account(providers::public(provider), subject, name);
    }

    /// Adds an account at a connection of this protocol, whose name somebody chose.
    pub fn connection(&mut self, (protocol, alias): (&str, &str), subject: &str, name: &str) {
        self.account(&providers::connection(protocol, alias), subject, name);
    }

    fn account(&mut self, provider: &str, subject: &str, name: &str) {
        if provider.trim().is_empty() || subject.trim().is_empty() {
            return self.notes.left_out.add("accounts at providers without an id");
        }
        let (provider, subject) = (provider.to_owned(), subject.to_owned());
        let n = self.identity(Kind::Social(Social { provider, subject }));
        let identity = n.and_then(|n| self.user.identities.get_mut(n));
        if let Some(identity) = identity.filter(|_| !name.trim().is_empty()) {
            name.trim().clone_into(&mut identity.display);
        }
    }

    /// Adds the name by which somebody signs in: an email address or a handle, or an attribute if
    /// it is neither.
    pub fn login(&mut self, name: &str, text: &str) {
        let text = text.trim();
        let is_email = Identifier::parse(RawIdentifier::Email(text)).is_ok();
        let is_handle = || Identifier::parse(RawIdentifier::Handle(text)).is_ok();
        match text {
            "" => {}
            _ if is_email => {
                self.email(text);
            }
            _ if is_handle() => {
                self.identity(Kind::Handle(text.to_owned()));
            }
            _ => {
                self.notes.kept.add(name);
                self.append(name, text);
            }
        }
    }

    /// Says that an identity was verified, at this time or else at the earliest that is possible:
    /// when the account was created.
    pub fn verify(&mut self, identity: Option<usize>, time: Option<Timestamp>) {
        let time = time.or(self.user.create_time);
        let identity = identity.and_then(|n| self.user.identities.get_mut(n));
        let (Some(identity), source) = (identity, self.source) else { return };
        match time {
            Some(_) => {
                identity.verify_time = time;
                source.clone_into(&mut identity.verified_by);
            }
            None => self.notes.left_out.add("verifications without a time"),
        }
    }

    /// Makes an identity the primary one of its kind, if none is yet.
    pub fn make_primary(&mut self, identity: Option<usize>) {
        let identity = identity.and_then(|n| self.user.identities.get_mut(n));
        let Some(identity) = identity else { return };
        let own = identity.identifier.as_ref().and_then(|own| own.kind.as_ref());
        let Some(kind) = own.map(discriminant) else { return };
        if !self.primaries.contains(&kind) {
            self.primaries.push(kind);
            identity.primary = true;
        }
    }

    /// Adds a text as an attribute, unless it is blank or a secret.
    pub fn text(&mut self, name: &str, text: &str) {
        if !text.trim().is_empty() {
            self.attribute(name, ValueKind::StringValue(text.to_owned()));
        }
    }

    /// Adds the texts that are not blank as an attribute: as a text if there is one, as a list if
    /// there are several.
    pub fn texts(&mut self, name: &str, mut texts: Vec<String>) {
        texts.retain(|text| !text.trim().is_empty());
        match &*texts {
            [] => {}
            [only] => self.text(name, only),
            _ => self.attribute(name, ValueKind::ListValue(StringList { values: texts })),
        }
    }

    /// Adds an attribute of the file, unless it is a secret or would pass for one of ours.
    pub fn attribute(&mut self, name: &str, kind: ValueKind) {
        if OWN_NAMES.contains(&name) {
            let is_there = self.user.attributes.contains_key(name);
            return self.notes.left_out.add(if is_there { TWICE } else { RESERVED });
        }
        self.insert(name, kind);
    }

    /// Adds an attribute of ours, unless the text is blank.
    pub fn own(&mut self, name: &'static str, text: &str) {
        if !text.trim().is_empty() {
            self.insert(name, ValueKind::StringValue(text.to_owned()));
        }
    }

    /// Adds a text to an attribute of ours, which becomes a list if it has one.
    fn append(&mut self, name: &str, text: &str) {
        let kind = match self.user.attributes.remove(name).and_then(|value| value.kind) {
            Some(ValueKind::StringValue(first)) if first != text => {
                ValueKind::ListValue(StringList { values: vec![first, text.to_owned()] })
            }
            Some(ValueKind::ListValue(mut list)) if list.values.len() < MAX_LIST_ITEMS => {
                list.values.push(text.to_owned());
                ValueKind::ListValue(list)
            }
            Some(full @ ValueKind::ListValue(_)) => {
                self.notes.left_out.add(name);
                full
            }
            _ => ValueKind::StringValue(text.to_owned()),
        };
        self.insert(name, kind);
    }

    /// Adds an attribute, unless there is one, or the server refuses it.
    fn insert(&mut self, name: &str, kind: ValueKind) {
        let fits = match &kind {
            ValueKind::StringValue(text) => text.len() <= MAX_TEXT_BYTES,
            ValueKind::ListValue(list) => {
                list.values.len() <= MAX_LIST_ITEMS
                    && list.values.iter().all(|text| text.len() <= MAX_TEXT_BYTES)
            }
            _ => true,
        };
        match name {
            "" => self.notes.left_out.add("attributes without a name"),
            name if is_secret(name) => self.notes.secrets.add(name),
            name if name.len() > MAX_NAME_BYTES => self.notes.left_out.add(name),
            name if !fits => self.notes.left_out.add(&format!("{name} (too long)")),
            name if self.user.attributes.contains_key(name) => self.notes.left_out.add(TWICE),
            _ if self.user.attributes.len() >= MAX_ATTRIBUTES => self.fail(format!(
                "the user has more than {MAX_ATTRIBUTES} attributes: remove some at the source"
            )),
            name => {
                let value = AttributeValue { kind: Some(kind) };
                self.user.attributes.insert(name.to_owned(), value);
            }
        }
    }

    /// Adds an identity, unless there is an equal one. Returns its position; none without a user.
    fn identity(&mut self, kind: Kind) -> Option<usize> {
        if self.has_failed() {
            return None;
        }
        let identifier = Some(polynym_proto::v1::Identifier { kind: Some(kind) });
        let raw = raw_identifier(identifier.as_ref());
        let parsed = raw.and_then(|raw| Identifier::parse(raw).ok());
        if let Some(n) = parsed.as_ref().and_then(|own| self.positions.get(own)) {
            return Some(*n);
        }
        let identifier = raw.map(identifier_message);
        let n = self.user.identities.len();
        if n >= MAX_IDENTITIES {
            let fault = format!("the user has more than {MAX_IDENTITIES} identities");
            self.fail(format!("{fault}: remove some at the source"));
            return None;
        }
        self.user.identities.push(Identity { identifier, ..Identity::default() });
        self.positions.extend(parsed.map(|own| (own, n)));
        Some(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_occur_once() {
        let mut notes = Notes::default();
        let mut person = Person::new("test", "DE", &mut notes);
        assert_eq!(person.email("Ann@example.com"), Some(0));
        assert_eq!(person.email("ann@EXAMPLE.com"), Some(0));
        assert_eq!(person.phone("030 1234567"), Some(1));
        assert_eq!(person.phone("+49 30 1234567"), Some(1));
        person.login("login", "ann@example.com");
        person.login("login", "ann");
        person.login("login", "4711");
        person.social("google-oauth2", "1", "Ann");
        person.social("google.com", "1", "");
        assert_eq!(person.user.identities.len(), 4);
        assert!(person.user.attributes.contains_key("login"));
        person.text("passwordHash", "abc");
        assert_eq!((notes.kept.get("login"), notes.secrets.get("passwordHash")), (1, 1));
    }

    #[test]
    fn a_verification_has_a_time() {
        let mut notes = Notes::default();
        let mut person = Person::new("test", "", &mut notes);
        let n = person.email("ann@example.com");
        person.verify(n, None);
        assert_eq!(person.user.identities[0].verify_time, None);
        person.user.create_time = Some(Timestamp { seconds: 1, nanos: 0 });
        person.verify(n, None);
        person.make_primary(n);
        let identity = person.user.identities[0].clone();
        assert_eq!(
            (identity.verify_time, &*identity.verified_by),
            (person.user.create_time, "test")
        );
        assert!(identity.primary);
        assert_eq!(notes.left_out.get("verifications without a time"), 1);
    }
}
