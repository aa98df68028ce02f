//! Identifiers of people: email addresses, handles, phone numbers, social accounts and profile
//! URLs, parsed into canonical forms, so that two spellings of one identifier are equal.
//!
//! | kind | typed | canonical | by |
//! |---|---|---|---|
//! | email | `Joe.Smith@Exämple.COM` | `joe.smith@xn--exmple-cua.com` | RFC 5321, RFC 6531, UTS 46 |
//! | handle | `@Robot-7` | `robot-7` | PRECIS (RFC 8265), UTS 39 |
//! | phone | `(415) 555-2300` in `US` | `+14155552300` | E.164, libphonenumber |
//! | social | `GitHub`, `583231` | `github/583231` | OpenID Connect |
//! | url | `http://twitter.com/Joe/` | `https://x.com/joe` | WHATWG, RFC 3986 |
//!
//! ```
//! use polynym_identifier::{Identifier, RawIdentifier};
//!
//! let typed = Identifier::parse(RawIdentifier::Phone { number: "(415) 555-2300", region: "US" })?;
//! let stored = Identifier::parse(RawIdentifier::from_text("phone:+1 415 555 2300")?)?;
//! assert_eq!(typed, stored);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A value that breaks a rule is rejected with the rule, its position and advice, never the value:
//!
//! ```
//! use polynym_identifier::{Identifier, RawIdentifier};
//!
//! let rejection = Identifier::parse(RawIdentifier::Email("joe smith@example.com")).unwrap_err();
//! assert_eq!(rejection.rule().as_str(), "email-character");
//! assert_eq!(rejection.position(), Some(3));
//! ```
//!
//! [`Identifier::normalize`] shows the effect of each rule. [`Guard`] protects handles against
//! look-alikes. [`IdentityKey`] combines a tenant and an identifier in a key for stores. [`Rules`]
//! selects a version of the rules, for stores written by an older one.
//!
//! Canonical forms never change within a version. Parsing takes at most half a millisecond for any
//! input. Debug output of all types hides values, which are personal data.

mod canonical;
mod domain;
mod email;
mod handle;
mod key;
mod kind;
mod lookalike;
mod phone;
mod phone_metadata;
mod phone_parse;
mod prefix;
mod raw;
mod rejection;
mod rules;
mod social;
mod text;
mod trace;
mod unicode;
mod url;

#[cfg(test)]
mod tests;

/// Tests the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use canonical::{Identifier, Normalization};
pub use email::email_within;
pub use key::IdentityKey;
pub use kind::Kind;
pub use lookalike::Guard;
pub use phone::{dialling, is_international, is_region};
pub use phone_parse::{Dialling, warm_up};
pub use raw::{MAX_INPUT_BYTES, RawIdentifier};
pub use rejection::{Rejection, Rule};
pub use rules::{PHONE_METADATA, Parse, RULES_VERSION, Rules};
pub use text::{TextError, pasted};
pub use trace::Change;
pub use unicode::{CharacterIssue, character_issue, is_mark};
