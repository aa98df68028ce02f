//! Tests of the shared state where an id could repeat: window changes, clocks that step back, and
//! the wrap of the position.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

const WINDOW: u64 = window::SECONDS * 1_000;

/// A sequence that has reached `tick` and drawn `position` ids.
fn at(order: Order, tick: u32, position: u32) -> Sequence {
    let known = pack(tick, order.base(tick));
    Sequence {
        order,
        state: CachePadded(AtomicU64::new(pack(tick, position))),
        known: CachePadded(AtomicU64::new(known)),
    }
}

#[test]
fn a_new_sequence_starts_with_the_window_of_the_clock() {
    let sequence = Sequence::new(Order::Sequential);
    let drawn = sequence.draw(7 * WINDOW + 1);
    let expected = Draw { counter: window::start(7).wrapping_add(1), millis: 7 * WINDOW + 1 };
    assert_eq!(drawn, expected);
}

#[test]
fn a_window_change_moves_to_the_start_of_the_new_window() {
    let sequence = Sequence::new(Order::Sequential);
    let counters: Vec<u32> = [WINDOW, 2 * WINDOW - 1, 2 * WINDOW, 2 * WINDOW + 1]
        .map(|now| sequence.draw(now).counter)
        .to_vec();
    let (old, new) = (window::start(1), window::start(2));
    let expected =
        [old.wrapping_add(1), old.wrapping_add(2), new.wrapping_add(1), new.wrapping_add(2)];
    assert_eq!(counters, expected);
}

#[test]
fn a_clock_that_steps_into_an_old_window_does_not_restart_it() {
    let sequence = Sequence::new(Order::Sequential);
    sequence.draw(WINDOW + 5);
    sequence.draw(2 * WINDOW + 5);
    let back = sequence.draw(WINDOW + 5);
    let expected = Draw { counter: window::start(2).wrapping_add(2), millis: 2 * WINDOW };
    assert_eq!(back, expected);
}

#[test]
fn a_step_back_within_ten_seconds_is_written() {
    let sequence = Sequence::new(Order::Variable(0));
    assert_eq!(sequence.draw(19_999).millis, 19_999);
    assert_eq!(sequence.draw(10_001).millis, 10_001);
    assert_eq!(sequence.draw(9_999).millis, 10_000);
}

#[test]
fn a_wrap_under_a_stopped_clock_moves_to_the_next_tick() {
    let sequence = at(Order::Variable(0), 5, 0);
    let first = sequence.draw(50_000);
    let sequence = at(Order::Variable(0), 5, u32::MAX);
    let wrapped = sequence.draw(50_000);
    let again = sequence.draw(50_000);

    assert_eq!(wrapped.counter, 0);
    assert_eq!(wrapped.millis, 60_000);
    assert_eq!(again.counter, first.counter);
    assert_ne!(again.millis, first.millis);
}

#[test]
fn a_wrap_in_the_last_tick_of_a_window_moves_to_the_next_window() {
    let sequence = at(Order::Sequential, TICKS_OF_WINDOW - 1, u32::MAX);
    let wrapped = sequence.draw(WINDOW - 1);
    let expected = Draw { counter: window::start(1), millis: WINDOW };
    assert_eq!(wrapped, expected);
    let next = sequence.draw(WINDOW);
    assert_eq!(next.counter, window::start(1).wrapping_add(1));
}

#[test]
fn a_wrap_after_a_clock_advance_loses_no_counter() {
    let sequence = at(Order::Variable(0), 5, u32::MAX);
    let wrapped = sequence.draw(123_456);
    let expected = Draw { counter: 0, millis: 123_456 };
    assert_eq!(wrapped, expected);
}

#[test]
fn the_increment_and_the_number_of_counters_have_no_common_factor() {
    assert_eq!(INCREMENT % 2, 1);
}

/// Clocks that jump among a few windows, ticks and milliseconds, so that a sequence that trusted
/// them would soon repeat a pair.
fn wild_clock() -> impl Strategy<Value = Vec<u64>> {
    let time = (0..4u64, 0..3u64, 0..2u64)
        .prop_map(|(window, tick, milli)| window * WINDOW + tick * MILLIS_OF_TICK + milli);
    prop::collection::vec(time, 1..200)
}

proptest! {
    #[test]
    fn no_pair_repeats_under_a_wild_clock(
        variable in any::<bool>(),
        to_wrap in 0..50u32,
        clock in wild_clock(),
    ) {
        let order = if variable { Order::Variable(17) } else { Order::Sequential };
        let sequence = at(order, 0, u32::MAX - to_wrap);
        let mut seen = HashSet::new();
        let mut tick = 0;
        for now in clock {
            let drawn = sequence.draw(now);
            prop_assert!(drawn.millis / MILLIS_OF_TICK >= tick);
            tick = drawn.millis / MILLIS_OF_TICK;
            prop_assert!(seen.insert((drawn.counter, drawn.millis)));
        }
    }

    #[test]
    fn a_running_clock_is_written_unchanged(steps in prop::collection::vec(0..20_000u64, 1..100)) {
        let sequence = Sequence::new(Order::Sequential);
        let mut now = 1_700_000_000_000;
        for step in steps {
            now += step;
            prop_assert_eq!(sequence.draw(now).millis, now);
        }
    }
}
