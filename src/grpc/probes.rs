//! The methods of health and reflection.

use std::io;

use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::HealthReporter;
use tonic_reflection::server::Builder as Reflection;

use super::handlers::of_service;
use super::health::HealthApi;
use super::methods::WATCH;
use polynym_access::Role;
use polynym_proto::DESCRIPTORS;
use polynym_transport::method::{Method, MethodKind, Requirement};

/// The maximum request, in bytes.
const MAX_BYTES: usize = 4 << 10;
/// The maximum number of open streams of reflection.
const MAX_REFLECTIONS: usize = 64;

/// The methods of health, which need no credential, and of reflection, which
/// is for all who may call the API.
///
/// # Errors
/// The descriptors of the API are malformed.
pub fn methods(reporter: &HealthReporter) -> io::Result<Vec<Method>> {
    let health = HealthServer::new(HealthApi::new(reporter)).max_decoding_message_size(MAX_BYTES);
    let health = |name, kind| {
        let handler = of_service(health.clone());
        Method::new("grpc.health.v1.Health", name, Requirement::Nothing, kind, MAX_BYTES, handler)
    };
    let v1 = reflection().build_v1().map_err(io::Error::other)?;
    let v1alpha = reflection().build_v1alpha().map_err(io::Error::other)?;
    let reflection = |service, handler| {
        let kind = MethodKind::Stream { limit: MAX_REFLECTIONS, is_finite: false };
        Method::new(
            service,
            "ServerReflectionInfo",
            Requirement::Role(Role::Resolver),
            kind,
            MAX_BYTES,
            handler,
        )
    };
    Ok(vec![
        health("Check", MethodKind::Probe),
        health("List", MethodKind::Probe),
        health("Watch", WATCH),
        reflection(
            "grpc.reflection.v1.ServerReflection",
            of_service(v1.max_decoding_message_size(MAX_BYTES)),
        ),
        reflection(
            "grpc.reflection.v1alpha.ServerReflection",
            of_service(v1alpha.max_decoding_message_size(MAX_BYTES)),
        ),
    ])
}

fn reflection() -> Reflection<'static> {
    Reflection::configure()
        .register_encoded_file_descriptor_set(DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .include_reflection_service(false)
}
