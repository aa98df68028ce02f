//! Tests of ten-minute windows.

use proptest::prelude::*;

use crate::window::{SECONDS, label, start};

fn label_of(seconds: u64) -> String {
    String::from_utf8(label(seconds / SECONDS).to_vec()).unwrap()
}

#[test]
fn the_published_window_has_its_label_and_start() {
    // 2013-04-28T01:00:00Z
    let window = 1_367_110_800 / SECONDS;
    assert_eq!(label(window), *b"20130428010");
    assert_eq!(start(window), 0xf516_6775);
}

#[test]
fn leap_days_and_ends_of_years_have_correct_labels() {
    assert_eq!(label_of(0), "19700101000");
    assert_eq!(label_of(951_782_400), "20000229000");
    assert_eq!(label_of(951_868_800 - 1), "20000229235");
    assert_eq!(label_of(951_868_800), "20000301000");
    assert_eq!(label_of(1_709_164_800 + 86_399), "20240229235");
    assert_eq!(label_of(1_735_689_599), "20241231235");
    assert_eq!(label_of(1_735_689_600), "20250101000");
    assert_eq!(label_of(4_107_542_400 - 1), "21000228235");
    assert_eq!(label_of(4_107_542_400), "21000301000");
}

#[test]
fn four_centuries_of_days_are_in_order() {
    let leap = |y: u32| y.is_multiple_of(4) && (!y.is_multiple_of(100) || y.is_multiple_of(400));
    let (mut year, mut month, mut day) = (1970, 1, 1);
    for days in 0..146_097 {
        let expected = format!("{year:04}{month:02}{day:02}000");
        assert_eq!(label_of(days * 86_400), expected);
        let length = match month {
            2 if leap(year) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        day += 1;
        if day > length {
            (month, day) = (month + 1, 1);
        }
        if month > 12 {
            (year, month) = (year + 1, 1);
        }
    }
}

proptest! {
    #[test]
    fn a_label_lasts_for_ten_minutes(seconds in 0..42_949_672_960u64) {
        let first = seconds - seconds % SECONDS;
        prop_assert_eq!(label_of(first), label_of(seconds));
        prop_assert_eq!(label_of(first + SECONDS - 1), label_of(seconds));
        prop_assert!(label_of(first + SECONDS) > label_of(seconds));
    }
}
