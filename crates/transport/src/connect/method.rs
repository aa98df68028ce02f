//! The methods of the descriptors.

use std::collections::HashMap;
use std::sync::Arc;

use prost_reflect::{DescriptorError, DescriptorPool, MessageDescriptor, MethodDescriptor};

/// The least similarity of a path that is suggested for an unknown one.
const MIN_SIMILARITY: f64 = 0.8;
/// The maximum difference in length between an unknown path and one that is suggested: comparing
/// takes quadratic time.
const MAX_DIFFERENCE: usize = 4;

/// How many messages a method takes and returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One request and one response.
    Unary,
    /// One request and a stream of responses.
    ServerStream,
    /// A stream of requests, which clients send over gRPC or as lines.
    ClientStream,
}

/// A method.
#[derive(Debug)]
pub struct Method {
    /// The path, such as `/polynym.v1.DirectoryService/GetUser`.
    pub path: String,
    /// How many messages it takes and returns.
    pub shape: Shape,
    /// The type of its requests.
    pub input: MessageDescriptor,
    /// The type of its responses.
    pub output: MessageDescriptor,
}

/// All methods, by path.
#[derive(Debug)]
pub struct Methods(HashMap<String, Arc<Method>>);

impl Methods {
    /// The methods of all services in a set of file descriptors.
    ///
    /// # Errors
    /// The descriptors are malformed.
    pub fn new(descriptors: &[u8]) -> Result<Self, DescriptorError> {
        let pool = DescriptorPool::decode(descriptors)?;
        let methods = pool.services().flat_map(|service| service.methods().collect::<Vec<_>>());
        Ok(Self(methods.map(Method::new).map(|m| (m.path.clone(), Arc::new(m))).collect()))
    }

    /// The method of a path.
    pub fn get(&self, path: &str) -> Option<&Arc<Method>> {
        self.0.get(path)
    }

    /// The path that is most similar to an unknown one, if one is.
    pub fn nearest(&self, path: &str) -> Option<&str> {
        let near = self.0.keys().filter(|known| known.len().abs_diff(path.len()) <= MAX_DIFFERENCE);
        let similar = near.map(|known| (strsim::jaro_winkler(known, path), known));
        let nearest = similar.max_by(|one, other| one.0.total_cmp(&other.0));
        nearest.filter(|(similarity, _)| *similarity > MIN_SIMILARITY).map(|(_, known)| &**known)
    }
}

impl Method {
    fn new(method: MethodDescriptor) -> Self {
        let shape = match (method.is_client_streaming(), method.is_server_streaming()) {
            (false, false) => Shape::Unary,
            (false, true) => Shape::ServerStream,
            (true, _) => Shape::ClientStream,
        };
        Self {
            path: format!("/{}/{}", method.parent_service().full_name(), method.name()),
            shape,
            input: method.input(),
            output: method.output(),
        }
    }
}
