//! The order of values.

use std::cmp::Ordering;
use std::ops::Bound;

use proptest::prelude::*;

use crate::search::{Class, Range, Scalar};
use crate::timestamp::Timestamp;

const BIG: i64 = 1 << 53;

fn string(text: &str) -> Scalar {
    Scalar::String(text.to_owned())
}

#[test]
fn values_sort_as_in_bson() {
    let time = |millis| Scalar::Time(Timestamp::from_millis(millis));
    let ordered = [
        Scalar::Double(-1e300),
        Scalar::Int(i64::MIN),
        Scalar::Int(-1),
        Scalar::Double(-0.5),
        Scalar::Int(0),
        Scalar::Double(0.5),
        Scalar::Int(1),
        Scalar::Int(BIG),
        Scalar::Int(BIG + 1),
        Scalar::Double((BIG + 2) as f64),
        Scalar::Int(i64::MAX),
        Scalar::Double(9_223_372_036_854_775_808.0),
        string(""),
        string("Z"),
        string("a"),
        string("ab"),
        string("é"),
        string("\u{ffff}"),
        string("😀"),
        Scalar::Bool(false),
        Scalar::Bool(true),
        time(-1),
        time(0),
    ];
    for (n, a) in ordered.iter().enumerate() {
        for (m, b) in ordered.iter().enumerate() {
            assert_eq!(a.cmp(b), n.cmp(&m), "{a:?} {b:?}");
        }
    }
}

#[test]
fn numbers_are_compared_exactly() {
    assert_eq!(Scalar::Double(-0.0), Scalar::Int(0));
    assert_eq!(Scalar::Double(-0.0), Scalar::Double(0.0));
    assert_eq!(Scalar::Int(BIG), Scalar::Double(BIG as f64));
    assert_ne!(Scalar::Int(BIG + 1), Scalar::Double(BIG as f64));
    assert_ne!(Scalar::Int(i64::MAX), Scalar::Double(i64::MAX as f64));
    assert_eq!(Scalar::Int(i64::MIN), Scalar::Double(i64::MIN as f64));
}

#[test]
fn a_range_stays_in_its_class() {
    let zero = Scalar::Int(0);
    let above = Range::above(Bound::Excluded(zero.clone()), Class::Number);
    assert!(above.contains(&Scalar::Double(1e300)) && !above.contains(&string("")));
    let below = Range::below(Bound::Excluded(Scalar::Bool(true)), Class::Bool);
    assert!(below.contains(&Scalar::Bool(false)) && !below.contains(&string("\u{10ffff}")));
    for class in [Class::Number, Class::String, Class::Bool, Class::Time] {
        let value = class.first().unwrap_or(zero.clone());
        for range in [
            Range::above(Bound::Included(value.clone()), class),
            Range::below(Bound::Included(value.clone()), class),
            Range::point(value),
        ] {
            assert_eq!(range.class(), Some(class), "{range}");
        }
    }
    assert_eq!(Range::ALL.class(), None);
}

#[test]
fn the_range_of_a_prefix_ends_at_its_successor() {
    for (prefix, end) in
        [("a", Some("b")), ("a\u{10ffff}", Some("b")), ("\u{d7ff}", Some("\u{e000}"))]
    {
        let end = end.map(|end| Bound::Excluded(string(end)));
        assert_eq!(Some(Range::prefix(prefix).upper), end);
    }
    let all = Range::prefix("");
    assert!(all.contains(&string("")) && !all.contains(&Scalar::Bool(false)));
    assert!(Range::prefix("\u{10ffff}").contains(&string("\u{10ffff}x")));
}

proptest! {
    #[test]
    fn the_range_of_a_prefix_contains_texts_that_start_with_it(prefix: String, text: String) {
        let range = Range::prefix(&prefix);
        prop_assert_eq!(range.contains(&string(&text)), text.starts_with(&prefix));
        let longer = string(&format!("{prefix}{text}"));
        prop_assert!(range.contains(&longer));
    }

    #[test]
    fn integers_and_doubles_compare_exactly(int: i64, double: f64, near in -3_i64..3) {
        prop_assume!(!double.is_nan());
        let whole = double as i64;
        for int in [int, whole.saturating_add(near)] {
            let exact = exact_cmp(int, double);
            prop_assert_eq!(Scalar::Int(int).cmp(&Scalar::Double(double)), exact);
            prop_assert_eq!(Scalar::Double(double).cmp(&Scalar::Int(int)), exact.reverse());
        }
    }

    #[test]
    fn an_intersection_contains_the_common_values(a: i8, b: i8, c: i8, value: i8) {
        let int = |number: i8| Scalar::Int(number.into());
        let above = Range::above(Bound::Excluded(int(a)), Class::Number);
        let below = Range::below(Bound::Included(int(b)), Class::Number);
        let also = Range::above(Bound::Included(int(c)), Class::Number);
        let both = above.intersection(&below).intersection(&also);
        let wanted = value > a && value <= b && value >= c;
        prop_assert_eq!(both.contains(&int(value)), wanted);
    }
}

/// Compares by 128-bit integers and fractions.
fn exact_cmp(int: i64, double: f64) -> Ordering {
    if double.abs() >= 1e30 {
        return 0.0.partial_cmp(&double).unwrap();
    }
    let whole = double.floor() as i128;
    i128::from(int).cmp(&whole).then(0.0.partial_cmp(&(double - double.floor())).unwrap())
}
