//! The mailbox of an email address, as far as it can be known from the address.

use std::borrow::Cow;

/// The domains whose provider ignores dots in the local part. Both are names of one domain. See
/// <https://support.google.com/mail/answer/7436150>.
const WITHOUT_DOTS: [&str; 2] = ["gmail.com", "googlemail.com"];
/// The character that starts a tag (RFC 5233, section 4).
const TAG: char = '+';

/// The address without its tag. At Gmail also without dots, and under one name of the domain.
/// `canonical` is an address in canonical form.
pub fn mailbox(canonical: &str) -> Cow<'_, str> {
    let Some((local, domain)) = canonical.rsplit_once('@') else { return canonical.into() };
    let untagged = without_tag(local);
    if WITHOUT_DOTS.contains(&domain) {
        return format!("{}@{}", untagged.replace('.', ""), WITHOUT_DOTS[0]).into();
    }
    match untagged.len() == local.len() {
        true => canonical.into(),
        false => format!("{untagged}@{domain}").into(),
    }
}

/// The mailbox without the dots of its local part, at every domain. Most providers keep apart
/// addresses that differ in dots alone, so that equal forms are weak evidence.
pub fn without_dots(mailbox: &str) -> Cow<'_, str> {
    match mailbox.rsplit_once('@') {
        Some((local, domain)) if local.contains('.') => {
            format!("{}@{domain}", local.replace('.', "")).into()
        }
        _ => mailbox.into(),
    }
}

/// The local part up to its tag; all of it where nothing else is left.
fn without_tag(local: &str) -> &str {
    match local.split_once(TAG) {
        Some((name, _)) if !name.is_empty() => name,
        _ => local,
    }
}
