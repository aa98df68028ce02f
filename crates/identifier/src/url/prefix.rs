//! The start of an address, folded like the canonical form.

use super::address::normalize_escapes;
use super::{profile, site};

/// The start of the canonical forms of the addresses that start with typed text.
pub fn folded(typed: &str) -> String {
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
    match profile::service(&host).and_then(|service| name(service, &path)) {
        Some((service, name)) => format!("https://{}{}{name}", service.host, service.prefix),
        None => format!("{scheme}://{host}{path}"),
    }
}

/// The service and the start of a name there.
fn name<'s>(service: &'s profile::Service, path: &str) -> Option<(&'s profile::Service, String)> {
    let (prefix, name) = path.split_at_checked(service.prefix.len())?;
    let is_name = prefix.eq_ignore_ascii_case(service.prefix) && !name.contains('/');
    is_name.then(|| (service, service.canonical_name(site::without_at(service, name))))
}
