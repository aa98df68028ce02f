//! Reading a server's metrics over HTTP.

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

use super::exposition::Scrape;
use crate::cli::client::Credential;
use crate::cli::failure::Failure;
use crate::config::Top;

/// The largest answer that is read.
const MOST: usize = 8 << 20;

/// Reads the metrics of one server.
pub struct Scraper {
    settings: Top,
    authorization: Option<HeaderValue>,
    tls: Option<TlsConnector>,
}

impl Scraper {
    /// Reads the files that the settings name.
    pub fn new(settings: Top) -> Result<Self, Failure> {
        let authorization = Credential::read(settings.token_file.as_deref())?.header();
        let tls = match settings.metrics.scheme_str() {
            Some("https") => Some(connector(&settings)?),
            _ => None,
        };
        Ok(Self { settings, authorization, tls })
    }

    /// The present metrics; else why there are none.
    pub async fn scrape(&self) -> Result<Scrape, String> {
        let scrape = tokio::time::timeout(self.settings.timeout, self.fetch()).await;
        scrape.unwrap_or_else(|_| Err("no answer within the --timeout".to_owned()))
    }

    async fn fetch(&self) -> Result<Scrape, String> {
        let uri = &self.settings.metrics;
        let host = uri.host().unwrap_or_default();
        let port = uri.port_u16().unwrap_or(if self.tls.is_some() { 443 } else { 80 });
        let name = host.trim_start_matches('[').trim_end_matches(']');
        let stream = TcpStream::connect((name, port)).await.map_err(|error| error.to_string())?;
        match &self.tls {
            None => self.ask(stream, uri).await,
            Some(tls) => {
                let name = ServerName::try_from(name.to_owned()).map_err(|e| e.to_string())?;
                let stream = tls.connect(name, stream).await.map_err(|e| e.to_string())?;
                self.ask(stream, uri).await
            }
        }
    }

    async fn ask(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        uri: &Uri,
    ) -> Result<Scrape, String> {
        let fault = |error: hyper::Error| error.to_string();
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(fault)?;
        tokio::spawn(connection);
        let host = uri.authority().map_or("", |authority| authority.as_str());
        let mut request = Request::get("/metrics").header(HOST, host);
        if let Some(header) = &self.authorization {
            request = request.header(AUTHORIZATION, header);
        }
        let request = request.body(Empty::<Bytes>::new()).map_err(|error| error.to_string())?;
        let response = sender.send_request(request).await.map_err(fault)?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let message = "the metrics need an admin's token or certificate: give \
                    --token-file, or --cert and --key";
                return Err(message.to_owned());
            }
            other => return Err(format!("the answer is {other}: is this an --admin-listen?")),
        }
        let body = Limited::new(response.into_body(), MOST).collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        Ok(Scrape::parse(&String::from_utf8_lossy(&body)))
    }
}

/// Trusts the authorities of a file, or those of the system, and shows the caller's certificate.
fn connector(settings: &Top) -> Result<TlsConnector, Failure> {
    let fault = |error: &dyn ToString| Failure::Other(format!("--ca: {}", error.to_string()));
    let mut roots = RootCertStore::empty();
    match &settings.ca {
        Some(path) => {
            let all = CertificateDer::pem_file_iter(path).map_err(|error| fault(&error))?;
            for certificate in all {
                let certificate = certificate.map_err(|error| fault(&error))?;
                roots.add(certificate).map_err(|error| fault(&error))?;
            }
            if roots.is_empty() {
                return Err(own_fault("--ca", path, &"there is no certificate in it"));
            }
        }
        None => {
            let _ = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(DEFAULT_VERSIONS)
        .map_err(|error| fault(&error))?
        .with_root_certificates(roots);
    let config = match &settings.certificate {
        Some((certificate, key)) => {
            let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
            let chain = chain.map_err(|error| own_fault("--cert", certificate, &error))?;
            let pair = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| own_fault("--key", key, &error))?;
            let config = builder.with_client_auth_cert(chain, pair);
            config.map_err(|error| own_fault("--cert", certificate, &error))?
        }
        None => builder.with_no_client_auth(),
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

fn own_fault(setting: &str, path: &Path, error: &dyn ToString) -> Failure {
    Failure::Other(format!("{setting} {}: {}", path.display(), error.to_string()))
}
