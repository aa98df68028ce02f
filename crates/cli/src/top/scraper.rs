//! Reads a server's metrics over HTTP.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use http::header::{AUTHORIZATION, HOST};
use http::{HeaderValue, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, DEFAULT_VERSIONS, RootCertStore};

use crate::client::connection::{Credential, NO_CERTIFICATE};
use crate::config::{Caller, Top};
use crate::failure::Failure;
use polynym_exposition::Scrape;

/// The maximum size of a response.
const MAX_RESPONSE_BYTES: usize = 8 << 20;

/// Reads the metrics of one server.
pub struct Scraper {
    settings: Top,
    authorization: Option<HeaderValue>,
    tls: Option<TlsConnector>,
}

impl Scraper {
    /// Reads the files that the settings name.
    pub fn new(settings: Top) -> Result<Self, Failure> {
        let authorization = Credential::read(settings.caller.token_file.as_deref())?.header();
        let tls = match settings.metrics.scheme_str() {
            Some("https") => Some(connector(&settings.caller)?),
            _ => None,
        };
        Ok(Self { settings, authorization, tls })
    }

    /// The current metrics.
    pub async fn scrape(&self) -> Result<Scrape, String> {
        tokio::time::timeout(self.settings.caller.timeout, self.fetch())
            .await
            .unwrap_or_else(|_| Err("no answer within the --timeout".to_owned()))
    }

    async fn fetch(&self) -> Result<Scrape, String> {
        let uri = &self.settings.metrics;
        let host = uri.host().unwrap_or_default();
        let port = uri.port_u16().unwrap_or(if self.tls.is_some() { 443 } else { 80 });
        let name = host.trim_start_matches('[').trim_end_matches(']');
        let stream = TcpStream::connect((name, port)).await.map_err(without_port)?;
        match &self.tls {
            None => self.get(stream, uri).await,
            Some(tls) => {
                let server = ServerName::try_from(name.to_owned()).map_err(|e| e.to_string())?;
                let encrypted = tls.connect(server, stream).await.map_err(|e| e.to_string())?;
                self.get(encrypted, uri).await
            }
        }
    }

    async fn get(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        uri: &Uri,
    ) -> Result<Scrape, String> {
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(without_port)?;
        tokio::spawn(connection);
        let host = uri.authority().map_or("", |authority| authority.as_str());
        let mut builder = Request::get("/metrics").header(HOST, host);
        if let Some(header) = &self.authorization {
            builder = builder.header(AUTHORIZATION, header);
        }
        let request = builder.body(Empty::<Bytes>::new()).map_err(|error| error.to_string())?;
        let response = sender.send_request(request).await.map_err(without_port)?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let message = "the metrics require a monitor's or admin's credential: add \
                    --token-file, or --cert and --key";
                return Err(message.to_owned());
            }
            other => return Err(without_port(format!("the answer is {other}"))),
        }
        let body = Limited::new(response.into_body(), MAX_RESPONSE_BYTES).collect().await;
        let bytes = body.map_err(|error| error.to_string())?.to_bytes();
        Ok(Scrape::parse(&String::from_utf8_lossy(&bytes)))
    }
}

/// The error of an address at which no server has its metrics.
fn without_port(error: impl Display) -> String {
    format!(
        "{error}\n  what to do: start the server with --admin-listen 127.0.0.1:9464, or name that \
         address of a server with --metrics"
    )
}

/// Trusts the given certificate authorities or those of the system, and presents the caller's
/// certificate.
fn connector(caller: &Caller) -> Result<TlsConnector, Failure> {
    let mut roots = RootCertStore::empty();
    match &caller.ca {
        Some(path) => {
            let failure = |error: &dyn ToString| setting_failure("--ca", path, error);
            for certificate in CertificateDer::pem_file_iter(path).map_err(|e| failure(&e))? {
                let parsed = certificate.map_err(|error| failure(&error))?;
                roots.add(parsed).map_err(|error| failure(&error))?;
            }
            if roots.is_empty() {
                return Err(failure(&NO_CERTIFICATE));
            }
        }
        None => {
            let _ = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(DEFAULT_VERSIONS)
        .map_err(|error| Failure::Other(error.to_string()))?
        .with_root_certificates(roots);
    let config = match caller.cert.as_ref().zip(caller.key.as_ref()) {
        Some((certificate, key)) => {
            let failure = |error: &dyn ToString| setting_failure("--cert", certificate, error);
            let chain = CertificateDer::pem_file_iter(certificate)
                .and_then(Iterator::collect)
                .map_err(|error| failure(&error))?;
            let private_key = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| setting_failure("--key", key, &error))?;
            builder.with_client_auth_cert(chain, private_key).map_err(|error| failure(&error))?
        }
        None => builder.with_no_client_auth(),
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

fn setting_failure(setting: &str, path: &Path, error: &dyn ToString) -> Failure {
    Failure::Other(format!("{setting} {}: {}", path.display(), error.to_string()))
}
