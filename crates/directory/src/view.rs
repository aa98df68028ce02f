//! The parts of a user that a read may return.

/// The part of users that a read returns (AIP-157).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum View {
    /// All fields.
    #[default]
    Full,
    /// All fields except attributes.
    Basic,
}
