//! Values in one total order: numbers, texts, bools, times. BSON and the embedded store's index use
//! the same order.

use std::cmp::Ordering;
use std::fmt;

use super::field::quoted;
use crate::timestamp::Timestamp;
use crate::timestamp::time_text;

/// A single value.
#[derive(Clone, Debug)]
pub enum Scalar {
    /// An integer.
    Int(i64),
    /// A finite number. It equals an integer of the same exact value, and -0.0 equals 0.
    Double(f64),
    /// A text. Texts sort by their UTF-8 bytes.
    String(String),
    /// A bool; false comes first.
    Bool(bool),
    /// An instant.
    Time(Timestamp),
}

/// Values that are comparable with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Integers and doubles.
    Number,
    /// Texts.
    String,
    /// Bools.
    Bool,
    /// Instants.
    Time,
}

impl Class {
    /// The first value of the class, or `None` for numbers: nothing precedes them.
    pub fn first(self) -> Option<Scalar> {
        match self {
            Self::Number => None,
            Self::String => Some(Scalar::String(String::new())),
            Self::Bool => Some(Scalar::Bool(false)),
            Self::Time => Some(Scalar::Time(Timestamp::from_millis(i64::MIN))),
        }
    }

    /// The first value of the next class, or `None` for times: nothing follows them.
    pub fn end(self) -> Option<Scalar> {
        match self {
            Self::Number => Self::String.first(),
            Self::String => Self::Bool.first(),
            Self::Bool => Self::Time.first(),
            Self::Time => None,
        }
    }
}

impl Scalar {
    /// The class of the value.
    pub const fn class(&self) -> Class {
        match self {
            Self::Int(_) | Self::Double(_) => Class::Number,
            Self::String(_) => Class::String,
            Self::Bool(_) => Class::Bool,
            Self::Time(_) => Class::Time,
        }
    }
}

impl Ord for Scalar {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Double(a), Self::Double(b)) => compare_doubles(*a, *b),
            (Self::Int(a), Self::Double(b)) => compare_exactly(*a, *b),
            (Self::Double(a), Self::Int(b)) => compare_exactly(*b, *a).reverse(),
            (Self::String(a), Self::String(b)) => a.cmp(b),
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Time(a), Self::Time(b)) => a.cmp(b),
            _ => self.class().cmp(&other.class()),
        }
    }
}

/// NaN comes first, as in BSON. No attribute has it.
fn compare_doubles(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
}

/// Compares exact values: most integers beyond 2^53 have no double.
fn compare_exactly(int: i64, double: f64) -> Ordering {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if double >= LIMIT {
        return Ordering::Less;
    }
    if double.is_nan() || double < -LIMIT {
        return Ordering::Greater;
    }
    int.cmp(&(double.trunc() as i64)).then_with(|| compare_doubles(0.0, double.fract()))
}

impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scalar {}

/// The value in the syntax of filters.
impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => write!(f, "{number}"),
            Self::Double(number) => write!(f, "{number:?}"),
            Self::String(text) => f.write_str(&quoted(text)),
            Self::Bool(yes) => write!(f, "{yes}"),
            Self::Time(time) => f.write_str(&time_text(*time)),
        }
    }
}
