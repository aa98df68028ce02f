//! The start of an address, folded like the canonical form.

use super::address::normalize_escapes;
use super::{scheme, subpage};

/// The start of the canonical forms of the addresses that start with typed text. That of a profile
/// depends on its host and path.
pub fn folded(typed: &str) -> String {
    let whole = scheme::added(typed);
    let typed = whole.as_deref().unwrap_or(typed);
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
    subpage::start(&host, &path).unwrap_or_else(|| format!("{scheme}://{host}{path}"))
}
