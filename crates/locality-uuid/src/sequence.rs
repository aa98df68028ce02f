//! The state that the threads of a generator share, and why no id repeats.
//!
//! `state` holds two numbers of 32 bits: a *tick*, the number of ten-second steps since the Unix
//! epoch, and a *position*, the number of ids drawn, modulo 2^32. Three invariants hold:
//!
//! 1. The tick never decreases. It increases when the clock passes it, and when the position wraps
//!    to 0, as adding 1 to the word carries into it.
//! 2. An id drawn in a tick has a timestamp within its ten seconds. If the clock is behind the
//!    tick, the timestamp is the tick's first millisecond.
//! 3. Within a tick a position is drawn at most once, since a wrap ends the tick. The position maps
//!    one to one to the counter, from a base that is constant throughout the tick.
//!
//! So two ids differ in their counter if they share a tick, and in their timestamp otherwise,
//! whatever the clock does and however long a thread sleeps between two steps. A carry moves
//! timestamps ahead of a running clock only beyond 429 million ids a second, more than one atomic
//! word allows.

use std::sync::atomic::{AtomicU64, Ordering};

use super::id::reverse_digits;
use super::window;

const MILLIS_OF_TICK: u64 = 10_000;
const TICKS_OF_WINDOW: u32 = (window::SECONDS * 1_000 / MILLIS_OF_TICK) as u32;

/// The last millisecond with a tick of 32 bits, in the year 3331.
const LAST_MILLI: u64 = (1 << 32) * MILLIS_OF_TICK - 1;

/// Odd, so that its multiples visit every 32-bit number before one repeats.
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
    /// The counter in the id: reversed in variable order.
    pub counter: u32,
    /// Milliseconds since the Unix epoch.
    pub millis: u64,
}

pub(super) struct Sequence {
    order: Order,
    state: CachePadded,
    /// A reached tick and the base of its counters. It is read for each id and rarely written, so
    /// that threads keep it cached while `state` moves between them.
    known: CachePadded,
}

/// An atomic word with cache lines of its own.
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
        let base =
            if high(state) == high(known) { low(known) } else { self.publish_base(high(state)) };

        Draw {
            counter: self.order.counter(base, low(state)),
            millis: now.max(u64::from(high(state)) * MILLIS_OF_TICK),
        }
    }

    /// Draws a state in `tick`, or in a later tick that another thread has set.
    #[cold]
    fn advance(&self, tick: u32) -> u64 {
        let step = |state| self.order.step(state, tick);
        let relaxed = Ordering::Relaxed;
        let previous = self.state.0.fetch_update(relaxed, relaxed, |state| Some(step(state)));
        step(previous.unwrap_or_else(|state| state))
    }

    /// Computes the base of a reached tick, and publishes it to other threads.
    #[cold]
    fn publish_base(&self, tick: u32) -> u32 {
        let base = self.order.base(tick);
        self.known.0.fetch_max(pack(tick, base), Ordering::AcqRel);
        base
    }
}

impl Order {
    /// The base of the counters of `tick`.
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

    /// The state after `state` at the time `tick`.
    fn step(&self, state: u64, tick: u32) -> u64 {
        if tick <= high(state) {
            state.wrapping_add(1)
        } else if self.starts_window(high(state), tick) {
            pack(tick, 1)
        } else {
            pack(tick, low(state).wrapping_add(1))
        }
    }

    fn starts_window(&self, from: u32, to: u32) -> bool {
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
