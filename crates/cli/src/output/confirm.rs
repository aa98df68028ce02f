//! Confirmation at a terminal, before a step that cannot be undone.

use std::io::{self, IsTerminal};

use crate::failure::Failure;

/// Fails with `refusal`, as wrong usage, if standard input is not a terminal.
pub fn require_terminal(refusal: &str) -> Result<(), Failure> {
    if io::stdin().is_terminal() { Ok(()) } else { Err(Failure::Usage(refusal.to_owned())) }
}

/// Asks `question`. Fails with `refusal` unless the answer is `expected`.
pub fn require_answer(question: &str, expected: &str, refusal: &str) -> Result<(), Failure> {
    eprint!("{question}");
    let mut typed = String::new();
    io::stdin().read_line(&mut typed)?;
    if typed.trim() == expected { Ok(()) } else { Err(Failure::Other(refusal.to_owned())) }
}
