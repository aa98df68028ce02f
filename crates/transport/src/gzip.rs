//! Compressed messages. A decompressed message has the limits of one that was sent as it is.

use std::io::Read;

use bytes::Bytes;
use flate2::read::GzDecoder;
use http::HeaderMap;
use tonic::Status;

use crate::budgets::state::Reservation;
use crate::protocol;
use crate::request_body::{ENCODING, PREFIX, reserve};

/// The bytes that are decompressed at a time. They are reserved, and then other tasks can run.
const CHUNK_BYTES: usize = 16 << 10;

/// Whether the messages of a request are compressed with gzip.
pub fn is_gzip(headers: &HeaderMap) -> bool {
    headers.get(ENCODING).is_some_and(|encoding| encoding == "gzip")
}

/// The message with its prefix, decompressed if its flag says that it is compressed.
pub async fn decompressed(
    sent: Bytes,
    limit: usize,
    reservation: &mut Reservation,
) -> Result<Bytes, Status> {
    if sent.first() != Some(&1) {
        return Ok(sent);
    }
    let mut decoder = GzDecoder::new(sent.get(PREFIX..).unwrap_or_default());
    let mut message = vec![0; PREFIX];
    loop {
        let begin = message.len();
        message.resize(begin + CHUNK_BYTES, 0);
        let read = decoder.read(&mut message[begin..]);
        let read = read.map_err(|_| protocol::message_invalid("it is not compressed with gzip"))?;
        message.truncate(begin + read);
        if read == 0 {
            break;
        }
        reserve(reservation, read)?;
        let length = message.len() - PREFIX;
        if length > limit {
            return Err(protocol::message_too_large(limit, length));
        }
        if length > CHUNK_BYTES {
            tokio::task::yield_now().await;
        }
    }
    let length = (message.len() - PREFIX) as u32;
    message[1..PREFIX].copy_from_slice(&length.to_be_bytes());
    Ok(message.into())
}
