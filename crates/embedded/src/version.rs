//! The schema versions that this program supports.

use polynym_directory::search::Derived;

/// The present version, which `tables` describes.
pub const VERSION: u64 = 10;
/// The first version whose index has the forms of display names.
pub const FORMS: u64 = 10;
/// The first version in which the notices of several users share their content.
pub const SHARING: u64 = 9;
/// The first version whose index has the words of display names and the domains of addresses.
pub const DERIVED: u64 = 9;
/// The first version with inboxes.
pub const INBOXED: u64 = 8;
/// The first version with a journal.
pub const JOURNALED: u64 = 7;
/// The first version with `ATTRIBUTES`: earlier ones store a user's attributes in the user.
pub const INDEXED: u64 = 6;
/// The first version with `TENANT_USERS`.
pub const LISTED: u64 = 5;
/// The oldest version that this program supports. It has no rules version, and its claims have no
/// additional fields.
pub const OLDEST: u64 = 4;

/// The derived elements of the index in a schema version.
pub const fn derived_in(schema: u64) -> Derived {
    match schema {
        FORMS.. => Derived::Forms,
        DERIVED.. => Derived::Words,
        _ => Derived::None,
    }
}
