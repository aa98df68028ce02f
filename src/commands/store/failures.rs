//! The failures of the commands on stores.

use polynym_cli::Failure;

/// The failure of a command on a temporary store.
pub fn no_temporary() -> Failure {
    other("a temporary store cannot be used here: name one with --store")
}

/// The failure with this message.
pub fn other(error: impl ToString) -> Failure {
    Failure::Other(error.to_string())
}
