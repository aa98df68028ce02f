//! The generator: combines the origin, the clock and the shared sequence.

use std::time::{SystemTime, UNIX_EPOCH};

use super::id::{LocalityId, Origin};
use super::origin;
use super::sequence::{Order, Sequence};

/// The order of a generator's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Consecutive ids differ in their first digit and spread over the whole id space.
    #[default]
    Variable,
    /// Ids count up from a start that all generators share for ten minutes of UTC, so that ids of
    /// one window lie close together.
    Sequential,
}

/// Milliseconds since the Unix epoch.
type Clock = Box<dyn Fn() -> u64 + Send + Sync>;

/// Generates unique ids. Threads share it by reference; it neither locks nor allocates.
///
/// ```
/// use locality_uuid::{Generator, Mode};
///
/// let ids = Generator::new(Mode::Variable);
/// let (first, second) = (ids.next_id(), ids.next_id());
/// assert_ne!(first.as_bytes()[0] >> 4, second.as_bytes()[0] >> 4);
/// ```
pub struct Generator {
    origin: Origin,
    sequence: Sequence,
    clock: Option<Clock>,
}

impl Generator {
    /// A generator with the system's clock and, in variable mode, a random start.
    ///
    /// The first generator of a process uses the process id and the node of a MAC. Others use
    /// random fields, 44 bits together, and so does the first one in a container or without a
    /// unique MAC.
    pub fn new(mode: Mode) -> Self {
        Self::builder(mode).build()
    }

    /// Configures a generator.
    pub fn builder(mode: Mode) -> Builder {
        Builder { mode, process_id: None, node: None, random: false, start: None, clock: None }
    }

    /// The next id. It differs from every other id of this generator, even if the clock steps back:
    /// then the timestamp stays, at most ten seconds before the latest one, until the clock catches
    /// up. Valid until the year 3331.
    #[inline]
    pub fn next_id(&self) -> LocalityId {
        let now = match &self.clock {
            None => system_millis(),
            Some(clock) => clock(),
        };
        let drawn = self.sequence.draw(now);
        LocalityId::assemble(drawn.counter, self.origin, drawn.millis)
    }
}

/// The configuration of a [`Generator`], with the defaults of [`Generator::new`].
#[must_use]
pub struct Builder {
    mode: Mode,
    process_id: Option<u16>,
    node: Option<u32>,
    random: bool,
    start: Option<u32>,
    clock: Option<Clock>,
}

impl Builder {
    /// Sets the process field. It must differ between processes of the same node.
    pub fn process_id(mut self, process_id: u16) -> Self {
        self.process_id = Some(process_id);
        self
    }

    /// Sets the node field to the last 28 bits of `node`.
    pub fn node(mut self, node: u32) -> Self {
        self.node = Some(node);
        self
    }

    /// Uses random process and node fields, unless they are set.
    pub fn random_origin(mut self) -> Self {
        self.random = true;
        self
    }

    /// Sets the counter before the first id in variable mode. Sequential mode derives it from the
    /// time.
    pub fn start(mut self, counter: u32) -> Self {
        self.start = Some(counter);
        self
    }

    /// Replaces the system's clock: milliseconds since the Unix epoch.
    pub fn clock(mut self, clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.clock = Some(Box::new(clock));
        self
    }

    /// Builds the generator.
    pub fn build(self) -> Generator {
        let order = match self.mode {
            Mode::Variable => {
                Order::Variable(self.start.unwrap_or_else(|| origin::random_bits() as u32))
            }
            Mode::Sequential => Order::Sequential,
        };
        Generator {
            origin: origin::choose(self.process_id, self.node, self.random),
            sequence: Sequence::new(order),
            clock: self.clock,
        }
    }
}

/// The system's time; 0 before the epoch.
fn system_millis() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    since_epoch.map_or(0, |time| time.as_secs() * 1_000 + u64::from(time.subsec_millis()))
}
