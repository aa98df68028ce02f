//! The states in which changes of many users apply.

use polynym_proto::v1::State;
pub use polynym_proto::v1::bulk_action::Action;

/// Whether the action can change a user in this state.
pub const fn changes(action: &Action, state: State) -> bool {
    match action {
        Action::Disable(_) => matches!(state, State::Active),
        Action::Enable(_) => matches!(state, State::Disabled),
        Action::Undelete(_) => matches!(state, State::Deleted),
        Action::Delete(_) | Action::Attributes(_) => {
            matches!(state, State::Active | State::Disabled)
        }
        // Its users are those of an operation.
        Action::Undo(_) => false,
    }
}
