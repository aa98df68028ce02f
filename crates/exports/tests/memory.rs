//! Huge files need little memory. A program of its own: it measures the process.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::io::Read;

use polynym_exports::{ExportFormat, ReadOptions, open};

/// A file that repeats its middle.
struct Endless {
    parts: [Vec<u8>; 3],
    left: usize,
    part: usize,
    at: usize,
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.parts[self.part].len() {
            self.at = 0;
            match self.part {
                1 if self.left > 0 => self.left -= 1,
                2 => {
                    self.at = self.parts[2].len();
                    return Ok(0);
                }
                _ => self.part += 1,
            }
        }
        let rest = &self.parts[self.part][self.at..];
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        self.at += length;
        Ok(length)
    }
}

/// Settings and deep lists of 40 MiB and users of 40 MiB are read with less than 30 MiB.
#[test]
fn huge_files_need_little_memory() {
    let before = resident();
    let nested = "[".repeat(1 << 10).into_bytes();
    let settings = Endless {
        parts: [b"{\"clients\": ".to_vec(), nested, b"".to_vec()],
        left: 40 << 10,
        part: 0,
        at: 0,
    };
    let mut users = open(ExportFormat::Keycloak, settings, &ReadOptions::default()).unwrap();
    assert!(users.next_user().unwrap_err().contains("cut off"));
    let user = format!("{{\"id\":\"a\",\"traits\":{{\"x\":\"{}\"}}}},", "y".repeat(1 << 20));
    let list = Endless {
        parts: [b"[".to_vec(), user.into_bytes(), b"7]".to_vec()],
        left: 40,
        part: 0,
        at: 0,
    };
    let mut users = open(ExportFormat::Kratos, list, &ReadOptions::default()).unwrap();
    let entries = std::iter::from_fn(|| users.next_user().unwrap());
    let (read, rejected): (Vec<_>, Vec<_>) =
        entries.map(|entry| entry.user.is_ok()).partition(|is_read| *is_read);
    assert_eq!((read.len(), rejected.len()), (41, 1));
    let grown = resident().saturating_sub(before);
    assert!(grown < 30 << 10, "{grown} KiB");
}

/// The memory of this process in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}
