//! The limit of a page, in items and in bytes.

use prost::Message;

/// The number of items and bytes that still fit a page. The first item always fits, so that each
/// page makes progress.
#[derive(Clone, Copy, Debug)]
pub struct PageLimit {
    items: usize,
    bytes: usize,
    is_empty: bool,
}

impl PageLimit {
    /// A page of at most `items` items whose messages have at most `bytes` bytes.
    pub const fn new(items: usize, bytes: usize) -> Self {
        Self { items, bytes, is_empty: true }
    }

    /// A page of everything.
    pub const fn unlimited() -> Self {
        Self::new(usize::MAX, usize::MAX)
    }

    /// The items that may still be taken, if their bytes fit.
    pub const fn items(&self) -> usize {
        self.items
    }

    /// Takes an item whose message has this many bytes. Returns false if it does not fit.
    #[must_use]
    pub const fn take(&mut self, message_bytes: usize) -> bool {
        let bytes = message_bytes.saturating_add(MAX_FRAME_BYTES);
        let fits = self.items > 0 && (self.is_empty || bytes <= self.bytes);
        if fits {
            self.items -= 1;
            self.bytes = self.bytes.saturating_sub(bytes);
            self.is_empty = false;
        }
        fits
    }

    /// Takes an item that is a message. Returns false if it does not fit.
    #[must_use]
    pub fn take_message(&mut self, message: &impl Message) -> bool {
        self.take(message.encoded_len())
    }
}

/// The maximum bytes of the tag and the length of a message within another one.
pub const MAX_FRAME_BYTES: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_before_an_item_that_does_not_fit() {
        let mut limit = PageLimit::new(10, 100);
        assert!(limit.take(60) && limit.take(28) && !limit.take(1));
        assert_eq!(limit.items(), 8);
    }

    #[test]
    fn the_first_item_always_fits() {
        let mut limit = PageLimit::new(10, 100);
        assert!(limit.take(101) && !limit.take(1));
        assert!(!PageLimit::new(0, 100).take(1));
    }
}
