//! Ranges of values.

use std::fmt;
use std::ops::Bound;

use super::scalar::{Class, Scalar};

/// The values between two bounds of the total order. The range of a comparison stays within the
/// class of its value: no number is less than a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// The lower bound.
    pub lower: Bound<Scalar>,
    /// The upper bound.
    pub upper: Bound<Scalar>,
}

impl Range {
    /// All values of all classes.
    pub const ALL: Self = Self { lower: Bound::Unbounded, upper: Bound::Unbounded };

    /// One value.
    pub fn point(value: Scalar) -> Self {
        Self { lower: Bound::Included(value.clone()), upper: Bound::Included(value) }
    }

    /// The values of `class` below a bound.
    pub fn below(upper: Bound<Scalar>, class: Class) -> Self {
        Self { lower: class.first().map_or(Bound::Unbounded, Bound::Included), upper }
    }

    /// The values of `class` above a bound.
    pub fn above(lower: Bound<Scalar>, class: Class) -> Self {
        Self { lower, upper: class.end().map_or(Bound::Unbounded, Bound::Excluded) }
    }

    /// All values of a class.
    pub fn of_class(class: Class) -> Self {
        Self {
            lower: class.first().map_or(Bound::Unbounded, Bound::Included),
            upper: class.end().map_or(Bound::Unbounded, Bound::Excluded),
        }
    }

    /// The texts that start with `prefix`.
    pub fn prefix(prefix: &str) -> Self {
        let lower = Bound::Included(Scalar::String(prefix.to_owned()));
        match successor(prefix) {
            Some(end) => Self { lower, upper: Bound::Excluded(Scalar::String(end)) },
            None => Self::above(lower, Class::String),
        }
    }

    /// The ranges in their order, without those in others. Ranges that overlap contain each other.
    pub fn distinct(mut ranges: Vec<Self>) -> Vec<Self> {
        ranges.sort_by(|a, b| {
            let lower = lower_key(&a.lower).cmp(&lower_key(&b.lower));
            lower.then_with(|| upper_key(&b.upper).cmp(&upper_key(&a.upper)))
        });
        ranges.dedup_by(|next, before| upper_key(&next.upper) <= upper_key(&before.upper));
        ranges
    }

    /// Those of the ranges, in their order, that are not before a value.
    pub fn from_value<'r>(
        ranges: &'r [Self],
        value: Option<&'r Scalar>,
    ) -> impl Iterator<Item = &'r Self> {
        let is_before = |range: &Self, value: &Scalar| match &range.upper {
            Bound::Included(upper) => upper < value,
            Bound::Excluded(upper) => upper <= value,
            Bound::Unbounded => false,
        };
        ranges.iter().filter(move |range| value.is_none_or(|value| !is_before(range, value)))
    }

    /// The value of a range with a single value.
    pub fn as_point(&self) -> Option<&Scalar> {
        match (&self.lower, &self.upper) {
            (Bound::Included(lower), Bound::Included(upper)) if lower == upper => Some(lower),
            _ => None,
        }
    }

    /// Whether the range contains this value.
    pub fn contains(&self, value: &Scalar) -> bool {
        let is_above = match &self.lower {
            Bound::Included(lower) => value >= lower,
            Bound::Excluded(lower) => value > lower,
            Bound::Unbounded => true,
        };
        is_above
            && match &self.upper {
                Bound::Included(upper) => value <= upper,
                Bound::Excluded(upper) => value < upper,
                Bound::Unbounded => true,
            }
    }

    /// The class of all values in the range, or `None` if there may be several.
    pub fn class(&self) -> Option<Class> {
        let first = match &self.lower {
            Bound::Included(lower) | Bound::Excluded(lower) => lower.class(),
            Bound::Unbounded => Class::Number,
        };
        let last = match &self.upper {
            Bound::Excluded(upper)
                if [Class::String, Class::Bool, Class::Time]
                    .into_iter()
                    .any(|class| class.first().as_ref() == Some(upper)) =>
            {
                [Class::Number, Class::String, Class::Bool, Class::Time]
                    .into_iter()
                    .find(|class| class.end().as_ref() == Some(upper))?
            }
            Bound::Included(upper) | Bound::Excluded(upper) => upper.class(),
            Bound::Unbounded => Class::Time,
        };
        (first == last).then_some(first)
    }

    /// The values in both ranges.
    pub fn intersection(&self, other: &Self) -> Self {
        let lower = std::cmp::max_by(self.lower.clone(), other.lower.clone(), |a, b| {
            lower_key(a).cmp(&lower_key(b))
        });
        let upper = std::cmp::min_by(self.upper.clone(), other.upper.clone(), |a, b| {
            upper_key(a).cmp(&upper_key(b))
        });
        Self { lower, upper }
    }
}

/// The range in mathematical notation.
impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.lower {
            Bound::Included(lower) => write!(f, "[{lower}, ")?,
            Bound::Excluded(lower) => write!(f, "({lower}, ")?,
            Bound::Unbounded => f.write_str("(-, ")?,
        }
        match &self.upper {
            Bound::Included(upper) => write!(f, "{upper}]"),
            Bound::Excluded(upper) => write!(f, "{upper})"),
            Bound::Unbounded => f.write_str("-)"),
        }
    }
}

/// The sort key of a lower bound: a larger one admits fewer values.
fn lower_key(bound: &Bound<Scalar>) -> Option<(&Scalar, bool)> {
    match bound {
        Bound::Unbounded => None,
        Bound::Included(value) => Some((value, false)),
        Bound::Excluded(value) => Some((value, true)),
    }
}

/// The sort key of an upper bound: a larger one admits more values.
fn upper_key(bound: &Bound<Scalar>) -> (bool, Option<(&Scalar, bool)>) {
    match bound {
        Bound::Unbounded => (true, None),
        Bound::Excluded(value) => (false, Some((value, false))),
        Bound::Included(value) => (false, Some((value, true))),
    }
}

/// The least text after all those that start with `prefix`, if any. UTF-8 bytes sort like
/// characters.
fn successor(prefix: &str) -> Option<String> {
    let mut text = prefix.to_owned();
    while let Some(last) = text.pop() {
        let next = match last {
            '\u{d7ff}' => Some('\u{e000}'),
            char::MAX => None,
            other => char::from_u32(u32::from(other) + 1),
        };
        if let Some(next) = next {
            text.push(next);
            return Some(text);
        }
    }
    None
}
