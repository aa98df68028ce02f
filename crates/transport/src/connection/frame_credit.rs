//! The limit of HTTP/2 frames that a client sends beside calls. Each frame that opens no stream and
//! carries no data costs one unit of its credit; its calls and their answers add to it.

use std::time::{Duration, Instant};

/// The bytes of a frame before its payload (RFC 9113, section 4.1).
const HEAD_BYTES: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const END_STREAM: u8 = 1;

/// The frames that a client may send at once before its first call.
const BURST: u64 = 1_000;
/// The time after which a client without calls may send one more.
const REFILL: Duration = Duration::from_millis(10);
/// The frames that a client may send for each of its calls and for each frame of an answer: it
/// updates the windows of the stream and of the connection, and measures the delay by pings.
const PER_FRAME: u64 = 4;
/// The bytes of answers for which a client may send one more: some open windows in small steps.
const BYTES_PER_UPDATE: u64 = 64;

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    length: usize,
    kind: u8,
    flags: u8,
}

/// Finds the frames in one direction of a connection, whose bytes come in any pieces.
#[derive(Default)]
struct Frames {
    head: [u8; HEAD_BYTES],
    /// The bytes of the head that have come.
    filled: usize,
    /// The bytes of the payload that have not come.
    payload: usize,
}

impl Frames {
    /// Takes the head of the next frame that begins in `bytes`, and what precedes its payload.
    fn next(&mut self, bytes: &mut &[u8]) -> Option<Head> {
        let skipped = self.payload.min(bytes.len());
        self.payload -= skipped;
        *bytes = &bytes[skipped..];
        let (now, rest) = bytes.split_at(bytes.len().min(HEAD_BYTES - self.filled));
        self.head[self.filled..][..now.len()].copy_from_slice(now);
        self.filled += now.len();
        *bytes = rest;
        if self.filled < HEAD_BYTES {
            return None;
        }
        self.filled = 0;
        let [high, middle, low, kind, flags, ..] = self.head;
        self.payload = u32::from_be_bytes([0, high, middle, low]) as usize;
        Some(Head { length: self.payload, kind, flags })
    }

    /// Whether the bytes end with a whole frame.
    const fn is_whole(&self) -> bool {
        self.filled == 0 && self.payload == 0
    }
}

/// A client sends too many frames beside its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Excess;

/// The frames that the client of a connection may still send beside calls.
pub struct FrameCredit {
    received: Frames,
    sent: Frames,
    left: u64,
    refilled: Instant,
}

impl FrameCredit {
    /// The credit of a new connection.
    pub fn new() -> Self {
        let (received, sent) = Default::default();
        Self { received, sent, left: BURST, refilled: Instant::now() }
    }

    /// Notes bytes from the client that follow its preface.
    ///
    /// # Errors
    /// The client has spent its credit.
    pub fn receive(&mut self, mut bytes: &[u8]) -> Result<(), Excess> {
        while let Some(head) = self.received.next(&mut bytes) {
            match head.kind {
                HEADERS => self.left = self.left.saturating_add(PER_FRAME),
                DATA if head.length > 0 || head.flags & END_STREAM > 0 => {}
                _ => self.spend()?,
            }
        }
        Ok(())
    }

    /// Notes bytes to the client.
    pub fn send(&mut self, mut bytes: &[u8]) {
        while let Some(head) = self.sent.next(&mut bytes) {
            if matches!(head.kind, HEADERS | DATA) {
                let earned = PER_FRAME + head.length as u64 / BYTES_PER_UPDATE;
                self.left = self.left.saturating_add(earned);
            }
        }
    }

    /// Whether the bytes to the client end with a whole frame, so that another may follow.
    pub const fn may_end(&self) -> bool {
        self.sent.is_whole()
    }

    /// Spends a frame. The clock is only read once nothing is left.
    fn spend(&mut self) -> Result<(), Excess> {
        if self.left == 0 {
            let now = Instant::now();
            let refill = (now - self.refilled).as_millis() / REFILL.as_millis();
            self.left = u64::try_from(refill).unwrap_or(BURST).min(BURST);
            self.refilled = now;
        }
        self.left = self.left.checked_sub(1).ok_or(Excess)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PING: u8 = 6;
    const WINDOW_UPDATE: u8 = 8;

    fn frame(kind: u8, flags: u8, length: usize) -> Vec<u8> {
        let mut frame = (length as u32).to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags, 0, 0, 0, 1]);
        frame.resize(HEAD_BYTES + length, 0);
        frame
    }

    /// The frames of this kind that a client may send.
    fn taken(credit: &mut FrameCredit, frame: &[u8], limit: usize) -> usize {
        (0..limit).take_while(|_| credit.receive(frame).is_ok()).count()
    }

    #[test]
    fn frames_are_found_in_pieces_of_any_size() {
        let bytes = [frame(HEADERS, 4, 300), frame(PING, 0, 8), frame(DATA, 1, 0)].concat();
        for size in [1, 2, 7, 9, 10, 100, bytes.len()] {
            let (mut frames, mut found) = (Frames::default(), Vec::new());
            for mut piece in bytes.chunks(size) {
                found.extend(std::iter::from_fn(|| frames.next(&mut piece)));
            }
            let kinds: Vec<_> = found.iter().map(|head| (head.kind, head.length)).collect();
            assert_eq!(kinds, [(HEADERS, 300), (PING, 8), (DATA, 0)], "{size}");
            assert!(frames.is_whole());
        }
    }

    #[test]
    fn frames_beside_calls_are_bounded() {
        for (kind, length) in [(PING, 8), (WINDOW_UPDATE, 4), (4, 0), (DATA, 0), (0x77, 100)] {
            let mut credit = FrameCredit::new();
            let count = taken(&mut credit, &frame(kind, 0, length), 100_000);
            // A slow machine refills some of it meanwhile.
            assert!((1_000..50_000).contains(&count), "{kind}: {count}");
        }
    }

    #[test]
    fn calls_and_answers_are_free_and_earn_frames_beside_them() {
        let mut credit = FrameCredit::new();
        let call = [frame(HEADERS, 4, 50), frame(DATA, 0, 30), frame(DATA, 1, 0)].concat();
        assert_eq!(taken(&mut credit, &call, 10_000), 10_000);
        let updates = [frame(WINDOW_UPDATE, 0, 4), frame(WINDOW_UPDATE, 0, 4)].concat();
        assert_eq!(taken(&mut credit, &updates, 20_000), 20_000);
        for _ in 0..100_000 {
            credit.send(&frame(DATA, 0, 7));
            assert_eq!(credit.receive(&updates), Ok(()));
        }
        credit.send(&frame(DATA, 0, 16_384));
        assert_eq!(taken(&mut credit, &frame(WINDOW_UPDATE, 0, 4), 16_384 / 64), 16_384 / 64);
    }

    #[test]
    fn acknowledgements_earn_nothing() {
        let mut credit = FrameCredit::new();
        let count = (0..100_000).take_while(|_| {
            credit.send(&frame(PING, 1, 8));
            credit.receive(&frame(PING, 0, 8)).is_ok()
        });
        assert!(count.count() < 50_000);
    }
}
