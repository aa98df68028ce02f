//! The values that two users share: what a person compares before a merge.

use super::evidence::{Evidence, Reason};
use super::name;
use super::profile::{Contact, ProfileReader, Source, texts};
use crate::model::user::User;
use polynym_identifier::{Identifier, Kind};

impl ProfileReader {
    /// The matching value of each of two users for a reason. Both are empty if they no longer
    /// match; a held address is that of the other user.
    pub fn shared(&self, [a, b]: [&User; 2], evidence: &Evidence) -> [String; 2] {
        let pair = match evidence.reason {
            Reason::SameName => Some([a.display_name.clone(), b.display_name.clone()]),
            Reason::SameNameAndAttribute => self.shared_attribute(a, b),
            Reason::NearHandle => handles(a, b, |a, b| {
                let [a, b] = [a, b].map(|handle| name::handle_form(handle.canonical()));
                name::is_near(&a, &b)
            }),
            Reason::LookalikeHandle => handles(a, b, |a, b| {
                let skeleton = |handle: &Identifier| {
                    let guard = handle.guard();
                    guard.map_or(handle.canonical().to_owned(), |guard| guard.skeleton().to_owned())
                };
                skeleton(a) == skeleton(b)
            }),
            Reason::HeldIdentity => None,
            Reason::SameMailbox
            | Reason::SimilarEmail
            | Reason::IdentityInAttribute
            | Reason::SameAttribute => self.shared_contact(a, b, evidence),
        };
        pair.unwrap_or_default()
    }

    fn shared_attribute(&self, a: &User, b: &User) -> Option<[String; 2]> {
        let others: Vec<_> = self.marks(b).collect();
        self.marks(a).find_map(|(mark, text)| {
            let (_, other) = others.iter().find(|(other, _)| *other == mark)?;
            Some([text, other.clone()])
        })
    }

    fn shared_contact(&self, a: &User, b: &User, evidence: &Evidence) -> Option<[String; 2]> {
        let has_sources = |a: Source, b: Source| match evidence.reason {
            Reason::SameAttribute => (a, b) == (Source::Attribute, Source::Attribute),
            Reason::IdentityInAttribute => a != b,
            _ => (a, b) == (Source::Identity, Source::Identity),
        };
        let matches = |a: &Contact, b: &Contact| {
            Some(a.kind) == evidence.kind && a.loose == b.loose && has_sources(a.source, b.source)
        };
        let others = self.contacts(b);
        let mut pairs = self.contacts(a).into_iter().flat_map(|(own, text)| {
            let equal = others.iter().filter(move |(other, _)| matches(&own, other));
            equal.map(move |(_, other)| [text.clone(), other.clone()])
        });
        pairs.next()
    }

    /// The addresses of a user, as its identities and attributes have them.
    fn contacts(&self, user: &User) -> Vec<(Contact, String)> {
        let owned = user.identities.iter().filter_map(|identity| {
            let contact = self.contact(&identity.identifier, Source::Identity)?;
            Some((contact, identity.identifier.canonical().to_owned()))
        });
        let typed = user.attributes.values().flat_map(texts);
        let typed = typed.filter_map(|text| Some((self.typed_contact(text)?, text.clone())));
        owned.chain(typed).collect()
    }
}

/// Two handles that match.
fn handles(
    a: &User,
    b: &User,
    matches: impl Fn(&Identifier, &Identifier) -> bool,
) -> Option<[String; 2]> {
    let of = |user: &User| -> Vec<Identifier> {
        let identifiers = user.identities.iter().map(|identity| identity.identifier.clone());
        identifiers.filter(|identifier| identifier.kind() == Kind::Handle).collect()
    };
    let others = of(b);
    of(a).iter().find_map(|own| {
        let other = others.iter().find(|other| matches(own, other))?;
        Some([own, other].map(|handle| handle.canonical().to_owned()))
    })
}
