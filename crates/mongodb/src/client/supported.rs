//! The versions that a program supports.

use polynym_identifier::RULES_VERSION;

/// The current version of the schema.
pub const VERSION: i64 = 14;
/// The version in which attributes are stored by tokens. Older users have them in their wire form
/// until an upgrade has rewritten all users.
pub const TOKENS: i64 = 4;
/// The version in which all users have their attributes by tokens, so that searches find them.
pub const SEARCHABLE: i64 = 5;
/// The version in which mutations write the journal. Tenants may not record yet when their history
/// begins.
pub const JOURNALED: i64 = 6;
/// The version in which all tenants record when their history begins.
pub const BEGUN: i64 = 7;
/// The version in which users have inboxes, which are buckets.
pub const BUCKETED: i64 = 8;
/// The version in which events have tokens instead of the names of attributes, and users record how
/// many events their last write has added. Claims confirm the epoch, and the events of a tenant are
/// in several ranges. Users are stored with derived elements: the words of their display names and
/// the domains of their addresses.
pub const COMPACT: i64 = 9;
/// The version in which all users have derived elements, so that searches find them by these.
pub const DERIVED: i64 = 10;
/// The version in which notices are rows, while an upgrade moves those in buckets.
pub const ROWED: i64 = 11;
/// The version in which all notices are rows.
pub const INBOXED: i64 = 12;
/// The version in which users are stored with the forms of their display names, while an upgrade
/// adds them to all.
pub const FORMED: i64 = 13;
/// The version in which all users have the forms of their display names, so that searches find them
/// by these.
pub const FORMS: i64 = 14;
/// The oldest version of the schema that this program supports.
pub const OLDEST: i64 = 2;

/// The latest versions that a program supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supported {
    /// Of the schema.
    pub schema: i64,
    /// Of the rules of normalisation.
    pub rules: u32,
}

impl Supported {
    /// The versions that this program supports.
    pub const PRESENT: Self = Self { schema: VERSION, rules: RULES_VERSION };
}
