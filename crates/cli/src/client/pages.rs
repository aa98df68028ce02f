//! Page-by-page reading of lists.

/// The items of one request.
const PAGE_SIZE: i32 = 200;

/// The pages of a list, up to a number of items.
pub struct Pages {
    left: u32,
    /// The token of the next page.
    pub token: String,
}

impl Pages {
    /// All pages, or those with the first `limit` items.
    pub fn new(limit: Option<u32>) -> Self {
        Self { left: limit.unwrap_or(u32::MAX), token: String::new() }
    }

    /// The size of the next page.
    pub fn size(&self) -> i32 {
        PAGE_SIZE.min(self.left.try_into().unwrap_or(PAGE_SIZE))
    }

    /// Counts a page of `items`. Returns whether another one follows.
    pub fn advance(&mut self, items: usize, next_page_token: String) -> bool {
        self.left -= items.try_into().unwrap_or(self.left).min(self.left);
        self.token = next_page_token;
        self.left > 0 && !self.token.is_empty()
    }
}
