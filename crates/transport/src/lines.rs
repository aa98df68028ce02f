//! Streams as files of lines, which curl can send and receive.
//!
//! A method with lines takes them as its requests, or one message as JSON, and answers with lines.
//! Its [`LineFormat`] defines what a line means.

pub mod call;
mod exchange;
mod request;
mod response;

pub use crate::connect::without_values;
pub use crate::method::line_format::{
    EVENTS, InvalidQuery, LineForm, LineFormat, LineMethod, LineReader, LineRequest, LineWriter,
    NDJSON, Parsed, RequestLine,
};
pub use request::MAX_LINE_BYTES;
