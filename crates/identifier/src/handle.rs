//! Handles: RFC 8265's UsernameCaseMapped, and rules that keep handles distinct from email
//! addresses, phone numbers and names in other scripts.

use precis_profiles::UsernameCaseMapped;
use precis_profiles::precis_core::Error;
use precis_profiles::precis_core::profile::{Profile, Rules, stabilize};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::lookalike;
use super::rejection::{BrokenRule, Rule};
use super::trace::Trace;

const MAX_CODE_POINTS: usize = 64;

/// An `@`, and 64 characters that each decompose to at most four. Longer input cannot shrink to a
/// valid handle.
const MAX_TYPED_CODE_POINTS: usize = 1 + 4 * MAX_CODE_POINTS;

/// The fast path of [`canonical`] for ordinary ASCII handles; `None` for all other input, valid or
/// not.
pub(super) fn quick(typed: &str) -> Option<String> {
    let name = typed.strip_prefix('@').unwrap_or(typed);
    let bytes = name.as_bytes();
    let ordinary = |&b: &u8| b.is_ascii_graphic() && b != b'@';
    ((1..=MAX_CODE_POINTS).contains(&bytes.len())
        && bytes[0] != b'+'
        && bytes.iter().all(ordinary)
        && bytes.iter().any(u8::is_ascii_alphabetic))
    .then(|| name.to_ascii_lowercase())
}

pub(super) fn canonical(typed: &str, trace: &mut impl Trace) -> Result<String, BrokenRule> {
    if is_too_long(typed) {
        return Err(Rule::HandleLength.into());
    }
    let mapped = map(typed, trace)?;
    let name = mapped.strip_prefix('@').unwrap_or(&mapped);
    trace.step("leading-at", &mapped, name);
    let stable = stable_form(name)?;
    trace.step("stabilize", name, &stable);
    check(&stable)?;
    Ok(stable)
}

/// Whether the canonical form would be too long, in linear time. PRECIS's contextual rules (RFC
/// 5892, appendix A) scan all neighbours of each such character.
fn is_too_long(typed: &str) -> bool {
    let mut composed = typed.nfkc().flat_map(char::to_lowercase).nfkc();
    typed.chars().nth(MAX_TYPED_CODE_POINTS).is_some()
        || composed.nth(1 + MAX_CODE_POINTS).is_some()
}

/// The mappings of RFC 8265, section 3.3.3, up to normalization. The directionality rule applies
/// once the `@` is removed: it rejects an `@` in front of a right-to-left name.
fn map(typed: &str, trace: &mut impl Trace) -> Result<String, BrokenRule> {
    if typed.is_empty() {
        return Err(Rule::HandleLength.into());
    }
    let profile = UsernameCaseMapped::new();
    let wide = profile.prepare(typed).map_err(bad_character)?;
    trace.step("width-mapping", typed, &wide);
    let lower = profile.case_mapping_rule(&*wide).map_err(|_| Rule::HandleCharacter)?;
    trace.step("lower-case", &wide, &lower);
    let composed = profile.normalization_rule(&*lower).map_err(|_| Rule::HandleCharacter)?;
    trace.step("nfc", &lower, &composed);
    Ok(composed.into_owned())
}

/// Applies the whole profile until nothing changes (RFC 8264, section 7).
fn stable_form(name: &str) -> Result<String, BrokenRule> {
    if name.is_empty() {
        return Err(Rule::HandleLength.into());
    }
    let profile = UsernameCaseMapped::new();
    profile.directionality_rule(name).map_err(|_| Rule::HandleDirection)?;
    let stable = stabilize(name, |name| profile.enforce(name)).map_err(|_| Rule::HandleUnstable)?;
    Ok(stable.into_owned())
}

fn bad_character(error: Error) -> BrokenRule {
    match error {
        // Width mapping is one to one, so the position in the typed text is the same.
        Error::BadCodepoint(info) => Rule::HandleCharacter.at(info.position),
        Error::Invalid | Error::Unexpected(_) => Rule::HandleCharacter.into(),
    }
}

fn check(name: &str) -> Result<(), BrokenRule> {
    let broken = if name.chars().count() > MAX_CODE_POINTS {
        Rule::HandleLength
    } else if name.contains('@') {
        Rule::HandleAt
    } else if name.starts_with('+') {
        Rule::HandlePlus
    } else if !name.chars().any(is_letter) {
        Rule::HandleLetter
    } else if lookalike::mixes_scripts(name) {
        Rule::HandleScripts
    } else {
        return Ok(());
    };

    Err(broken.into())
}

/// Whether a character of PRECIS's IdentifierClass has General_Category L. The Alphabetic property
/// also includes letter-like numbers, marks and symbols; the class has no symbols.
pub(super) fn is_letter(c: char) -> bool {
    c.is_alphabetic() && !c.is_numeric() && !is_combining_mark(c)
}
