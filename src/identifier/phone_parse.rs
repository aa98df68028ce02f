//! Parses dialled digits into a number of its country's plan. `phone_metadata` has one plan for
//! each calling code, loaded on first use.

use std::sync::OnceLock;

use phonenumber::country::Id;
use phonenumber::metadata::DATABASE;

use super::phone_metadata::{Plan, Region};

const MAX_CODE_DIGITS: usize = 3;

static PLANS: [OnceLock<Plan>; 1000] = [const { OnceLock::new() }; 1000];

/// E.164 form of what follows the plus: a country calling code, and a number within the country,
/// before which some write the prefix that it has at home, as in `+44 (0)20 7946 0958`.
pub(super) fn international(digits: &str) -> Option<String> {
    // No calling code is the start of another, so at most one split finds a number.
    (1..=MAX_CODE_DIGITS.min(digits.len())).find_map(|at| {
        let (code, rest) = digits.split_at(at);
        let code = code.parse().ok()?;
        within(code, plan(code)?.region(None)?, rest)
    })
}

/// E.164 form of what is dialled in a region.
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

/// Whether a region has a numbering plan.
pub(super) fn has_region(id: Id) -> bool {
    DATABASE.by_id(id.as_ref()).is_some()
}

/// Loads the metadata, and the plan that most regions share.
pub(super) fn warm_up() {
    plan(1);
}

/// A number as it stands where the plan has it, else without the region's national prefix.
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
