//! Tests of generators.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::generator::{Generator, Mode};
use crate::id::LocalityId;

/// 2013-04-28T01:00:00Z, the first millisecond of window `20130428010`.
const WINDOW: u64 = 1_367_110_800_000;
const TEN_MINUTES: u64 = 600_000;

/// A generator with a settable clock.
fn with_clock(mode: Mode, process_id: u16) -> (Generator, Arc<AtomicU64>) {
    let time = Arc::new(AtomicU64::new(WINDOW));
    let clock = Arc::clone(&time);
    let ids = Generator::builder(mode)
        .process_id(process_id)
        .node(0xd53_7a50)
        .start(0)
        .clock(move || clock.load(Ordering::Relaxed))
        .build();
    (ids, time)
}

fn texts(ids: &Generator, n: usize) -> Vec<String> {
    (0..n).map(|_| ids.next_id().to_string()).collect()
}

/// Sorts in small groups, which is several times faster in a debug build.
fn assert_distinct(ids: &[LocalityId]) {
    let mut groups = vec![Vec::new(); 1 << 16];
    for id in ids {
        let number = u128::from_be_bytes(*id.as_bytes());
        groups[(number >> 112) as usize].push(number);
    }
    for group in &mut groups {
        group.sort_unstable();
        let twice = group.windows(2).find(|pair| pair[0] == pair[1]);
        assert_eq!(twice, None, "an id is repeated");
    }
}

/// Draws `n` ids on `threads` threads.
fn draw_in_parallel(ids: &Generator, threads: usize, n: usize) -> Vec<LocalityId> {
    let draw = || -> Vec<_> { (0..n / threads).map(|_| ids.next_id()).collect() };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(draw)).collect();
        let drawn = workers.into_iter().map(|worker| worker.join().unwrap());
        drawn.flatten().collect()
    })
}

#[test]
fn an_id_has_its_fields_in_order() {
    let (ids, _) = with_clock(Mode::Variable, 0x314a);
    assert_eq!(ids.next_id().to_string(), "5bcb4db0-314a-bd53-7a50-013e4e275280");
}

#[test]
fn variable_mode_continues_like_the_original() {
    let (ids, _) = with_clock(Mode::Variable, 1);
    let texts = texts(&ids, 4);
    assert!(texts[0].starts_with("5bcb4db0"));
    let starts: String = texts.iter().map(|text| &text[..1]).collect();
    assert_eq!(starts, "5af4");
}

#[test]
fn variable_counters_are_the_increment_apart() {
    let (ids, time) = with_clock(Mode::Variable, 1);
    for n in 1..=1_000u32 {
        // Over 1,000 ids the clock passes many ticks and windows.
        time.fetch_add(7_777, Ordering::Relaxed);
        assert_eq!(ids.next_id().counter(), Some(198_491_317u32.wrapping_mul(n)));
    }
}

#[test]
fn sequential_mode_starts_from_the_published_window() {
    let (ids, _) = with_clock(Mode::Sequential, 1);
    let counters: Vec<_> = texts(&ids, 3).iter().map(|text| text[..8].to_owned()).collect();
    assert_eq!(counters, ["f5166776", "f5166777", "f5166778"]);
}

#[test]
fn sequential_generators_start_every_window_alike() {
    let (one, one_time) = with_clock(Mode::Sequential, 1);
    let (two, two_time) = with_clock(Mode::Sequential, 2);
    for window in 0..20 {
        one_time.store(WINDOW + window * TEN_MINUTES, Ordering::Relaxed);
        two_time.store(WINDOW + window * TEN_MINUTES + 123_456, Ordering::Relaxed);
        let (first, second) = (one.next_id(), two.next_id());
        assert_eq!(first.sequential_counter(), second.sequential_counter());
        assert_ne!(first, second);
        // One of them makes many more ids in this window.
        texts(&one, 100);
    }
}

#[test]
fn ids_of_a_sequential_generator_ascend_within_a_window() {
    let (ids, time) = with_clock(Mode::Sequential, 1);
    let drawn: Vec<_> = (0..1_000)
        .map(|_| {
            time.fetch_add(500, Ordering::Relaxed);
            ids.next_id()
        })
        .collect();
    assert!(drawn.is_sorted());
}

#[test]
fn a_clock_that_steps_back_repeats_no_id() {
    for mode in [Mode::Variable, Mode::Sequential] {
        let (ids, time) = with_clock(mode, 1);
        let mut drawn = Vec::new();
        for step in 0..3_000u64 {
            // Swings over six windows, to the same milliseconds each time.
            let swing = (step * 7 % 12) * TEN_MINUTES / 2;
            time.store(WINDOW + swing, Ordering::Relaxed);
            drawn.extend((0..10).map(|_| ids.next_id()));
        }
        assert_distinct(&drawn);
    }
}

#[test]
fn threads_under_a_wild_clock_repeat_no_id() {
    for mode in [Mode::Variable, Mode::Sequential] {
        let calls = AtomicU64::new(0);
        let wild = move || {
            let call = calls.fetch_add(1, Ordering::Relaxed);
            WINDOW + (call.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62) * TEN_MINUTES
        };
        let ids = Generator::builder(mode).clock(wild).build();
        assert_distinct(&draw_in_parallel(&ids, 8, 400_000));
    }
}

#[test]
fn threads_that_advance_the_clock_repeat_no_id() {
    for mode in [Mode::Variable, Mode::Sequential] {
        let time = AtomicU64::new(WINDOW);
        let ten_seconds_a_call = move || time.fetch_add(10_000, Ordering::Relaxed);
        let ids = Generator::builder(mode).clock(ten_seconds_a_call).build();
        assert_distinct(&draw_in_parallel(&ids, 8, 400_000));
    }
}

#[test]
fn ten_million_ids_of_eight_threads_are_distinct() {
    let ids = Generator::new(Mode::Variable);
    let drawn = draw_in_parallel(&ids, 8, 10_000_000);
    assert_eq!(drawn.len(), 10_000_000);
    assert_distinct(&drawn);
}

#[test]
fn first_bytes_are_spread_evenly() {
    const DRAWN: usize = 1_000_000;
    let ids = Generator::new(Mode::Variable);
    let mut counts = [0f64; 256];
    for _ in 0..DRAWN {
        counts[usize::from(ids.next_id().as_bytes()[0])] += 1.0;
    }
    let expected = DRAWN as f64 / 256.0;
    let chi_squared: f64 = counts.iter().map(|n| (n - expected).powi(2) / expected).sum();
    println!("chi-squared of the first byte: {chi_squared:.3}");
    // At 255 degrees of freedom, 999 of 1,000 random samples stay below this.
    assert!(chi_squared < 330.5, "{chi_squared}");
}

#[test]
fn the_timestamp_is_the_current_time() {
    let millis = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let ids = Generator::new(Mode::Variable);
    for _ in 0..1_000 {
        let before = millis();
        let made = ids.next_id().timestamp_millis().unwrap();
        assert!((before..=millis()).contains(&made));
    }
}

#[test]
fn starts_are_random() {
    let first = || Generator::new(Mode::Variable).next_id().counter();
    assert_ne!((first(), first()), (first(), first()));
}

#[test]
fn a_generator_is_shared_by_reference() {
    fn shared<T: Send + Sync + 'static>(_: &T) {}
    shared(&Generator::new(Mode::Variable));
}
