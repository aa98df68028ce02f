//! Converts dialled digits to a valid number in E.164. Numbering plans are loaded on first use, one
//! for each calling code.

use std::sync::OnceLock;

use phonenumber::country::Id;
use phonenumber::metadata::DATABASE;

use super::phone_metadata::{Plan, Region};

const MAX_CODE_DIGITS: usize = 3;

static PLANS: [OnceLock<Plan>; 1000] = [const { OnceLock::new() }; 1000];

/// The E.164 form of the digits after a plus: a calling code and a national number, possibly with
/// its national prefix, as in `+44 (0)20 7946 0958`.
pub(super) fn international(digits: &str) -> Option<String> {
    // No calling code is a prefix of another, so at most one split finds a number.
    (1..=MAX_CODE_DIGITS.min(digits.len())).find_map(|at| {
        let (code, rest) = digits.split_at(at);
        let code = code.parse().ok()?;
        within(code, plan(code)?.region(None)?, rest)
    })
}

/// The E.164 form of digits dialled in a region.
pub(super) fn national(digits: &str, id: Id) -> Option<String> {
    let code = DATABASE.by_id(id.as_ref())?.country_code();
    let region = plan(code)?.region(Some(id.as_ref()))?;
    if plan(code)?.has(digits) {
        return Some(format!("+{code}{digits}"));
    }

    let abroad = || region.abroad(digits).and_then(international);
    let without_plus = || {
        let rest = digits.strip_prefix(&code.to_string())?;
        within(code, region, rest)
    };
    abroad().or_else(without_plus).or_else(|| within(code, region, digits))
}

/// How a telephone number is dialled in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialling {
    /// With its calling code: the same number in every region.
    International,
    /// With the national prefix of the region, or without one where the region has none.
    National,
    /// Without the national prefix of the region: the digits may just as well be a number of
    /// another region.
    WithoutPrefix,
}

/// How valid digits are dialled in a region.
pub(super) fn dialling(digits: &str, id: Id) -> Option<Dialling> {
    let metadata = DATABASE.by_id(id.as_ref())?;
    let region = plan(metadata.country_code())?.region(Some(id.as_ref()))?;
    let has_code = !plan(metadata.country_code())?.has(digits)
        && digits.starts_with(&metadata.country_code().to_string());
    let is_abroad = region.abroad(digits).and_then(international).is_some();
    Some(match metadata.national_prefix() {
        _ if digits.starts_with('+') || is_abroad || has_code => Dialling::International,
        Some(prefix) if !digits.starts_with(prefix) => Dialling::WithoutPrefix,
        _ => Dialling::National,
    })
}

/// The E.164 form of digits dialled in a region, like [`national`].
///
/// # Errors
/// The calling code of the region, if the digits start with it and are a number both with and
/// without it.
pub(super) fn unambiguous(digits: &str, id: Id) -> Result<Option<String>, u16> {
    let number = national(digits, id);
    match other_readings(digits, id) {
        Some((code, [Some(with), Some(without)])) if with != without => Err(code),
        _ => Ok(number),
    }
}

/// For digits that start with the calling code of their region: the code, and the number if the
/// digits include the code, and if they do not.
fn other_readings(digits: &str, id: Id) -> Option<(u16, [Option<String>; 2])> {
    let code = DATABASE.by_id(id.as_ref())?.country_code();
    let rest = digits.strip_prefix(&code.to_string())?;
    let region = plan(code)?.region(Some(id.as_ref()))?;
    Some((code, [within(code, region, rest), within(code, region, digits)]))
}

/// Whether a region has a numbering plan.
pub(super) fn has_region(id: Id) -> bool {
    DATABASE.by_id(id.as_ref()).is_some()
}

/// Loads the data that the rules otherwise load on first use. Takes about a tenth of a second.
pub fn warm_up() {
    plan(1);
}

/// A number that the plan has, as it is or without the national prefix.
fn within(code: u16, region: &Region, digits: &str) -> Option<String> {
    let plan = plan(code)?;
    if plan.has(digits) {
        return Some(format!("+{code}{digits}"));
    }
    let stripped = region.without_prefix(digits)?;
    plan.has(&stripped).then(|| format!("+{code}{stripped}"))
}

fn plan(code: u16) -> Option<&'static Plan> {
    let plan = PLANS.get(usize::from(code))?;
    Some(plan.get_or_init(|| Plan::load(code)))
}
