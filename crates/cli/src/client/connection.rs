//! A connection to a server, with TLS and the caller's credential.

use std::error::Error;
use std::iter::successors;
use std::path::Path;

use http::HeaderValue;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{self, Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Request, Status};

use crate::config::{Client, Purpose};
use crate::failure::Failure;
use polynym_access::Token;

/// The flow-control window: an export of many megabytes must not wait for window updates.
const WINDOW_BYTES: u32 = 1 << 20;
/// That of the connection. Half of it is the budget for small messages that wait, by which HTTP/2
/// would end the connection: a window of results in messages of 52 bytes or more fits.
const CONNECTION_WINDOW_BYTES: u32 = 8 << 20;

/// A connection whose calls carry the caller's credential.
pub type Connection = InterceptedService<Channel, CallHeaders>;

/// Connects to the server. The connection itself sets no deadline for calls.
pub async fn connect(settings: &Client) -> Result<Connection, Failure> {
    let failure = |error| unreachable(&settings.server, &error);
    let mut endpoint = Endpoint::from_shared(settings.server.clone()).map_err(failure)?;
    if endpoint.uri().scheme_str() == Some("https") {
        endpoint = endpoint.tls_config(tls(settings)?).map_err(failure)?;
    }
    let headers = CallHeaders::new(settings)?;
    let channel = endpoint
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .connect_timeout(settings.timeout)
        .connect()
        .await
        .map_err(failure)?;
    Ok(InterceptedService::new(channel, headers))
}

/// Trusts the given certificate authorities or those of the system, and presents the caller's
/// certificate.
fn tls(settings: &Client) -> Result<ClientTlsConfig, Failure> {
    let failure = |setting: &str, path: &Path, error: &dyn std::fmt::Display| {
        Failure::Other(format!("{setting} {}: {error}", path.display()))
    };
    let read = |setting: &str, path: &Path| {
        std::fs::read(path).map_err(|error| failure(setting, path, &error))
    };
    let config = match &settings.ca {
        Some(path) => {
            let pem = read("--ca", path)?;
            if CertificateDer::from_pem_slice(&pem).is_err() {
                return Err(failure("--ca", path, &NO_CERTIFICATE));
            }
            ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem))
        }
        None => ClientTlsConfig::new().with_native_roots(),
    };
    let Some((certificate, key)) = &settings.certificate else { return Ok(config) };
    let identity = Identity::from_pem(read("--cert", certificate)?, read("--key", key)?);
    Ok(config.identity(identity))
}

/// The error of a file without a certificate.
pub const NO_CERTIFICATE: &str = "the file has no certificate";

/// The headers of every call.
#[derive(Clone)]
pub struct CallHeaders {
    credential: Credential,
    purpose: Vec<(&'static str, MetadataValue<Ascii>)>,
}

impl CallHeaders {
    fn new(settings: &Client) -> Result<Self, Failure> {
        let Purpose { reason, operation_id } = &settings.purpose;
        let texts = [
            (REASON_HEADER, "--reason", reason),
            (OPERATION_HEADER, "--operation-id", operation_id),
        ];
        let given = texts.into_iter().filter(|(_, _, text)| !text.is_empty());
        let header = |(name, flag, text): (_, &str, &String)| {
            let encoded = utf8_percent_encode(text, ENCODED).to_string();
            let wrong = |_| Failure::Usage(format!("{flag} has characters that cannot be sent"));
            Ok::<_, Failure>((name, encoded.parse().map_err(wrong)?))
        };
        Ok(Self {
            credential: Credential::read(settings.token_file.as_deref())?,
            purpose: given.map(header).collect::<Result<_, _>>()?,
        })
    }
}

impl Interceptor for CallHeaders {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let mut request = self.credential.call(request)?;
        for (name, value) in &self.purpose {
            request.metadata_mut().insert(*name, value.clone());
        }
        Ok(request)
    }
}

/// The header with the reason of a call, percent-encoded.
const REASON_HEADER: &str = "polynym-reason";
/// The header with the id of the operation that a call belongs to.
const OPERATION_HEADER: &str = "polynym-operation-id";
/// The characters of a reason that are sent as `%` and two hexadecimal digits, with all others that
/// are not ASCII.
const ENCODED: &AsciiSet = &CONTROLS.add(b'%');

/// The `authorization` header of every call, if there is a token.
#[derive(Clone)]
pub struct Credential(Option<MetadataValue<Ascii>>);

impl Credential {
    /// The header for HTTP.
    pub fn header(&self) -> Option<HeaderValue> {
        HeaderValue::from_bytes(self.0.as_ref()?.as_encoded_bytes()).ok()
    }

    /// Reads the token in a file.
    pub fn read(file: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = file else { return Ok(Self(None)) };
        let failure = |why: &str| Failure::Other(format!("--token-file {}: {why}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| failure(&error.to_string()))?;
        let token = text.trim();
        if Token::parse(token).is_none() {
            return Err(failure("the file has no token, as `polynym token create` prints it"));
        }
        let mut header: MetadataValue<Ascii> =
            format!("Bearer {token}").parse().map_err(|_| failure("the token cannot be sent"))?;
        header.set_sensitive(true);
        Ok(Self(Some(header)))
    }
}

impl Interceptor for Credential {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(header) = &self.0 {
            request.metadata_mut().insert("authorization", header.clone());
        }
        Ok(request)
    }
}

/// The first cause of an error.
pub fn root_cause(error: &dyn Error) -> Option<String> {
    successors(error.source(), |&cause| cause.source()).last().map(ToString::to_string)
}

fn unreachable(server: &str, error: &transport::Error) -> Failure {
    let cause = root_cause(error).unwrap_or_else(|| error.to_string());
    let advice = match () {
        () if cause.contains("UnknownIssuer") => {
            "name the server's certificate authority with --ca"
        }
        () if cause.contains("not valid for name") || cause.contains("NotValidForName") => {
            "name the server in --server as its certificate does, or have its name certified"
        }
        () => "start a server with `polynym serve`, or name another with --server",
    };
    Failure::Other(format!("cannot reach {server} ({cause})\n  what to do: {advice}"))
}
