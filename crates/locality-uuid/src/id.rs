//! The 16 bytes of an id and their fields. The text form is in `text`, generation in `generator`.

/// The version digit of a Locality UUID.
const VERSION: u8 = 0xb;

/// A Locality UUID, or a UUID of another version.
///
/// Ids order by their bytes, which is also the order of their text forms. Every accessor except
/// [`version`](Self::version) returns `None` for a UUID of another version, whose fields differ.
///
/// ```
/// use locality_uuid::LocalityId;
///
/// let id: LocalityId = "20be0ffc-314a-bd53-7a50-013a65ca76d2".parse()?;
/// assert_eq!(id.counter(), Some(3_488_672_514));
/// assert_eq!(id.process_id(), Some(12_618));
/// assert_eq!(id.timestamp_millis(), Some(1_350_327_498_450));
/// # Ok::<(), locality_uuid::ParseIdError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalityId([u8; 16]);

/// The constant part of the ids of a generator: process, version and node.
#[derive(Clone, Copy)]
pub(super) struct Origin(u128);

impl Origin {
    /// Uses the last 28 bits of `node`.
    pub(super) fn new(process_id: u16, node: u32) -> Self {
        let node_bits = u128::from(node & 0x0fff_ffff);
        Self(u128::from(process_id) << 80 | u128::from(VERSION) << 76 | node_bits << 48)
    }
}

impl LocalityId {
    /// The id with `counter` as its first 32 bits and the last 48 bits of `millis`.
    pub(super) fn assemble(counter: u32, origin: Origin, millis: u64) -> Self {
        let time_bits = u128::from(millis & 0xffff_ffff_ffff);
        Self((u128::from(counter) << 96 | origin.0 | time_bits).to_be_bytes())
    }

    /// The 16 bytes, in the order of the text form.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The version digit, 0 to 15. It is 11 for a Locality UUID.
    pub const fn version(&self) -> u8 {
        self.0[6] >> 4
    }

    /// The counter of variable mode: the eight hex digits in reverse.
    pub fn counter(&self) -> Option<u32> {
        self.sequential_counter().map(reverse_digits)
    }

    /// The counter of sequential mode: the eight hex digits in order.
    pub fn sequential_counter(&self) -> Option<u32> {
        self.field(96, 32).map(|bits| bits as u32)
    }

    /// The process field: the last 16 bits of a process id, or a random or configured number.
    pub fn process_id(&self) -> Option<u16> {
        self.field(80, 16).map(|bits| bits as u16)
    }

    /// The node field, 28 bits: the end of a MAC, or a random or configured number.
    pub fn node(&self) -> Option<u32> {
        self.field(48, 28).map(|bits| bits as u32)
    }

    /// The time of generation in milliseconds since the Unix epoch, UTC.
    pub fn timestamp_millis(&self) -> Option<u64> {
        self.field(0, 48)
    }

    /// `width` bits, at most 64, `shift` bits above the last one.
    fn field(&self, shift: u32, width: u32) -> Option<u64> {
        let bits = (u128::from_be_bytes(self.0) >> shift) as u64;
        (self.version() == VERSION).then_some(bits & (u64::MAX >> (64 - width)))
    }
}

/// The same number with its eight hex digits in reverse order.
pub(super) const fn reverse_digits(counter: u32) -> u32 {
    let swapped = counter.swap_bytes();
    (swapped & 0x0f0f_0f0f) << 4 | (swapped >> 4) & 0x0f0f_0f0f
}

impl From<[u8; 16]> for LocalityId {
    fn from(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl From<LocalityId> for [u8; 16] {
    fn from(id: LocalityId) -> Self {
        id.0
    }
}

#[cfg(feature = "uuid")]
impl From<uuid::Uuid> for LocalityId {
    fn from(uuid: uuid::Uuid) -> Self {
        Self(uuid.into_bytes())
    }
}

#[cfg(feature = "uuid")]
impl From<LocalityId> for uuid::Uuid {
    fn from(id: LocalityId) -> Self {
        Self::from_bytes(id.0)
    }
}
