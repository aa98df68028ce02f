//! The methods that are served: a row each, found once for a call by its path.

pub(crate) mod line_format;
pub(crate) mod messages;

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::{Request, Response};
use prost_reflect::{DescriptorError, DescriptorPool};
use tonic::body::Body;

use self::line_format::LineMethod;
use self::messages::Messages;
use crate::protocol;
use crate::request_body::RequestBody;
use polynym_access::Role;

/// The maximum request of a method that is not served, in bytes.
const MAX_UNKNOWN_BYTES: usize = 4 << 10;
/// The least similarity of a path that is suggested for an unknown one.
const MIN_SIMILARITY: f64 = 0.8;
/// The maximum difference in length between an unknown path and one that is suggested: comparing
/// takes quadratic time.
const MAX_DIFFERENCE: usize = 4;

/// Executes the calls of a method.
pub type Handler =
    Box<dyn Fn(Request<RequestBody>) -> BoxFuture<'static, Response<Body>> + Send + Sync>;

/// The credential that a method requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// A credential of this role, or of a higher one.
    Role(Role),
    /// A credential of any role.
    Credential,
    /// None.
    Nothing,
}

/// The kind of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodKind {
    /// Takes no permit, as it must answer under any load.
    Probe,
    /// Only reads.
    Read,
    /// May write.
    Mutation,
    /// Opens long-lived streams.
    Stream {
        /// The maximum number of open streams, of which a caller has half.
        limit: usize,
        /// Whether its streams come to an end by themselves, as exports do and watches do not.
        is_finite: bool,
    },
}

/// A method: a row of the table of a server.
pub struct Method {
    /// The service, such as `polynym.v1.DirectoryService`.
    pub service: &'static str,
    /// The name, such as `GetUser`.
    pub name: &'static str,
    /// The credential that a call needs.
    pub requirement: Requirement,
    /// The kind.
    pub kind: MethodKind,
    /// Whether a call may compute for long, so that it runs in steps.
    pub is_scan: bool,
    /// The size of the largest request message, in bytes.
    pub max_message_bytes: usize,
    /// The form of its calls with lines, if it has one.
    pub lines: Option<&'static LineMethod>,
    /// Executes its calls.
    pub handler: Handler,
}

impl Method {
    /// A method that is no scan and has no form with lines.
    pub const fn new(
        service: &'static str,
        name: &'static str,
        requirement: Requirement,
        kind: MethodKind,
        max_message_bytes: usize,
        handler: Handler,
    ) -> Self {
        let (is_scan, lines) = (false, None);
        Self { service, name, requirement, kind, is_scan, max_message_bytes, lines, handler }
    }

    /// Whether a call may write, so that it goes on if its caller leaves.
    pub fn is_mutation(&self) -> bool {
        self.kind == MethodKind::Mutation
    }
}

/// A method in the table of a server.
pub struct Row {
    /// The method.
    pub method: Method,
    /// Its number, by which it is counted.
    pub index: usize,
    /// Its messages; none if it is served over gRPC alone.
    pub messages: Option<Arc<Messages>>,
}

impl Deref for Row {
    type Target = Method;

    fn deref(&self) -> &Method {
        &self.method
    }
}

/// The table of a server.
pub struct Methods {
    /// By paths such as `/polynym.v1.DirectoryService/GetUser`.
    rows: HashMap<String, Arc<Row>>,
    unknown: Arc<Row>,
}

impl Methods {
    /// A table of `methods`, of which those in a set of file descriptors can be called over HTTP.
    ///
    /// # Errors
    /// The descriptors are malformed.
    pub fn new(methods: Vec<Method>, descriptors: &[u8]) -> Result<Self, DescriptorError> {
        let pool = DescriptorPool::decode(descriptors)?;
        let messages = |method: &Method| {
            let service = pool.get_service_by_name(method.service)?;
            let described = service.methods().find(|described| described.name() == method.name);
            described.map(|described| Arc::new(described.into()))
        };
        let services = methods.iter().map(|method| format!("/{}/", method.service)).collect();
        let unknown = Row { index: methods.len(), method: unknown(services), messages: None };
        let rows = methods.into_iter().enumerate().map(|(index, method)| {
            let path = format!("/{}/{}", method.service, method.name);
            let messages = messages(&method);
            (path, Arc::new(Row { method, index, messages }))
        });
        Ok(Self { rows: rows.collect(), unknown: Arc::new(unknown) })
    }

    /// The row of a path: that of unknown methods if it has none of its own.
    pub fn get(&self, path: &str) -> &Arc<Row> {
        self.rows.get(path).unwrap_or(&self.unknown)
    }

    /// The path over HTTP that is most similar to an unknown one, if one is.
    pub fn nearest(&self, path: &str) -> Option<&str> {
        let over_http = self.rows.iter().filter(|(_, row)| row.messages.is_some());
        let near =
            over_http.filter(|(known, _)| known.len().abs_diff(path.len()) <= MAX_DIFFERENCE);
        let similar = near.map(|(known, _)| (strsim::jaro_winkler(known, path), known));
        let nearest = similar.max_by(|one, other| one.0.total_cmp(&other.0));
        nearest.filter(|(similarity, _)| *similarity > MIN_SIMILARITY).map(|(_, known)| &**known)
    }
}

/// The method of all paths that are not served, beside `services`, which are paths without methods.
fn unknown(services: Vec<String>) -> Method {
    let handler: Handler = Box::new(move |request| {
        let path = request.uri().path();
        let status = match services.iter().any(|service| path.starts_with(service)) {
            true => protocol::unknown_method(),
            false => protocol::unknown_service(),
        };
        Box::pin(async move { status.into_http() })
    });
    let (requirement, kind) = (Requirement::Credential, MethodKind::Probe);
    Method::new("", "unknown", requirement, kind, MAX_UNKNOWN_BYTES, handler)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_without_a_row_are_unknown() {
        let method = Method { service: "a.B", name: "Get", ..unknown(Vec::new()) };
        let methods = Methods::new(vec![method], &[]).unwrap();
        assert_eq!((methods.get("/a.B/Get").name, methods.get("/a.B/Get").index), ("Get", 0));
        for path in ["/a.B/Other", "/a.B/", "/a.C/Get", "a.B/Get", ""] {
            assert_eq!((methods.get(path).name, methods.get(path).index), ("unknown", 1), "{path}");
        }
        assert!(methods.nearest("/a.B/Gett").is_none(), "it is served over gRPC alone");
    }
}
