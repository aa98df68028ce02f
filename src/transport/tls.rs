//! TLS on the server's side: TLS 1.2 and 1.3, and HTTP/2 as the only protocol (ALPN, RFC 7301).

use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{DEFAULT_VERSIONS, ServerConfig};
use tokio_rustls::server::TlsStream;

use crate::reload::{self, Content};

/// The protocol that clients must offer and take.
const PROTOCOL: &[u8] = b"h2";

/// The gauge of a certificate that cannot be used: its name, and what it shows.
pub const CERTIFICATE_BROKEN: (&str, &str) = (
    "polynym_certificate_broken",
    "1 while the certificate's files cannot be used, and the certificate of before counts",
);

/// The server's end of encrypted connections.
#[derive(Clone)]
pub struct Tls {
    files: [PathBuf; 2],
    /// The contents of the files at the start.
    first: [Content; 2],
    config: Arc<ArcSwap<ServerConfig>>,
}

impl Tls {
    /// Reads the certificate, with those that lead to its authority, and its key: PEM files.
    ///
    /// # Errors
    /// A file cannot be read or is malformed, or the key is not the certificate's.
    pub fn from_files(certificate: PathBuf, key: PathBuf) -> Result<Self, String> {
        let files = [certificate, key];
        let first = contents(&files);
        let config = Arc::new(ArcSwap::from_pointee(config(&files, &first)?));
        Ok(Self { files, first, config })
    }

    /// Reads the files again in a loop. New connections get the new certificate; a certificate
    /// whose key has not come yet changes nothing.
    pub async fn reload(&self) -> Infallible {
        let files = self.files.clone();
        reload::watch(self.first.clone(), move || contents(&files), |now| self.take(now)).await
    }

    fn take(&self, contents: &[Content; 2]) {
        let config = config(&self.files, contents);
        metrics::gauge!(CERTIFICATE_BROKEN.0).set(u8::from(config.is_err()));
        match config {
            Ok(config) => {
                tracing::info!("a new certificate is used");
                self.config.store(Arc::new(config));
            }
            Err(fault) => tracing::error!(
                fault,
                "the certificate cannot be used: the certificate of before counts on"
            ),
        }
    }

    /// Shakes hands with a client.
    ///
    /// # Errors
    /// The client does not speak TLS, or does not offer HTTP/2.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let stream = TlsAcceptor::from(self.config.load_full()).accept(stream).await?;
        // A client that offers no protocol at all is not refused by the handshake.
        if stream.get_ref().1.alpn_protocol() != Some(PROTOCOL) {
            return Err(io::Error::other("the client does not offer h2"));
        }
        Ok(stream)
    }
}

fn contents(files: &[PathBuf; 2]) -> [Content; 2] {
    [reload::content(&files[0]), reload::content(&files[1])]
}

fn config(files: &[PathBuf; 2], contents: &[Content; 2]) -> Result<ServerConfig, String> {
    let fault =
        |n: usize, error: &dyn ToString| format!("{}: {}", files[n].display(), error.to_string());
    let [certificate, key] = contents;
    let certificate = certificate.as_ref().map_err(|error| fault(0, error))?;
    let key = key.as_ref().map_err(|error| fault(1, error))?;
    let chain: Vec<_> = CertificateDer::pem_slice_iter(certificate)
        .collect::<Result<_, _>>()
        .map_err(|error| fault(0, &error))?;
    if chain.is_empty() {
        return Err(fault(0, &"there is no certificate in it"));
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| fault(1, &error))?;

    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(DEFAULT_VERSIONS)
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| fault(0, &error))?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(config)
}
