//! Page tokens: the last item of the page before. An empty token is that of the first page.

use locality_uuid::LocalityId;

use crate::error::{Error, Invalid};
use crate::model::tenant::Tenant;

/// Returns the tenant that a token names.
///
/// # Errors
/// [`Error::Invalid`].
pub fn tenant(token: &str) -> Result<Option<Tenant>, Error> {
    read(token, |token| Tenant::parse(token).ok())
}

/// Returns the user that a token names.
///
/// # Errors
/// [`Error::Invalid`].
pub fn user(token: &str) -> Result<Option<LocalityId>, Error> {
    read(token, |token| token.parse().ok())
}

fn read<T>(token: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, Error> {
    let fault = "is none that an answer of this method gave";
    let fault = || Error::invalid(Invalid::PageToken, "page_token", fault);
    match token {
        "" => Ok(None),
        token => parse(token).map(Some).ok_or_else(fault),
    }
}

/// Fuzz targets. `cargo test` runs each for a short while with random bytes; under `cargo bolero
/// test` they run guided by coverage for as long as wanted.
#[cfg(test)]
mod tests {
    use std::fmt::Display;
    use std::time::Duration;

    use super::*;

    const TIME: Duration = Duration::from_millis(500);
    /// Characters of tokens, and some beside them.
    const ALPHABET: &[u8; 32] = b"0123456789abcdef-ghz-ABF{}./\0 *\n";
    const USER: &str = "20be0ffc-314a-bd53-7a50-013a65ca76d2";

    /// A token that is taken names one item, whose own token names the same one. An error repeats
    /// nothing of a token.
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
            let place = bytes.first().map_or(0, |byte| usize::from(*byte) % USER.len());
            let changed = format!("{}{letters}{}", &USER[..place], &USER[place..]);
            let replaced: String = USER.chars().take(place).chain(letters.chars()).collect();
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
