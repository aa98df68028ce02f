//! The states of users and of bulk changes.

use polynym_proto::v1::{BulkChangeState, State};

/// The states of users.
const STATES: [State; 4] = [State::Active, State::Disabled, State::Deleted, State::Merged];

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

/// The state with this word, in any case.
pub fn parse(text: &str) -> Option<State> {
    STATES.into_iter().find(|state| word(*state).eq_ignore_ascii_case(text))
}

/// The state of a bulk change in one word.
pub const fn bulk_word(state: BulkChangeState) -> &'static str {
    match state {
        BulkChangeState::Unspecified => "unknown",
        BulkChangeState::Running => "running",
        BulkChangeState::Stopped => "stopped",
        BulkChangeState::Completed => "completed",
        BulkChangeState::Failed => "failed",
    }
}

/// Why the server stopped a bulk change, by the reason of its end; empty if a caller stopped it.
pub fn stop_cause(end_reason: &str) -> &'static str {
    match end_reason {
        "ROLE_DENIED" => "The caller may no longer change users.",
        "RESTORED" => "It was running when the backup was made.",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_states_are_parsed() {
        for state in STATES {
            assert_eq!(parse(&word(state).to_uppercase()), Some(state));
        }
        assert_eq!([parse(""), parse("gone")], [None; 2]);
    }
}
