//! The request to find users by a text.

use crate::error::{Error, Invalid};
use crate::model::policies::Policies;
use crate::service::search::page_size_within;
use crate::stores::View;
use polynym_identifier::is_region;

/// The maximum size of a text.
const MAX_TEXT_BYTES: usize = 4_096;
/// The default size of a page.
const DEFAULT_PAGE: usize = 10;
/// The maximum size of a page.
const MAX_PAGE: usize = 50;

/// A text to find users by.
#[derive(Clone, Copy, Debug)]
pub struct FindRequest<'r> {
    /// The text, as typed or pasted.
    pub text: &'r str,
    /// The region that is tried first for phone numbers in national form, before those of the
    /// tenant; empty for none.
    pub region: &'r str,
    /// Users in the page; 0 for the default.
    pub page_size: i32,
    /// The token of the page; empty for the first.
    pub page_token: &'r str,
    /// The part of users that the caller needs. The answer may contain more.
    pub view: View,
    /// Whether the caller may only look up identifiers.
    pub identifiers_only: bool,
}

impl<'r> FindRequest<'r> {
    /// Checks the fields. Returns the size of the page.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn check(&self) -> Result<usize, Error> {
        let invalid = |field: &str, rule: &str| Err(Error::invalid(Invalid::Field, field, rule));
        if self.text.trim().is_empty() {
            return invalid("text", "is empty: give a name, an identifier or a part of one");
        }
        if self.text.len() > MAX_TEXT_BYTES {
            return invalid("text", "has more than 4,096 bytes");
        }
        if !self.region.is_empty() && !is_region(self.region) {
            return invalid(
                "region",
                "must be the code of a country by ISO 3166 in capitals, as US",
            );
        }
        page_size_within(self.page_size, DEFAULT_PAGE, MAX_PAGE)
    }

    /// The regions of numbers in national form, the likeliest first.
    pub fn regions(&self, policies: &'r Policies) -> Vec<&'r str> {
        let first = Some(self.region).filter(|region| !region.is_empty());
        let others = policies.phone_regions.iter().map(String::as_str);
        first.into_iter().chain(others.filter(|region| Some(*region) != first)).collect()
    }
}
