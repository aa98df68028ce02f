//! Page-by-page reading of lists.

use crate::failure::Failure;

/// The items of one request.
const PAGE_SIZE: i32 = 200;

/// Shows the pages of a list, up to a number of items. `show` takes the size and the token of a
/// page, and returns its number of items and the token of the next page.
pub async fn each(
    limit: Option<u32>,
    mut show: impl AsyncFnMut(i32, String) -> Result<(usize, String), Failure>,
) -> Result<(), Failure> {
    let (mut left, mut token) = (limit.unwrap_or(u32::MAX), String::new());
    loop {
        let size = PAGE_SIZE.min(left.try_into().unwrap_or(PAGE_SIZE));
        let (items, next) = show(size, token).await?;
        left -= items.try_into().unwrap_or(left).min(left);
        token = next;
        if left == 0 || token.is_empty() {
            return Ok(());
        }
    }
}
