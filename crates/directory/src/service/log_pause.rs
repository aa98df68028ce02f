//! Pauses between lines of the log: what cannot be read once cannot be read every time.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A pause between two lines of the log.
pub struct LogPause {
    pause: Duration,
    last: Mutex<Option<Instant>>,
}

impl LogPause {
    /// No pause so far; each of them has this length.
    pub const fn new(pause: Duration) -> Self {
        Self { pause, last: Mutex::new(None) }
    }

    /// Whether the pause is over. Then another one begins.
    pub fn is_over(&self) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = last.is_none_or(|last| last.elapsed() >= self.pause);
        if is_over {
            *last = Some(Instant::now());
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_begins_a_pause() {
        let pause = LogPause::new(Duration::from_secs(3_600));
        assert_eq!([(); 3].map(|()| pause.is_over()), [true, false, false]);
        let none = LogPause::new(Duration::ZERO);
        assert_eq!([(); 3].map(|()| none.is_over()), [true; 3]);
    }
}
