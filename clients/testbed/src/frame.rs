//! Frames of HTTP/2 (RFC 9113, section 4.1), as far as the proxy must know them.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// The bytes of the preface, with which a client begins a connection.
pub const PREFACE_BYTES: usize = 24;

const HEADER_BYTES: usize = 9;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const INTERNAL_ERROR: u32 = 2;

/// The types that the proxy knows.
pub mod kind {
    /// HEADERS: the beginning of a call, or of its answer.
    pub const HEADERS: u8 = 1;
    /// `RST_STREAM`.
    pub const RESET: u8 = 3;
    /// SETTINGS.
    pub const SETTINGS: u8 = 4;
    /// GOAWAY.
    pub const GO_AWAY: u8 = 7;
}

/// One frame.
pub struct Frame {
    /// The type.
    pub kind: u8,
    flags: u8,
    /// The stream; 0 for the connection itself.
    pub stream: u32,
    payload: Vec<u8>,
}

impl Frame {
    /// Reads the next frame.
    pub async fn read(input: &mut (impl AsyncRead + Unpin)) -> io::Result<Self> {
        let mut header = [0; HEADER_BYTES];
        input.read_exact(&mut header).await?;
        let [a, b, c, kind, flags, s0, s1, s2, s3] = header;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        input.read_exact(&mut payload).await?;
        let stream = u32::from_be_bytes([s0, s1, s2, s3]) & 0x7fff_ffff;
        Ok(Self { kind, flags, stream, payload })
    }

    /// A frame that ends one stream.
    pub fn reset(stream: u32) -> Self {
        let payload = INTERNAL_ERROR.to_be_bytes().to_vec();
        Self { kind: kind::RESET, flags: 0, stream, payload }
    }

    /// The answer UNAVAILABLE of a server, by literal headers without Huffman codes (RFC 7541).
    pub fn unavailable(stream: u32) -> Self {
        const STATUS_200: u8 = 0x88;
        let mut payload = vec![STATUS_200];
        for (name, value) in [("content-type", "application/grpc"), ("grpc-status", "14")] {
            payload.extend([0, name.len() as u8]);
            payload.extend(name.as_bytes());
            payload.push(value.len() as u8);
            payload.extend(value.as_bytes());
        }
        Self { kind: kind::HEADERS, flags: END_STREAM | END_HEADERS, stream, payload }
    }

    /// A frame that ends the connection: no stream after `last` was handled.
    pub fn go_away(last: u32) -> Self {
        let payload = [last.to_be_bytes(), 0_u32.to_be_bytes()].concat();
        Self { kind: kind::GO_AWAY, flags: 0, stream: 0, payload }
    }

    /// Adds a setting of no memory for compressed headers. Without it, a dropped frame of headers
    /// would make later ones unreadable.
    pub fn forbid_header_table(&mut self) {
        const HEADER_TABLE_SIZE: [u8; 6] = [0, 1, 0, 0, 0, 0];
        if self.kind == kind::SETTINGS && self.flags & ACK == 0 {
            self.payload.extend(HEADER_TABLE_SIZE);
        }
    }

    /// The frame as it is sent.
    pub fn bytes(&self) -> Vec<u8> {
        let length = (self.payload.len() as u32).to_be_bytes();
        let header = [&length[1..], &[self.kind, self.flags], &self.stream.to_be_bytes()].concat();
        [header.as_slice(), &self.payload].concat()
    }
}
