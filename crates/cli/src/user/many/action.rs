//! The words of changes of many users, and the states in which they apply.

use polynym_proto::v1::State;
pub use polynym_proto::v1::bulk_action::Action;

/// The verb and the participle.
pub const fn words(action: &Action) -> (&'static str, &'static str) {
    match action {
        Action::Disable(_) => ("disable", "disabled"),
        Action::Enable(_) => ("enable", "enabled"),
        Action::Delete(_) => ("delete", "deleted"),
        Action::Attributes(_) => ("update", "updated"),
    }
}

/// Whether the action can change a user in this state.
pub const fn changes(action: &Action, state: State) -> bool {
    match action {
        Action::Disable(_) => matches!(state, State::Active),
        Action::Enable(_) => matches!(state, State::Disabled),
        Action::Delete(_) | Action::Attributes(_) => {
            matches!(state, State::Active | State::Disabled)
        }
    }
}
