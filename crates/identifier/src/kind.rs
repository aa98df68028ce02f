//! The kinds of identifiers.

use std::fmt;

/// The kind of an identifier. Kinds order like their words, and so like keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// An email address.
    Email,
    /// A name chosen by the user, unique within the tenant.
    Handle,
    /// A telephone number.
    Phone,
    /// An account at another provider.
    Social,
    /// The address of a profile page.
    Url,
}

impl Kind {
    /// All kinds, in order.
    pub const ALL: [Kind; 5] = [Kind::Email, Kind::Handle, Kind::Phone, Kind::Social, Kind::Url];

    /// The word for the kind in keys and in the text form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Email => "email",
            Kind::Handle => "handle",
            Kind::Phone => "phone",
            Kind::Social => "social",
            Kind::Url => "url",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
