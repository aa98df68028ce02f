//! The messages of methods, for calls in JSON.

use prost_reflect::{MessageDescriptor, MethodDescriptor};

/// The number of messages that a method takes and returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One request and one response.
    Unary,
    /// One request and a stream of responses.
    ServerStream,
    /// A stream of requests, which clients send over gRPC or as lines.
    ClientStream,
}

/// The messages of a method, for calls in JSON.
#[derive(Debug)]
pub struct Messages {
    /// The number of messages on each side.
    pub shape: Shape,
    /// The type of its requests.
    pub input: MessageDescriptor,
    /// The type of its responses.
    pub output: MessageDescriptor,
}

impl From<MethodDescriptor> for Messages {
    fn from(method: MethodDescriptor) -> Self {
        let shape = match (method.is_client_streaming(), method.is_server_streaming()) {
            (false, false) => Shape::Unary,
            (false, true) => Shape::ServerStream,
            (true, _) => Shape::ClientStream,
        };
        Self { shape, input: method.input(), output: method.output() }
    }
}
