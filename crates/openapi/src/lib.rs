//! The OpenAPI document of the API over HTTP, made from the descriptors of `proto/` and their
//! comments. So it has every method that is served.

#![forbid(unsafe_code)]

mod comments;
mod component;
mod errors;
mod ndjson;
mod operations;
mod reach;
mod schemas;

use std::collections::BTreeMap;

use prost_reflect::{DescriptorError, DescriptorPool};
use serde_json::{Map, Value, json};

use comments::Comments;
use component::PACKAGE;
use polynym_proto::DESCRIPTORS;
use schemas::Schemas;

const DESCRIPTION: &str = "\
A user directory where one user has many names: an email address, a handle, a phone number, an \
account at another provider, the URL of a profile. `ResolveIdentity` finds the user by any of them.

Every method is a `POST` with a JSON body, by the [Connect protocol](https://connectrpc.com/docs/protocol). \
The JSON is that of [protocol buffers](https://protobuf.dev/programming-guides/json/): names are in \
lowerCamelCase, 64-bit integers are strings, and fields with their default value are left out of \
responses. A request with an unknown field fails. The same methods take `application/proto`, and \
gRPC on its own port.

A mutation with a `requestId`, a UUID that the caller generates, can be retried safely: it is \
applied once.";

/// The document, for a server whose paths begin with `prefix`, such as `/polynym`; an empty one for
/// none.
///
/// # Errors
/// The descriptors are invalid.
pub fn document(prefix: &str) -> Result<Value, DescriptorError> {
    let pool = DescriptorPool::decode(DESCRIPTORS)?;
    let comments = Comments::new(&pool);
    let services: Vec<_> =
        pool.services().filter(|service| service.package_name() == PACKAGE).collect();
    let schemas = Schemas::new(&comments, &reach::reach(&services));

    let (mut tags, mut paths) = (Vec::new(), BTreeMap::new());
    for service in &services {
        let description = comments.of_service(service);
        tags.push(json!({ "name": service.name(), "description": description }));
        for method in service.methods() {
            let path = format!("/{}/{}", service.full_name(), method.name());
            paths.insert(path, json!({ "post": operations::operation(&method, &comments) }));
        }
    }
    let url = if prefix.is_empty() { "/" } else { prefix };

    Ok(json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Polynym",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "A user directory where one user has many names.",
            "description": DESCRIPTION,
            "license": { "name": "Apache 2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": url, "description": "This server." }],
        "security": [{ "bearer": [] }, {}],
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": all_schemas(schemas),
            "parameters": operations::parameters(),
            "responses": errors::responses(),
            "headers": errors::headers(),
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token that an operator made with `polynym token create`. \
                        A server without credentials needs none.",
                },
            },
        },
    }))
}

/// The schemas of the API's messages, and those of the protocol.
fn all_schemas(schemas: Schemas) -> Map<String, Value> {
    let mut all = schemas.into_map();
    all.extend(errors::schemas());
    all.extend(ndjson::schemas());
    all
}

#[cfg(test)]
mod tests;
