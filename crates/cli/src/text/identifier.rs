//! Identifiers on the command line and in output.

use crate::output::printable;
use polynym_identifier::{RawIdentifier, TextError};
use polynym_lines::{identifier_message, raw_identifier};
use polynym_presentation::pasted;
use polynym_proto::v1;

/// The variables with the region of the user, the first of which that is set counts.
const LOCALES: [&str; 3] = ["LC_ALL", "LC_TELEPHONE", "LANG"];
const NO_REGION: &str = "a number without a country: write it as +1 415 555 2671, or with its \
    region as phone/US:(415) 555-2671";

/// An identifier on the command line.
#[derive(Clone, Debug)]
pub struct IdentifierArg {
    /// The text form.
    pub text: String,
    /// The message.
    pub message: v1::Identifier,
}

/// Parses the text form. The server validates the value.
pub fn parse(text: &str) -> Result<IdentifierArg, TextError> {
    let message = identifier_message(RawIdentifier::from_text(text)?);
    Ok(IdentifierArg { text: text.to_owned(), message })
}

/// Parses the text form, or what a text looks like, as the console does. Numbers in national form
/// are of the region of the locale.
///
/// # Errors
/// It looks like no identifier, or is a number in national form without a region.
pub fn parse_pasted(text: &str) -> Result<IdentifierArg, String> {
    read_pasted(text, &locale_region())
}

/// The region of the locale, such as `US` of `en_US.UTF-8`; empty if it has none.
pub fn locale_region() -> String {
    region(&|name| std::env::var(name).ok()).unwrap_or_default()
}

fn read_pasted(text: &str, region: &str) -> Result<IdentifierArg, String> {
    let error = match parse(text) {
        Ok(parsed) => return Ok(parsed),
        Err(error) => error,
    };
    let text = text.trim();
    match pasted::identifier(text, region) {
        Some(raw) => Ok(IdentifierArg { text: raw.to_string(), message: identifier_message(raw) }),
        None if region.is_empty() && pasted::is_national_number(text) => Err(NO_REGION.to_owned()),
        None => Err(error.to_string()),
    }
}

fn region(variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let locale = LOCALES.into_iter().find_map(|name| variable(name).filter(|it| !it.is_empty()))?;
    let (_, rest) = locale.split_once('_')?;
    let region: String = rest.chars().take_while(char::is_ascii_alphabetic).collect();
    Some(region).filter(|region| pasted::is_region(region))
}

/// The text form of an identifier from an answer, safe to print.
pub fn text(message: Option<&v1::Identifier>) -> String {
    let text = raw_identifier(message).map(|raw| raw.to_string()).unwrap_or_default();
    printable(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_forms_round_trip() {
        let texts = [
            "email:a@b",
            "handle:joe",
            "phone:+1",
            "phone/US:415",
            "social:x/y/z:w",
            "url:https://a/b:c",
        ];
        for given in texts {
            let parsed = parse(given).unwrap();
            assert_eq!((&*parsed.text, &*text(Some(&parsed.message))), (given, given));
        }
    }

    #[test]
    fn pastes_are_read_as_in_the_console() {
        for (given, expected) in [
            ("(415) 555-2671", "phone/US:(415) 555-2671"),
            (" +1 415 555 2671 ", "phone/US:+1 415 555 2671"),
            ("Joe.Smith@example.com", "email:Joe.Smith@example.com"),
            ("@joe", "handle:@joe"),
            ("https://x.com/joe", "url:https://x.com/joe"),
            ("handle:joe", "handle:joe"),
        ] {
            assert_eq!(read_pasted(given, "US").unwrap().text, expected);
        }
        assert!(read_pasted("(415) 555-2671", "").unwrap_err().contains("phone/US:"));
        assert!(read_pasted("+1 415 555 2671", "").is_ok());
        assert_eq!(read_pasted("joe", "US").unwrap_err(), TextError::NoKind.to_string());
        assert_eq!(read_pasted("mail:joe", "").unwrap_err(), TextError::UnknownKind.to_string());
    }

    #[test]
    fn the_region_is_that_of_the_locale() {
        let of = |given: &[(&str, &str)]| {
            region(&|name| given.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
        };
        assert_eq!(of(&[("LANG", "en_US.UTF-8")]).as_deref(), Some("US"));
        assert_eq!(of(&[("LANG", "en_US"), ("LC_TELEPHONE", "de_AT@euro")]).as_deref(), Some("AT"));
        assert_eq!(of(&[("LC_ALL", ""), ("LANG", "pt_BR")]).as_deref(), Some("BR"));
        for none in [&[("LC_ALL", "C.UTF-8"), ("LANG", "en_US")][..], &[("LANG", "eo")], &[]] {
            assert_eq!(of(none), None);
        }
    }

    #[test]
    fn a_text_without_a_kind_is_refused() {
        assert_eq!(parse("joe@example.com").unwrap_err(), TextError::NoKind);
        assert_eq!(parse("mail:joe@example.com").unwrap_err(), TextError::UnknownKind);
        assert_eq!(parse("social:github").unwrap_err(), TextError::NoSubject);
    }
}
