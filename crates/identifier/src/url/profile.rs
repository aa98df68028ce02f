//! Profile pages of well-known services by version 2 of the rules. The several addresses of a
//! profile are one identity.

use url::Url;

use super::site::early;

/// Facebook's page of a profile without a name.
pub const NUMBERED_PROFILE: &str = "/profile.php";

/// The canonical address of the profile at a URL; none if it is no profile of a known service.
/// `host` and `path` are those of `url`, in canonical form.
pub fn address(url: &Url, host: &str, path: &str) -> Option<String> {
    let site = early(host)?;
    let (prefix, typed_name) = path.split_at_checked(site.prefix.len())?;
    let is_name = !typed_name.is_empty() && !typed_name.contains('/');
    if !prefix.eq_ignore_ascii_case(site.prefix) || !is_name {
        return None;
    }

    let name = match path.eq_ignore_ascii_case(NUMBERED_PROFILE) {
        true if !site.has_significant_dots => profile_number(url)?,
        _ => site.canonical_name(typed_name),
    };
    Some(site.address(&name))
}

/// The start of the canonical addresses of the profiles whose addresses start so, by version 2.
pub fn start(host: &str, path: &str) -> Option<String> {
    let site = early(host)?;
    let (prefix, name) = path.split_at_checked(site.prefix.len())?;
    let is_start = prefix.eq_ignore_ascii_case(site.prefix) && !name.contains('/');
    is_start.then(|| site.address(&site.canonical_name(name)))
}

/// The number of a profile without a name, which Facebook accepts in place of a name.
pub fn profile_number(url: &Url) -> Option<String> {
    let (_, id) = url.query_pairs().find(|(key, _)| key == "id")?;
    (!id.is_empty() && id.bytes().all(|b| b.is_ascii_digit())).then(|| id.into_owned())
}
