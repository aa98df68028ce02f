//! Accounts at other providers: the provider's name and the subject that it gave the account.

use super::rejection::{Fault, Rule};
use super::trace::Trace;

const MAX_PROVIDER: usize = 64;
const MAX_SUBJECT: usize = 255;

pub(super) fn canonical(provider: &str, subject: &str, trace: &mut impl Trace) -> Result<String, Fault> {
    check_provider(provider)?;
    check_subject(subject)?;
    let lower = provider.to_ascii_lowercase();
    trace.step("lower-case", provider, &lower);
    Ok(format!("{lower}/{subject}"))
}

fn check_provider(provider: &str) -> Result<(), Fault> {
    let bad =
        |(position, c): (usize, char)| !(c.is_ascii_alphanumeric() || (position > 0 && matches!(c, '.' | '_' | '-')));
    if let Some(position) = provider.chars().enumerate().position(bad) {
        return Err(Rule::SocialProvider.at(position));
    }
    if provider.is_empty() || provider.len() > MAX_PROVIDER {
        return Err(Rule::SocialProvider.into());
    }
    Ok(())
}

fn check_subject(subject: &str) -> Result<(), Fault> {
    if subject.is_empty() || subject.len() > MAX_SUBJECT {
        return Err(Rule::SocialSubjectLength.into());
    }
    match subject.chars().position(char::is_control) {
        Some(position) => Err(Rule::SocialSubjectControl.at(position)),
        None => Ok(()),
    }
}
