//! The start of an address, folded like the canonical form.

use super::address::normalize_escapes;
use super::{page_kind, profile, scheme, subpage};

/// The start of the canonical forms of the addresses that start with typed text.
pub fn folded(typed: &str) -> String {
    let whole = scheme::added(typed);
    folded_by(subpage::start, whole.as_deref().unwrap_or(typed))
}

/// The same by the third version of the rules, without domains that moved.
pub fn third(typed: &str) -> String {
    folded_by(page_kind::third_start, typed)
}

/// The same by the second version of the rules.
pub fn second(typed: &str) -> String {
    folded_by(profile::start, typed)
}

/// The same by the first version of the rules, without known profiles.
pub fn first(typed: &str) -> String {
    folded_by(|_, _| None, typed)
}

/// The start with the start of a profile's address, which depends on its host and path.
fn folded_by(profile_start: impl Fn(&str, &str) -> Option<String>, typed: &str) -> String {
    let Some((scheme, rest)) = typed.split_once("://") else { return typed.to_ascii_lowercase() };
    let scheme = match scheme.to_ascii_lowercase() {
        plain if plain == "http" => "https".to_owned(),
        scheme => scheme,
    };
    let Some((host, path)) = rest.split_once('/') else {
        return format!("{scheme}://{}", rest.to_ascii_lowercase());
    };
    let host = host.to_ascii_lowercase();
    let path = format!("/{}", normalize_escapes(path).unwrap_or_else(|| path.to_owned()));
    profile_start(&host, &path).unwrap_or_else(|| format!("{scheme}://{host}{path}"))
}
