//! Reserved handles. The defaults could impersonate the tenant's staff or machines.

use std::collections::BTreeSet;

use super::new_user;
use super::new_user::{NewIdentity, NewUser};
use super::policies::Policies;
use crate::error::{Error, Invalid};
use polynym_identifier::{Identifier, Kind, RawIdentifier};

/// The maximum number of handles that a tenant reserves.
const MAX_RESERVED_HANDLES: usize = 1_000;

/// The default reserved handles, sorted: names of roles in RFC 2142, and names that sites commonly
/// reserve.
pub const DEFAULT: [&str; 30] = [
    "abuse",
    "admin",
    "administrator",
    "anonymous",
    "api",
    "billing",
    "contact",
    "ftp",
    "guest",
    "help",
    "hostmaster",
    "info",
    "localhost",
    "mail",
    "me",
    "moderator",
    "no-reply",
    "noc",
    "noreply",
    "null",
    "official",
    "postmaster",
    "root",
    "sales",
    "security",
    "staff",
    "support",
    "system",
    "webmaster",
    "www",
];

/// The canonical forms of handles to reserve.
///
/// # Errors
/// [`Error::Invalid`] if one is not a handle, or there are too many.
pub fn parse(handles: &[String]) -> Result<BTreeSet<String>, Error> {
    let invalid = |rule: String| Error::invalid(Invalid::Policy, "policies.reserved_handles", rule);
    if handles.len() > MAX_RESERVED_HANDLES {
        return Err(invalid(format!("at most {MAX_RESERVED_HANDLES} handles")));
    }
    let canonical = |handle: &String| match Identifier::parse(RawIdentifier::Handle(handle)) {
        Ok(identifier) => Ok(identifier.canonical().to_owned()),
        Err(rejection) => Err(invalid(rejection.to_string())),
    };
    handles.iter().map(canonical).collect()
}

impl Policies {
    /// Whether an identifier is a reserved handle, or looks like one.
    pub(crate) fn reserves(&self, identifier: &Identifier) -> bool {
        let is_reserved = |handle: &str| match &self.reserved_handles {
            Some(handles) => handles.contains(handle),
            None => DEFAULT.binary_search(&handle).is_ok(),
        };
        identifier.kind() == Kind::Handle
            && (is_reserved(identifier.canonical())
                || identifier.guard().is_some_and(|guard| is_reserved(guard.skeleton())))
    }

    /// Rejects a new user with a reserved handle.
    pub(crate) fn check_reserved(&self, new: &NewUser) -> Result<(), Error> {
        let is_reserved = |identity: &NewIdentity| self.reserves(&identity.identifier);
        match new.identities.iter().position(is_reserved) {
            Some(n) => Err(Error::IdentityReserved { field: new_user::field(n) }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_list_is_sorted_and_has_valid_handles() {
        assert!(DEFAULT.is_sorted());
        let all: Vec<_> = DEFAULT.iter().map(ToString::to_string).collect();
        assert_eq!(parse(&all).unwrap().len(), DEFAULT.len());
    }

    #[test]
    fn lookalikes_of_reserved_handles_are_reserved() {
        let handle = |text: &str| Identifier::parse(RawIdentifier::Handle(text)).unwrap();
        let policies = Policies::default();
        assert!(
            policies.reserves(&handle("@Admin")) && !policies.reserves(&handle("administrators"))
        );
        // Cyrillic.
        let cyrillic = Policies {
            reserved_handles: Some(parse(&["scope".to_owned()]).unwrap()),
            ..Policies::default()
        };
        assert!(cyrillic.reserves(&handle("ѕсоре")) && !cyrillic.reserves(&handle("admin")));
        let mail = Identifier::parse(RawIdentifier::Email("admin@example.com")).unwrap();
        assert!(!policies.reserves(&mail));
    }
}
