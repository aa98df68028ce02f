//! The states of users.

use polynym_proto::v1::State;

/// A state in one word; empty if it is not given.
pub const fn word(state: State) -> &'static str {
    match state {
        State::Unspecified => "",
        State::Active => "active",
        State::Disabled => "disabled",
        State::Deleted => "deleted",
        State::Merged => "merged",
    }
}
