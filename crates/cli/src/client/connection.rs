//! A connection to a server, with TLS and the caller's credential.

use std::error::Error;
use std::iter::successors;
use std::path::Path;

use http::HeaderValue;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tonic::metadata::{Ascii, MetadataKey, MetadataValue};

use crate::config::{Caller, Client as Settings, Purpose};
use crate::failure::Failure;
use polynym_access::Token;
use polynym_client::purpose::{OPERATION_ID, REASON, encode};
use polynym_client::{Builder, Client, ConnectError, Error as CallError};

/// Connects to the server. Each call has the time of `--timeout`.
pub async fn connect(settings: &Settings, purpose: &Purpose) -> Result<Client, Failure> {
    check_files(settings)?;
    let Caller { timeout, token_file, ca, cert, key } = &settings.caller;
    let timeout = *timeout;
    let mut builder = Builder::new(&settings.server)
        .timeout(timeout)
        .wait_for_ready(false)
        .endpoint(move |endpoint| endpoint.connect_timeout(timeout))
        // The user chose the address, and the server warns of plain text when it starts.
        .insecure(true);
    if let Some(path) = token_file {
        builder = builder.token_file(path);
    }
    if let Some(path) = ca {
        builder = builder.ca(path);
    }
    if let Some((certificate, key)) = cert.as_ref().zip(key.as_ref()) {
        builder = builder.certificate(certificate, key);
    }
    for (name, value) in purpose_headers(purpose)? {
        builder = builder.header(MetadataKey::from_static(name), value);
    }
    builder.connect().await.map_err(|error| match error {
        ConnectError::Unreachable(error) => unreachable(&settings.server, &error),
        other => Failure::Other(other.to_string()),
    })
}

/// Checks the files of the settings, so that an error names the setting.
fn check_files(settings: &Settings) -> Result<(), Failure> {
    let Caller { token_file, ca, cert, key, .. } = &settings.caller;
    Credential::read(token_file.as_deref())?;
    if !settings.server.starts_with("https://") {
        return Ok(());
    }
    let failure = |setting: &str, path: &Path, error: &dyn std::fmt::Display| {
        Failure::Other(format!("{setting} {}: {error}", path.display()))
    };
    let read = |setting: &str, path: &Path| {
        std::fs::read(path).map_err(|error| failure(setting, path, &error))
    };
    if let Some(path) = ca
        && CertificateDer::from_pem_slice(&read("--ca", path)?).is_err()
    {
        return Err(failure("--ca", path, &NO_CERTIFICATE));
    }
    for (setting, path) in [("--cert", cert), ("--key", key)] {
        path.as_ref().map(|path| read(setting, path)).transpose()?;
    }
    Ok(())
}

/// The error of a file without a certificate.
pub const NO_CERTIFICATE: &str = "the file has no certificate";

/// The headers with the purpose of the calls.
fn purpose_headers(
    purpose: &Purpose,
) -> Result<Vec<(&'static str, MetadataValue<Ascii>)>, Failure> {
    let texts = [
        (REASON, "--reason", &purpose.reason),
        (OPERATION_ID, "--operation-id", &purpose.operation_id),
    ];
    let given = texts.into_iter().filter(|(_, _, text)| !text.is_empty());
    let header = |(name, flag, text): (_, &str, &String)| {
        let wrong = |_| Failure::Usage(format!("{flag} has characters that cannot be sent"));
        Ok((name, encode(text).map_err(wrong)?))
    };
    given.map(header).collect()
}

/// The `authorization` header, if there is a token.
pub struct Credential(Option<HeaderValue>);

impl Credential {
    /// The header for HTTP.
    pub fn header(self) -> Option<HeaderValue> {
        self.0
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
        let header = HeaderValue::from_str(&format!("Bearer {token}"));
        let mut header = header.map_err(|_| failure("the token cannot be sent"))?;
        header.set_sensitive(true);
        Ok(Self(Some(header)))
    }
}

/// The first cause of an error.
pub fn root_cause(error: &dyn Error) -> Option<String> {
    successors(error.source(), |&cause| cause.source()).last().map(ToString::to_string)
}

fn unreachable(server: &str, error: &CallError) -> Failure {
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
