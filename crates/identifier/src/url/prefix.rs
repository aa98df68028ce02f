//! The starts of addresses, folded like the canonical form.

use super::address::normalize_escapes;
use super::{scheme, subpage};

/// The starts of the canonical forms of the addresses that start with typed text. That of a profile
/// depends on its host and path.
pub fn folded(typed: &str) -> Vec<String> {
    let whole = scheme::added(typed);
    let typed = whole.as_deref().unwrap_or(typed);
    let Some((scheme, rest)) = typed.split_once("://") else {
        return vec![typed.to_ascii_lowercase()];
    };
    let scheme = match scheme.to_ascii_lowercase() {
        plain if plain == "http" => "https".to_owned(),
        scheme => scheme,
    };
    let Some((host, path)) = rest.split_once('/') else {
        return vec![format!("{scheme}://{}", rest.to_ascii_lowercase())];
    };
    let host = host.to_ascii_lowercase();
    let path = format!("/{}", normalize_escapes(path).unwrap_or_else(|| path.to_owned()));
    subpage::starts(&host, &path).unwrap_or_else(|| vec![format!("{scheme}://{host}{path}")])
}
