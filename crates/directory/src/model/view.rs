//! The parts of a user that a read may return.

/// The part of users that a look-up returns (AIP-157).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum View {
    /// All of them.
    #[default]
    Full,
    /// All but their attributes.
    Basic,
}
