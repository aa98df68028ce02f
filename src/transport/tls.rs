//! TLS on the server's side: TLS 1.2 and 1.3, and one protocol alone.

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

use super::peer::ClientCertificate;
use crate::reload::{self, Content};

/// The protocol over TLS (ALPN, RFC 7301).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// That of gRPC, which clients must offer.
    Http2,
    /// That of operators' pages.
    Http1,
}

impl Protocol {
    const fn name(self) -> &'static [u8] {
        match self {
            Self::Http2 => b"h2",
            Self::Http1 => b"http/1.1",
        }
    }
}

/// The gauge of a certificate that cannot be used: its name, and what it shows.
pub const CERTIFICATE_BROKEN: (&str, &str) = (
    "polynym_certificate_broken",
    "1 while the certificate's files cannot be used, and the certificate of before counts",
);

/// The gauge of the certificate's age.
pub const CERTIFICATE_DAYS_LEFT: (&str, &str) =
    ("polynym_certificate_days_left", "Days until the server's certificate expires");

/// The files of a server's TLS: PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, with those that lead to its authority.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// The authorities of clients' certificates, if these are asked for.
    pub client_authorities: Option<PathBuf>,
    /// Whether clients need a certificate.
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

/// The server's end of encrypted connections.
#[derive(Clone)]
pub struct Tls {
    files: TlsFiles,
    /// The contents of the files at the start.
    first: Vec<Content>,
    config: Arc<ArcSwap<ServerConfig>>,
    /// The content of the file of clients' authorities.
    authorities: watch::Sender<Option<Content>>,
    /// The time at which the server's certificate expires, in seconds since 1970.
    expires: Arc<AtomicU64>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// A file cannot be read or is malformed, or the key is not the certificate's.
    pub fn from_files(files: TlsFiles) -> Result<Self, String> {
        let first = files.contents();
        let config = config(&files, &first)?;
        let expires = Arc::new(AtomicU64::new(expiry(&first)));
        let authorities = watch::Sender::new(first.get(2).cloned());
        let config = Arc::new(ArcSwap::from_pointee(config));
        Ok(Self { files, first, config, authorities, expires })
    }

    /// Reads the files again in a loop. New connections get the new certificate; a certificate
    /// whose key has not come yet changes nothing.
    pub async fn reload(&self) -> Infallible {
        let files = self.files.clone();
        reload::watch(self.first.clone(), move || files.contents(), |now| self.take(now)).await
    }

    fn take(&self, contents: &[Content]) {
        let config = config(&self.files, contents);
        metrics::gauge!(CERTIFICATE_BROKEN.0).set(u8::from(config.is_err()));
        match config {
            Ok(config) => {
                tracing::info!("new TLS files are used");
                self.config.store(Arc::new(config));
                self.expires.store(expiry(contents), Ordering::Relaxed);
                let authorities = contents.get(2).cloned();
                self.authorities.send_if_modified(|known| {
                    let is_new = *known != authorities;
                    *known = authorities;
                    is_new
                });
            }
            Err(fault) => tracing::error!(
                fault,
                "the TLS files cannot be used: the certificate of before counts on"
            ),
        }
    }

    /// The seconds until the server's certificate expires; negative once it has.
    pub fn seconds_left(&self) -> f64 {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.expires.load(Ordering::Relaxed) as f64 - now.as_secs_f64()
    }

    /// Shakes hands with a client. Also returns the changes of clients' authorities from now on.
    ///
    /// # Errors
    /// The client does not speak TLS, does not offer HTTP/2, or lacks a certificate.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<Accepted> {
        let authorities = self.authorities.subscribe();
        let stream = TlsAcceptor::from(self.config.load_full()).accept(stream).await?;
        let session = stream.get_ref().1;
        // A client that offers no protocol at all is not refused by the handshake.
        let is_http2 = session.alpn_protocol() == Some(Protocol::Http2.name());
        if self.files.protocol == Protocol::Http2 && !is_http2 {
            return Err(io::Error::other("the client does not offer h2"));
        }
        let certificate = session.peer_certificates().and_then(|chain| chain.first());
        let certificate = certificate.and_then(|der| ClientCertificate::parse(der));
        Ok(Accepted { stream, certificate, authorities })
    }
}

/// An encrypted connection.
pub struct Accepted {
    pub stream: TlsStream<TcpStream>,
    pub certificate: Option<ClientCertificate>,
    /// Changes where clients are to be of other authorities.
    pub authorities: watch::Receiver<Option<Content>>,
}

fn config(files: &TlsFiles, contents: &[Content]) -> Result<ServerConfig, String> {
    let read = |(path, content): (&PathBuf, &Content)| -> Result<_, String> {
        let pem = content.clone().map_err(|error| fault(path, &error))?;
        Ok((path.clone(), pem))
    };
    let all: Vec<_> = files.paths().zip(contents).map(read).collect::<Result<_, _>>()?;
    let [(path, certificate), (key_path, key), authorities @ ..] = &all[..] else {
        return Err("a file is missing".to_owned());
    };
    let chain = certificates(path, certificate)?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| fault(key_path, &error))?;

    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(DEFAULT_VERSIONS)
        .map_err(|error| error.to_string())?;
    let builder = match authorities {
        [(path, pem), ..] => {
            let verifier = verifier(path, pem, provider, files.client_required)?;
            builder.with_client_cert_verifier(verifier)
        }
        [] => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(chain, key).map_err(|error| fault(path, &error))?;
    config.alpn_protocols = vec![files.protocol.name().to_vec()];
    if !authorities.is_empty() {
        // A resumed session would keep a certificate that counts no longer.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(config)
}

/// The check of clients' certificates.
fn verifier(
    path: &Path,
    pem: &[u8],
    provider: Arc<CryptoProvider>,
    required: bool,
) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, pem)? {
        roots.add(certificate).map_err(|error| fault(path, &error))?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let builder = if required { builder } else { builder.allow_unauthenticated() };
    builder.build().map_err(|error| fault(path, &error))
}

fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match chain {
        Ok(chain) if chain.is_empty() => Err(fault(path, &"there is no certificate in it")),
        chain => chain.map_err(|error| fault(path, &error)),
    }
}

fn fault(path: &Path, error: &dyn ToString) -> String {
    format!("{}: {}", path.display(), error.to_string())
}

/// The time at which the first certificate of the first file expires, in seconds since 1970.
fn expiry(contents: &[Content]) -> u64 {
    let expiry = || {
        let pem = contents.first()?.as_ref().ok()?;
        let der = CertificateDer::from_pem_slice(pem).ok()?;
        let expires = ClientCertificate::parse(&der)?.expires;
        Some(expires.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs())
    };
    expiry().unwrap_or_default()
}
