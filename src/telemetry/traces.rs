//! The export of traces to an OpenTelemetry collector, by OTLP over gRPC. Its settings beside those
//! of the server are the variables of OpenTelemetry, which its library reads.

use std::env;
use std::fs;

use opentelemetry::KeyValue;
use opentelemetry_otlp::{
    OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, SpanExporter,
    WithExportConfig, WithTonicConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::resource::EnvResourceDetector;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tonic::transport::{Certificate, ClientTlsConfig, Identity};

/// The name of the service, unless the environment has another one.
const SERVICE: &str = "polynym";
const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";
/// The ends of the names of variables with files, which the library does not read.
const CERTIFICATE: &str = "CERTIFICATE";
const CLIENT_CERTIFICATE: &str = "CLIENT_CERTIFICATE";
const CLIENT_KEY: &str = "CLIENT_KEY";

/// The exporter of traces to the collector at `endpoint`, or at that of OpenTelemetry's variables;
/// none without both. It exports the `share` of traces that start here, and the traces that callers
/// sample. Needs the runtime until its shutdown.
///
/// # Errors
/// The endpoint, or a value or a file that a variable names, is invalid.
pub fn export_traces(
    endpoint: Option<&str>,
    share: f64,
) -> Result<Option<SdkTracerProvider>, String> {
    let endpoints = [OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, OTEL_EXPORTER_OTLP_ENDPOINT];
    let named = endpoints.into_iter().find_map(variable);
    if endpoint.is_none() && named.is_none() {
        return Ok(None);
    }
    let failure = |error: &dyn ToString| format!("cannot export traces: {}", error.to_string());
    let mut builder = SpanExporter::builder().with_tonic();
    // A system without authorities has none to offer.
    if endpoint.or(named.as_deref()).is_some_and(|url| url.starts_with("https:")) {
        builder = builder.with_tls_config(tls().map_err(|error| failure(&error))?);
    }
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    let exporter = builder.build().map_err(|error| failure(&error))?;
    let sampler = Sampler::parent_based(Sampler::TraceIdRatioBased(share));
    let traces = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_sampler(sampler)
        .with_resource(resource())
        .build();
    Ok(Some(traces))
}

/// The attributes of the server: its name and version, unless the environment has others.
fn resource() -> Resource {
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let resource = Resource::builder_empty()
        .with_service_name(SERVICE)
        .with_attribute(version)
        .with_detector(Box::new(EnvResourceDetector::new()));
    match variable(SERVICE_NAME) {
        Some(name) => resource.with_service_name(name).build(),
        None => resource.build(),
    }
}

/// The encryption of connections to a collector by `https`: with the authorities of a file or of
/// the system, and perhaps a certificate.
fn tls() -> Result<ClientTlsConfig, String> {
    let tls = match file(CERTIFICATE)? {
        Some(authorities) => {
            ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authorities))
        }
        None => ClientTlsConfig::new().with_native_roots(),
    };
    Ok(match (file(CLIENT_CERTIFICATE)?, file(CLIENT_KEY)?) {
        (Some(certificate), Some(key)) => tls.identity(Identity::from_pem(certificate, key)),
        (None, None) => tls,
        _ => {
            return Err(format!(
                "OTEL_EXPORTER_OTLP_{CLIENT_CERTIFICATE} and OTEL_EXPORTER_OTLP_{CLIENT_KEY} \
                 need each other: set both or none"
            ));
        }
    })
}

/// The content of the file that a variable names: that for traces, or else that for all signals.
fn file(end: &str) -> Result<Option<Vec<u8>>, String> {
    let names = [format!("OTEL_EXPORTER_OTLP_TRACES_{end}"), format!("OTEL_EXPORTER_OTLP_{end}")];
    let named = names.iter().find_map(|name| Some((name, variable(name)?)));
    let read = |(name, path): (&String, String)| {
        fs::read(&path).map_err(|error| format!("{name}: {path}: {error}"))
    };
    named.map(read).transpose()
}

/// The value of a variable; an empty one is absent.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}
