//! Makes a user of the parts that formats have.

use polynym_identifier::{Identifier, RawIdentifier};
use polynym_lines::{identifier_message, raw_identifier};
use polynym_proto::v1::attribute_value::Kind as ValueKind;
use polynym_proto::v1::identifier::Kind;
use polynym_proto::v1::{AttributeValue, Identity, Phone, Social, State, StringList, User};
use prost_types::Timestamp;

use crate::notes::{Notes, is_secret};

/// The providers that formats name differently: the name here, and theirs.
const PROVIDERS: [(&str, &[&str]); 9] = [
    ("apple", &["apple.com"]),
    ("facebook", &["facebook.com"]),
    ("github", &["github.com"]),
    ("google", &["google.com", "google-oauth2", "googleplus"]),
    ("linkedin", &["linkedin.com", "linkedin-openid-connect"]),
    ("microsoft", &["microsoft.com", "hotmail.com", "windowslive"]),
    ("paypal", &["paypal.com"]),
    ("twitter", &["twitter.com"]),
    ("yahoo", &["yahoo.com"]),
];

/// A user that is put together.
pub struct Person<'n> {
    /// The user so far.
    pub user: User,
    /// What is left out.
    pub notes: &'n mut Notes,
    /// The name of the format, by which identities are verified.
    source: &'static str,
    /// The region of telephone numbers in national form; may be empty.
    pub region: String,
    /// The identifier of each identity, if it is valid.
    identifiers: Vec<Option<Identifier>>,
}

impl<'n> Person<'n> {
    /// Nobody yet.
    pub fn new(source: &'static str, region: &str, notes: &'n mut Notes) -> Self {
        let (user, identifiers) = (User::default(), Vec::new());
        Self { user, notes, source, region: region.to_owned(), identifiers }
    }

    /// Sets the display name, unless there is one or the text is blank.
    pub fn display_name(&mut self, text: &str) {
        if self.user.display_name.is_empty() {
            text.trim().clone_into(&mut self.user.display_name);
        }
    }

    /// Sets whether the user is disabled.
    pub fn set_disabled(&mut self, is_disabled: bool) {
        if is_disabled {
            self.user.set_state(State::Disabled);
        }
    }

    /// Adds an email address.
    pub fn email(&mut self, text: &str) -> usize {
        self.identity(Kind::Email(text.trim().to_owned()))
    }

    /// Adds a telephone number.
    pub fn phone(&mut self, text: &str) -> usize {
        let number = text.trim().to_owned();
        let region = match polynym_identifier::is_international(&number) {
            true => String::new(),
            false => self.region.clone(),
        };
        self.identity(Kind::Phone(Phone { number, region }))
    }

    /// Adds the address of a profile.
    pub fn url(&mut self, text: &str) {
        self.identity(Kind::Url(text.trim().to_owned()));
    }

    /// Adds an account at a provider, with its name there, which may be empty.
    pub fn social(&mut self, provider: &str, subject: &str, name: &str) {
        let lower = provider.to_lowercase();
        let known = PROVIDERS.iter().find(|(_, others)| others.contains(&&*lower));
        let provider = known.map_or(provider, |(name, _)| name).to_owned();
        let subject = subject.to_owned();
        let n = self.identity(Kind::Social(Social { provider, subject }));
        if let Some(identity) = self.user.identities.get_mut(n).filter(|_| !name.trim().is_empty())
        {
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
                self.text(name, text);
            }
        }
    }

    /// Says that an identity was verified, at this time or else at the earliest that is possible:
    /// when the account was created.
    pub fn verify(&mut self, identity: usize, time: Option<Timestamp>) {
        let time = time.or(self.user.create_time);
        let (Some(identity), source) = (self.user.identities.get_mut(identity), self.source) else {
            return;
        };
        match time {
            Some(_) => {
                identity.verify_time = time;
                source.clone_into(&mut identity.verified_by);
            }
            None => self.notes.left_out.add("verifications without a time"),
        }
    }

    /// Makes an identity the primary one of its kind, if none is yet.
    pub fn make_primary(&mut self, identity: usize) {
        let kind = |identity: &Identity| {
            let kind = identity.identifier.as_ref().and_then(|own| own.kind.as_ref());
            kind.map(std::mem::discriminant)
        };
        let wanted = self.user.identities.get(identity).and_then(kind);
        if self.user.identities.iter().all(|other| !other.primary || kind(other) != wanted)
            && let Some(identity) = self.user.identities.get_mut(identity)
        {
            identity.primary = true;
        }
    }

    /// Adds a text as an attribute, unless it is blank or a secret.
    pub fn text(&mut self, name: &str, text: &str) {
        if !text.trim().is_empty() {
            self.attribute(name, ValueKind::StringValue(text.to_owned()));
        }
    }

    /// Adds texts as an attribute: as a text if there is one, as a list if there are several.
    pub fn texts(&mut self, name: &str, texts: Vec<String>) {
        match &*texts {
            [] => {}
            [only] => self.text(name, only),
            _ => self.attribute(name, ValueKind::ListValue(StringList { values: texts })),
        }
    }

    /// Adds an attribute, unless it is a secret.
    pub fn attribute(&mut self, name: &str, kind: ValueKind) {
        match name {
            "" => self.notes.left_out.add("attributes without a name"),
            name if is_secret(name) => self.notes.secrets.add(name),
            name => {
                let value = AttributeValue { kind: Some(kind) };
                self.user.attributes.insert(name.to_owned(), value);
            }
        }
    }

    /// Adds an identity, unless there is an equal one. Returns its position.
    fn identity(&mut self, kind: Kind) -> usize {
        let identifier = Some(polynym_proto::v1::Identifier { kind: Some(kind) });
        let raw = raw_identifier(identifier.as_ref());
        let parsed = raw.and_then(|raw| Identifier::parse(raw).ok());
        let is_equal = |own: &Option<Identifier>| own.is_some() && *own == parsed;
        if let Some(n) = self.identifiers.iter().position(is_equal) {
            return n;
        }
        let identifier = raw.map(identifier_message);
        self.user.identities.push(Identity { identifier, ..Identity::default() });
        self.identifiers.push(parsed);
        self.identifiers.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_occur_once() {
        let mut notes = Notes::default();
        let mut person = Person::new("test", "DE", &mut notes);
        assert_eq!(person.email("Ann@example.com"), 0);
        assert_eq!(person.email("ann@EXAMPLE.com"), 0);
        assert_eq!((person.phone("030 1234567"), person.phone("+49 30 1234567")), (1, 1));
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
        assert_eq!(person.user.identities[n].verify_time, None);
        person.user.create_time = Some(Timestamp { seconds: 1, nanos: 0 });
        person.verify(n, None);
        person.make_primary(n);
        let identity = person.user.identities[n].clone();
        assert_eq!(
            (identity.verify_time, &*identity.verified_by),
            (person.user.create_time, "test")
        );
        assert!(identity.primary);
        assert_eq!(notes.left_out.get("verifications without a time"), 1);
    }
}
