//! The ways in which a text is read, and the searches that follow from them.

use std::fmt;

use crate::search::Filter;

/// A way in which a text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As an identifier that the user owns.
    Identifier,
    /// As an identifier that is held for the user, who gave it up.
    Held,
    /// As the id of the user.
    UserId,
    /// As the value of an attribute by which the tenant finds users.
    Attribute,
    /// As the start of a text of such an attribute.
    AttributeStart,
    /// As words of the name, the last of which may go on.
    Name,
    /// As the end of a phone number.
    PhoneEnd,
    /// As the start of an email address.
    EmailStart,
    /// As the domain of an email address.
    EmailDomain,
    /// As words of the name, one letter of which may be wrong in each.
    SimilarName,
}

/// A text, read in one way.
#[derive(Clone, PartialEq, Eq)]
pub struct Reading {
    /// The way.
    pub way: Way,
    /// The canonical identifier in text form, the id, the value or the words.
    pub value: String,
    /// The region of a phone number in national form; else empty.
    pub region: String,
    /// The name of the attribute, if it is the value of one; else empty.
    pub attribute: String,
}

impl Reading {
    pub(super) fn new(way: Way, value: impl Into<String>) -> Self {
        let (region, attribute) = (String::new(), String::new());
        Self { way, value: value.into(), region, attribute }
    }

    /// Whether it finds one user, by an identifier or the id.
    pub const fn is_exact(&self) -> bool {
        matches!(self.way, Way::Identifier | Way::Held | Way::UserId)
    }
}

/// Shows only the way: values are personal data.
impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reading({:?}, …)", self.way)
    }
}

/// A reading that finds users by an index, and never needs a scan.
pub struct Search {
    /// The reading.
    pub reading: Reading,
    /// The users whom it finds.
    pub filter: Filter,
    /// Whether another search of the same reading finds these users, too: they only come first.
    pub only_orders: bool,
}

impl Search {
    pub(super) const fn new(reading: Reading, filter: Filter) -> Self {
        Self { reading, filter, only_orders: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_hides_values() {
        let reading = Reading::new(Way::Name, "canary");
        assert_eq!(format!("{reading:?}"), "Reading(Name, …)");
    }
}
