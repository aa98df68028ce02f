//! The state that a generator's threads share, and why no id of a generator repeats.
//!
//! `state` holds two numbers of 32 bits: a *tick*, the number of ten-second steps since the Unix
//! epoch, and a *position*, the number of ids drawn, modulo 2^32. Three things hold:
//!
//! 1. The tick never falls. It rises when the clock has passed it, and when the position wraps to
//!    0: adding 1 to the whole carries into it.
//! 2. An id drawn under a tick has a timestamp within the ten seconds of that tick. Where the clock
//!    is behind the tick, the timestamp is the tick's first millisecond.
//! 3. Within one tick a position is drawn at most once, since a wrap ends the tick. The position
//!    gives the counter, one to one, from a base that is the same throughout a tick.
//!
//! So two ids differ in their counter if they share a tick, and in their timestamp if they do not,
//! whatever the clock does and however long a thread sleeps between two steps. A tick would have to
//! see 429 million ids a second, more than one atomic word can give, before a carry moves the
//! timestamps ahead of a clock that runs.

use std::sync::atomic::{AtomicU64, Ordering};

use super::id::reverse_digits;
use super::window;

const MILLIS_OF_TICK: u64 = 10_000;
const TICKS_OF_WINDOW: u32 = (window::SECONDS * 1_000 / MILLIS_OF_TICK) as u32;

/// The last millisecond whose tick fits into 32 bits, in the year 3331.
const LAST_MILLI: u64 = (1 << 32) * MILLIS_OF_TICK - 1;

/// Odd, so that the multiples of it visit every number of 32 bits before one comes again.
const INCREMENT: u32 = 198_491_317;

/// The source of counters.
pub(super) enum Order {
    /// Steps of [`INCREMENT`] after this counter, written in reverse.
    Variable(u32),
    /// Steps of 1 after the start of the ten-minute window.
    Sequential,
}

/// The part of an id that comes from the sequence.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Draw {
    /// As the id has it: reversed in variable order.
    pub counter: u32,
    /// Milliseconds since the Unix epoch.
    pub millis: u64,
}

pub(super) struct Sequence {
    order: Order,
    state: CachePadded,
    /// A tick that the state has reached, and the base of its counters. Read for each id and seldom
    /// written, so threads keep a copy near while `state` moves between them.
    known: CachePadded,
}

/// An atomic word with the cache lines around it to itself.
#[repr(align(128))]
struct CachePadded(AtomicU64);

impl Sequence {
    pub(super) fn new(order: Order) -> Self {
        let known = pack(0, order.base(0));
        Self {
            order,
            state: CachePadded(AtomicU64::new(0)),
            known: CachePadded(AtomicU64::new(known)),
        }
    }

    /// Draws the next counter, at `now` milliseconds since the Unix epoch.
    #[inline]
    pub(super) fn draw(&self, now: u64) -> Draw {
        let now = now.min(LAST_MILLI);
        let tick = (now / MILLIS_OF_TICK) as u32;
        let known = self.known.0.load(Ordering::Acquire);
        let state = if tick <= high(known) {
            self.state.0.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
        } else {
            self.advance(tick)
        };
        let base = if high(state) == high(known) { low(known) } else { self.learn(high(state)) };

        Draw {
            counter: self.order.counter(base, low(state)),
            millis: now.max(u64::from(high(state)) * MILLIS_OF_TICK),
        }
    }

    /// Draws a state whose tick is `tick` or a later one that another thread has set.
    #[cold]
    fn advance(&self, tick: u32) -> u64 {
        let step = |state| self.order.step(state, tick);
        let relaxed = Ordering::Relaxed;
        let before = self.state.0.fetch_update(relaxed, relaxed, |state| Some(step(state)));
        step(before.unwrap_or_else(|state| state))
    }

    /// Finds the base of a tick that the state has reached and leaves it for other threads.
    #[cold]
    fn learn(&self, tick: u32) -> u32 {
        let base = self.order.base(tick);
        self.known.0.fetch_max(pack(tick, base), Ordering::AcqRel);
        base
    }
}

impl Order {
    /// The counter that the positions of `tick` are counted from.
    fn base(&self, tick: u32) -> u32 {
        match self {
            Self::Variable(start) => *start,
            Self::Sequential => window::start(u64::from(tick / TICKS_OF_WINDOW)),
        }
    }

    fn counter(&self, base: u32, position: u32) -> u32 {
        match self {
            Self::Variable(_) => {
                reverse_digits(base.wrapping_add(INCREMENT.wrapping_mul(position)))
            }
            Self::Sequential => base.wrapping_add(position),
        }
    }

    /// The state that follows `state` at the time `tick`.
    fn step(&self, state: u64, tick: u32) -> u64 {
        if tick <= high(state) {
            state.wrapping_add(1)
        } else if self.starts_over(high(state), tick) {
            pack(tick, 1)
        } else {
            pack(tick, low(state).wrapping_add(1))
        }
    }

    fn starts_over(&self, from: u32, to: u32) -> bool {
        matches!(self, Self::Sequential) && from / TICKS_OF_WINDOW != to / TICKS_OF_WINDOW
    }
}

fn pack(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn high(word: u64) -> u32 {
    (word >> 32) as u32
}

fn low(word: u64) -> u32 {
    word as u32
}

#[cfg(test)]
mod tests;
