//! The Connect protocol: JSON and protocol buffers over HTTP/1.1 and HTTP/2, for the methods of
//! the descriptors.
//!
//! A request becomes one of gRPC before it is handled, and the response of gRPC becomes one of
//! Connect: see [`CallProtocol`](crate::calls::call_protocol::CallProtocol).

pub mod call;
mod code;
pub mod envelope;
pub mod error;
mod exchange;
pub mod header;
mod json;
pub mod request;
pub mod unary;
mod unique;

pub use json::without_values;
