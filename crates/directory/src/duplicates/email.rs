//! The mailbox of an email address, as far as the address reveals it.

use std::borrow::Cow;

/// The two names of the domain whose provider ignores dots in the local part. See
/// <https://support.google.com/mail/answer/7436150>.
const WITHOUT_DOTS: [&str; 2] = ["gmail.com", "googlemail.com"];
/// The character that starts a tag (RFC 5233, section 4).
const TAG: char = '+';

/// The mailbox of a canonical address: without its tag; at Gmail also without dots, and at one
/// domain.
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

/// The mailbox without the dots of its local part, at every domain. Most providers distinguish
/// addresses by dots, so equal forms are weak evidence.
pub fn without_dots(mailbox: &str) -> Cow<'_, str> {
    match mailbox.rsplit_once('@') {
        Some((local, domain)) if local.contains('.') => {
            format!("{}@{domain}", local.replace('.', "")).into()
        }
        _ => mailbox.into(),
    }
}

/// The local part without its tag, unless nothing else is left.
fn without_tag(local: &str) -> &str {
    match local.split_once(TAG) {
        Some((name, _)) if !name.is_empty() => name,
        _ => local,
    }
}
