//! TLS of the server: versions 1.2 and 1.3.

use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use arc_swap::ArcSwap;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use tokio_rustls::rustls::{DEFAULT_VERSIONS, RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;

use crate::peer::ClientCertificate;
use polynym_access::reload::{self, Content};

/// The protocol over TLS (ALPN, RFC 7301).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// For gRPC. Clients must offer it.
    Http2,
    /// For operators' pages.
    Http1,
    /// For the HTTP listener, which takes both.
    Any,
}

const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

impl Protocol {
    const fn names(self) -> &'static [&'static [u8]] {
        match self {
            Self::Http2 => &[HTTP2],
            Self::Http1 => &[HTTP1],
            Self::Any => &[HTTP2, HTTP1],
        }
    }
}

/// The gauge of invalid TLS files.
pub const CERTIFICATE_BROKEN: (&str, &str) = (
    "polynym_certificate_broken",
    "1 while the TLS files are invalid and the previous certificate stays in use",
);

/// The gauge of the certificate's remaining days.
pub const CERTIFICATE_DAYS_LEFT: (&str, &str) =
    ("polynym_certificate_days_left", "Days until the server's certificate expires");

/// The TLS files of a server, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
    /// The authorities of client certificates, if they are requested.
    pub client_authorities: Option<PathBuf>,
    /// Whether clients must have a certificate.
    pub client_required: bool,
    /// The protocol of the connections.
    pub protocol: Protocol,
}

impl TlsFiles {
    fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.certificate, &self.key].into_iter().chain(&self.client_authorities)
    }

    fn contents(&self) -> Vec<Content> {
        self.paths().map(|path| reload::content(path)).collect()
    }
}

/// The TLS configuration of a server, reloaded when its files change.
#[derive(Clone)]
pub struct Tls {
    files: TlsFiles,
    /// The contents of the files when they were first read.
    initial: Vec<Content>,
    config: Arc<ArcSwap<ServerConfig>>,
    /// The content of the file of client authorities.
    authorities: watch::Sender<Option<Content>>,
    /// The expiry time of the server's certificate, in seconds since 1970.
    expires: Arc<AtomicU64>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// A file is unreadable or malformed, or the key does not match the certificate.
    pub fn from_files(files: TlsFiles) -> Result<Self, String> {
        let initial = files.contents();
        Ok(Self {
            config: Arc::new(ArcSwap::from_pointee(server_config(&files, &initial)?)),
            authorities: watch::Sender::new(initial.get(2).cloned()),
            expires: Arc::new(AtomicU64::new(expiry(&initial))),
            files,
            initial,
        })
    }

    /// Reloads the files in a loop. New connections get the new certificate; one without its key
    /// changes nothing.
    pub async fn reload(&self) -> Infallible {
        let files = self.files.clone();
        reload::watch(self.initial.clone(), move || files.contents(), |now| self.apply(now)).await
    }

    fn apply(&self, contents: &[Content]) {
        let config = server_config(&self.files, contents);
        metrics::gauge!(CERTIFICATE_BROKEN.0).set(u8::from(config.is_err()));
        match config {
            Ok(config) => {
                tracing::info!("reloaded the TLS files");
                self.config.store(Arc::new(config));
                self.expires.store(expiry(contents), Ordering::Relaxed);
                let authorities = contents.get(2).cloned();
                self.authorities.send_if_modified(|current| {
                    let is_new = *current != authorities;
                    *current = authorities;
                    is_new
                });
            }
            Err(fault) => tracing::error!(
                fault,
                "the TLS files are invalid: the previous certificate stays in use"
            ),
        }
    }

    /// The seconds until the server's certificate expires; negative once it has.
    pub fn seconds_left(&self) -> f64 {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.expires.load(Ordering::Relaxed) as f64 - now.as_secs_f64()
    }

    /// Performs the handshake. Also returns a receiver of changes of the client authorities.
    ///
    /// # Errors
    /// The client does not speak TLS, does not offer HTTP/2, or lacks a certificate.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<Accepted> {
        let authorities = self.authorities.subscribe();
        let stream = TlsAcceptor::from(self.config.load_full()).accept(stream).await?;
        let session = stream.get_ref().1;
        // The handshake accepts a client that offers no protocol at all.
        let is_http2 = session.alpn_protocol() == Some(HTTP2);
        if self.files.protocol == Protocol::Http2 && !is_http2 {
            return Err(io::Error::other("the client does not offer h2"));
        }
        let certificate = session
            .peer_certificates()
            .and_then(|chain| chain.first())
            .and_then(|der| ClientCertificate::parse(der));
        Ok(Accepted { stream, certificate, authorities })
    }
}

/// An encrypted connection.
pub struct Accepted {
    pub stream: TlsStream<TcpStream>,
    pub certificate: Option<ClientCertificate>,
    /// Receives changes of the client authorities.
    pub authorities: watch::Receiver<Option<Content>>,
}

fn server_config(files: &TlsFiles, contents: &[Content]) -> Result<ServerConfig, String> {
    let pems: Vec<_> = files
        .paths()
        .zip(contents)
        .map(|(path, content)| match content {
            Ok(pem) => Ok((path, pem)),
            Err(error) => Err(file_error(path, error)),
        })
        .collect::<Result<_, _>>()?;
    let [(path, certificate), (key_path, key), authorities @ ..] = &pems[..] else {
        return Err("a file is missing".to_owned());
    };
    let chain = certificates(path, certificate)?;
    let private_key =
        PrivateKeyDer::from_pem_slice(key).map_err(|error| file_error(key_path, &error))?;

    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(DEFAULT_VERSIONS)
        .map_err(|error| error.to_string())?;
    let with_client_auth = match authorities {
        [(path, pem), ..] => {
            let verifier = client_verifier(path, pem, provider, files.client_required)?;
            builder.with_client_cert_verifier(verifier)
        }
        [] => builder.with_no_client_auth(),
    };
    let mut config = with_client_auth
        .with_single_cert(chain, private_key)
        .map_err(|error| file_error(path, &error))?;
    config.alpn_protocols = files.protocol.names().iter().map(|name| name.to_vec()).collect();
    if !authorities.is_empty() {
        // A resumed session would keep a certificate that is no longer valid.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(config)
}

/// Verifies client certificates.
fn client_verifier(
    path: &Path,
    pem: &[u8],
    provider: Arc<CryptoProvider>,
    required: bool,
) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, pem)? {
        roots.add(certificate).map_err(|error| file_error(path, &error))?;
    }
    let strict = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let builder = if required { strict } else { strict.allow_unauthenticated() };
    builder.build().map_err(|error| file_error(path, &error))
}

fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match chain {
        Ok(chain) if chain.is_empty() => Err(file_error(path, &"contains no certificate")),
        chain => chain.map_err(|error| file_error(path, &error)),
    }
}

fn file_error(path: &Path, error: &dyn ToString) -> String {
    format!("{}: {}", path.display(), error.to_string())
}

/// The expiry time of the first certificate of the first file, in seconds since 1970.
fn expiry(contents: &[Content]) -> u64 {
    contents
        .first()
        .and_then(|content| CertificateDer::from_pem_slice(content.as_ref().ok()?).ok())
        .and_then(|der| ClientCertificate::parse(&der))
        .and_then(|certificate| certificate.expires.duration_since(SystemTime::UNIX_EPOCH).ok())
        .map_or(0, |expires| expires.as_secs())
}
