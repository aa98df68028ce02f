//! A client connection that sends arbitrary HTTP/2 frames.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::TIMEOUT;
use crate::server::Server;

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub const SETTINGS: u8 = 4;
pub const HEADERS: u8 = 1;
pub const DATA: u8 = 0;
pub const RESET: u8 = 3;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
/// The END_STREAM flag.
pub const END: u8 = 1;
/// The established state in `/proc/net/tcp`.
const ESTABLISHED: &str = "01";

/// A frame from the server.
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

/// A connection that sends and reads frames (RFC 9113, section 4.1).
pub struct Raw(pub TcpStream);

impl Raw {
    pub fn connect(server: &Server) -> Self {
        let stream = TcpStream::connect(server.url.trim_start_matches("http://")).unwrap();
        stream.set_read_timeout(Some(2 * TIMEOUT)).unwrap();
        Self(stream)
    }

    /// Connects and sends the preface with empty settings.
    pub fn greeted(server: &Server) -> Self {
        let mut raw = Self::connect(server);
        raw.0.write_all(PREFACE).unwrap();
        raw.send(SETTINGS, 0, 0, &[]);
        raw
    }

    pub fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = payload.len() as u32;
        let mut frame = length.to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        let _ = self.0.write_all(&frame);
    }

    /// Connects with an initial stream window of `bytes` and a large connection window.
    pub fn with_window(server: &Server, bytes: u32) -> Self {
        let mut raw = Self::connect(server);
        raw.0.write_all(PREFACE).unwrap();
        raw.send(SETTINGS, 0, 0, &[&[0, 4], &bytes.to_be_bytes()[..]].concat());
        raw.send(WINDOW_UPDATE, 0, 0, &0x7fff_0000u32.to_be_bytes());
        raw
    }

    /// Opens a ResolveIdentity call with additional headers.
    pub fn open(&mut self, stream: u32, more: &[(&str, &str)], end: bool) {
        self.call(stream, "/polynym.v1.DirectoryService/ResolveIdentity", more, end);
    }

    /// Makes a call with one message.
    pub fn ask(&mut self, stream: u32, path: &str, message: &impl prost::Message) {
        self.ask_with(stream, path, &[], message);
    }

    /// Makes a call with one message and additional headers.
    pub fn ask_with(
        &mut self,
        stream: u32,
        path: &str,
        more: &[(&str, &str)],
        message: &impl prost::Message,
    ) {
        self.call(stream, path, more, false);
        let message = message.encode_to_vec();
        let prefix = [&[0], &(message.len() as u32).to_be_bytes()[..]].concat();
        self.send(DATA, END, stream, &[prefix, message].concat());
    }

    /// Opens a call with additional headers.
    pub fn call(&mut self, stream: u32, path: &str, more: &[(&str, &str)], end: bool) {
        let mut block = Vec::new();
        let names = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            ("content-type", "application/grpc"),
        ];
        for (name, value) in names.iter().chain(more) {
            block.push(0);
            for text in [name, value] {
                push_length(&mut block, text.len());
                block.extend(text.as_bytes());
            }
        }

        let mut first = true;
        for part in block.chunks(16_000) {
            let last = part.as_ptr_range().end == block.as_ptr_range().end;
            let flags = u8::from(last) * 4 + u8::from(end && first);
            self.send(if first { HEADERS } else { 9 }, flags, stream, part);
            first = false;
        }
    }

    /// Reads frames up to the first of `kind` and returns its payload, or `None` if the connection
    /// ends. Panics on a timeout.
    pub fn until(&mut self, kind: u8) -> Option<Vec<u8>> {
        std::iter::from_fn(|| self.next())
            .find(|frame| frame.kind == kind)
            .map(|frame| frame.payload)
    }

    /// Returns true while the server keeps its end open. Unread data hides a close from this end,
    /// so the kernel's table is read.
    pub fn is_held(&self) -> bool {
        let port = |address: SocketAddr| format!(":{:04X}", address.port());
        // A connection reset by the server has no peer.
        let Ok(peer) = self.0.peer_addr() else { return false };
        let (ours, theirs) = (port(self.0.local_addr().unwrap()), port(peer));
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).any(|socket| {
            let (local, remote, state) = (socket[1], socket[2], socket[3]);
            local.ends_with(&theirs) && remote.ends_with(&ours) && state == ESTABLISHED
        })
    }

    /// Reads the next frame, or returns `None` at the end of the connection.
    pub fn next(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        match self.0.read_exact(&mut head) {
            Ok(()) => {}
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset
                ) =>
            {
                return None;
            }
            Err(error) => panic!("{error}"),
        }

        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        self.0.read_exact(&mut payload).ok()?;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        Some(Frame { kind: head[3], flags: head[4], stream, payload })
    }
}

/// Appends the length of a literal header (RFC 7541, section 5.1, prefix of seven bits).
fn push_length(block: &mut Vec<u8>, length: usize) {
    if length < 127 {
        block.push(length as u8);
        return;
    }

    block.push(127);
    let mut rest = length - 127;
    while rest >= 128 {
        block.push((rest % 128) as u8 | 128);
        rest /= 128;
    }
    block.push(rest as u8);
}
