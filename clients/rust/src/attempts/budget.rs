//! The retries that a client may make: few while most calls fail, so that retries do not add to the
//! load of a server that is down.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::Error;

/// Tokens, in tenths.
const FULL: u32 = 100;
const FAILURE: u32 = 10;
const SUCCESS: u32 = 1;
/// No retry is made with so many tokens or fewer.
const TOO_FEW: u32 = 50;

/// The tokens of a client. A failed attempt takes one, and an answer gives a tenth.
pub struct Budget(AtomicU32);

impl Default for Budget {
    fn default() -> Self {
        Self(AtomicU32::new(FULL))
    }
}

impl Budget {
    /// Notes the outcome of an attempt. A refusal with a delay counts for nothing, nor does what
    /// the server did not see.
    pub fn note(&self, error: Option<&Error>) {
        match error {
            None => self.give(),
            Some(error) if error.is_never_sent() => {}
            Some(error) if error.is_retryable() && error.retry_after().is_some() => {}
            Some(error) if error.is_retryable() => self.take(),
            Some(error) if !error.reason().is_empty() => self.give(),
            Some(_) => {}
        }
    }

    fn take(&self) {
        self.update(|tokens| tokens.saturating_sub(FAILURE));
    }

    fn give(&self) {
        if self.0.load(Ordering::Relaxed) < FULL {
            self.update(|tokens| (tokens + SUCCESS).min(FULL));
        }
    }

    /// Whether a retry may be made.
    pub fn allows(&self) -> bool {
        self.0.load(Ordering::Relaxed) > TOO_FEW
    }

    fn update(&self, change: impl Fn(u32) -> u32) {
        let change = |tokens| Some(change(tokens));
        // The change is never refused.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_failures_end_retries_and_answers_allow_them_again() {
        let budget = Budget::default();
        let retries = (0..100).filter(|_| {
            budget.take();
            budget.allows()
        });
        assert_eq!(retries.count(), 4);
        (0..50).for_each(|_| budget.give());
        assert!(!budget.allows());
        budget.give();
        assert!(budget.allows());
    }
}
