//! Long imports of small lines, each in a DATA frame of its own, as gRPC's C core and its clients
//! in Python, Ruby and PHP send them.

use std::io::Write;

use polynym_proto::v1;
use prost::Message;

use super::raw::{DATA, END, HEADERS, Raw, SETTINGS, WINDOW_UPDATE};
use super::store::{TestStore, tests_on_store};
use crate::calls::{handle, identity};

const LINES: i64 = 4_000;
const IMPORT: &str = "/polynym.v1.AdminService/ImportUsers";
/// The flag of a frame of settings that accepts those of the other side.
const ACK: u8 = 1;
/// The setting of the initial window of streams (RFC 9113, section 6.5.2).
const INITIAL_WINDOW: u16 = 4;

tests_on_store! {
    long_imports_of_small_lines_complete
}

/// Two imports on a connection whose client sends as fast as the server's windows permit.
fn long_imports_of_small_lines_complete(store: &TestStore) {
    let server = store.serve(&[]);
    let mut sender = Sender::new(Raw::with_window(&server, 1 << 20));
    for stream in [1, 3] {
        sender.raw.call(stream, IMPORT, &[], false);
        let options = v1::import_users_request::Options {
            tenant: "default".to_owned(),
            validate_only: true,
            ..Default::default()
        };
        let options = Some(options);
        sender.queue(stream, &v1::ImportUsersRequest { options, ..Default::default() }, 0);
    }
    for line in 1..=LINES {
        for stream in [1, 3] {
            let identities = vec![identity(handle(&format!("u{line}")))];
            let user = Some(v1::User { identities, ..Default::default() });
            let request = v1::ImportUsersRequest { line, user, ..Default::default() };
            let flags = if line == LINES { END } else { 0 };
            sender.queue(stream, &request, flags);
        }
    }
    sender.flush();
    while sender.ended < 2 {
        sender.read();
    }
    for stream in [1, 3] {
        let last = sender.last_message(stream);
        assert_eq!(last.progress.unwrap().created, LINES, "stream {stream}");
    }
}

/// Sends frames within the windows of the server.
struct Sender {
    raw: Raw,
    /// The frames that wait to be written together.
    waiting: Vec<u8>,
    /// The windows of the connection and of streams 1 and 3.
    windows: [i64; 3],
    /// The bytes of the answers on streams 1 and 3.
    answers: [Vec<u8>; 2],
    /// The streams that have ended.
    ended: usize,
}

impl Sender {
    fn new(mut raw: Raw) -> Self {
        let settings = raw.until(SETTINGS).unwrap();
        let initial = settings.chunks(6).find_map(|setting| {
            let (name, value) = setting.split_first_chunk::<2>()?;
            let is_window = u16::from_be_bytes(*name) == INITIAL_WINDOW;
            is_window.then(|| u32::from_be_bytes(value.try_into().unwrap()))
        });
        raw.send(SETTINGS, ACK, 0, &[]);
        let stream = initial.unwrap_or(65_535).into();
        let windows = [65_535, stream, stream];
        Self { raw, waiting: Vec::new(), windows, answers: Default::default(), ended: 0 }
    }

    /// Queues a message in one frame, and waits for the window if there is none.
    fn queue(&mut self, stream: u32, message: &v1::ImportUsersRequest, flags: u8) {
        let message = message.encode_to_vec();
        let payload = [&[0], &(message.len() as u32).to_be_bytes()[..], &message].concat();
        let index = stream.div_ceil(2) as usize;
        while self.windows[0].min(self.windows[index]) < payload.len() as i64 {
            self.flush();
            self.read();
        }
        self.windows[0] -= payload.len() as i64;
        self.windows[index] -= payload.len() as i64;
        self.waiting.extend(&(payload.len() as u32).to_be_bytes()[1..]);
        self.waiting.extend([DATA, flags]);
        self.waiting.extend(stream.to_be_bytes());
        self.waiting.extend(payload);
    }

    fn flush(&mut self) {
        // If the server closes the connection, the next read finds why.
        let _ = self.raw.0.write_all(&std::mem::take(&mut self.waiting));
    }

    fn read(&mut self) {
        let frame = self.raw.next().expect("the server keeps the connection");
        let index = frame.stream.div_ceil(2) as usize;
        match frame.kind {
            WINDOW_UPDATE => {
                let more = u32::from_be_bytes(frame.payload.try_into().unwrap());
                self.windows[index] += i64::from(more);
            }
            DATA => self.answers[index - 1].extend(frame.payload),
            HEADERS => self.ended += usize::from(frame.flags & END),
            super::GOAWAY => panic!("{:?}", frame.payload.escape_ascii().to_string()),
            _ => {}
        }
    }

    /// The last message of an answer.
    fn last_message(&self, stream: u32) -> v1::ImportUsersResponse {
        let mut rest = &self.answers[stream.div_ceil(2) as usize - 1][..];
        let mut last = None;
        while let Some((prefix, after)) = rest.split_first_chunk::<5>() {
            let length = u32::from_be_bytes(prefix[1..].try_into().unwrap()) as usize;
            last = Some(v1::ImportUsersResponse::decode(&after[..length]).unwrap());
            rest = &after[length..];
        }
        last.unwrap()
    }
}
