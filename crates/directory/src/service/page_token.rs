//! Page tokens that name the last item of the previous page. The token of the first page is empty.

use locality_uuid::LocalityId;

use crate::error::{Error, Invalid};
use crate::model::tenant::Tenant;

/// The tenant in a token.
///
/// # Errors
/// [`Error::Invalid`].
pub fn tenant(token: &str) -> Result<Option<Tenant>, Error> {
    read(token, |token| Tenant::parse(token).ok())
}

/// The user in a token.
///
/// # Errors
/// [`Error::Invalid`].
pub fn user(token: &str) -> Result<Option<LocalityId>, Error> {
    read(token, |token| token.parse().ok())
}

fn read<T>(token: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, Error> {
    if token.is_empty() {
        return Ok(None);
    }
    let error =
        || Error::invalid(Invalid::PageToken, "page_token", "is not a token of this method");
    parse(token).map(Some).ok_or_else(error)
}

/// Fuzz targets. `cargo test` runs each briefly with random bytes; `cargo bolero test` runs them
/// guided by coverage.
#[cfg(test)]
mod tests {
    use std::fmt::Display;
    use std::time::Duration;

    use super::*;

    const TIME: Duration = Duration::from_millis(500);
    /// Characters of tokens, and some others.
    const ALPHABET: &[u8; 32] = b"0123456789abcdef-ghz-ABF{}./\0 *\n";
    const USER: &str = "20be0ffc-314a-bd53-7a50-013a65ca76d2";

    /// The item of an accepted token has the same token. An error repeats nothing of a token.
    fn check<T: Display + PartialEq>(token: &str, read: impl Fn(&str) -> Result<Option<T>, Error>) {
        match read(token) {
            Ok(Some(item)) => {
                let own = item.to_string();
                assert!(own.eq_ignore_ascii_case(token), "{token:?} names {own:?}");
                assert!(read(&own).unwrap() == Some(item));
            }
            Ok(None) => assert_eq!(token, ""),
            Err(error) => {
                let text = error.to_string();
                assert!(token.len() < 8 || !text.contains(token), "{text}");
            }
        }
    }

    #[test]
    fn fuzz_page_token() {
        bolero::check!().with_test_time(TIME).for_each(|bytes: &[u8]| {
            let letter = |byte: &u8| char::from(ALPHABET[usize::from(byte % 32)]);
            let letters: String = bytes.iter().map(letter).collect();
            let at = bytes.first().map_or(0, |byte| usize::from(*byte) % USER.len());
            let changed = format!("{}{letters}{}", &USER[..at], &USER[at..]);
            let replaced: String = USER.chars().take(at).chain(letters.chars()).collect();
            for token in [&letters, &changed, &replaced, &*String::from_utf8_lossy(bytes)] {
                check(token, tenant);
                check(token, user);
            }
        });
    }

    #[test]
    fn tokens_name_the_last_item() {
        assert_eq!(tenant("eu-1").unwrap().unwrap().as_str(), "eu-1");
        assert_eq!(user(USER).unwrap().unwrap().to_string(), USER);
        assert!(tenant("").unwrap().is_none() && user("").unwrap().is_none());
        for wrong in ["EU", "eu/1", "*", "eu\0"] {
            assert!(tenant(wrong).is_err() && user(wrong).is_err(), "{wrong:?}");
        }
    }
}
