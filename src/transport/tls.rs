//! TLS on the server's side: TLS 1.2 and 1.3, and HTTP/2 as the only protocol (ALPN, RFC 7301).

use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{DEFAULT_VERSIONS, ServerConfig};
use tokio_rustls::server::TlsStream;

/// The protocol that clients must offer and take.
const PROTOCOL: &[u8] = b"h2";

/// The server's end of encrypted connections.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

impl Tls {
    /// Reads the certificate, with those that lead to its authority, and its key: PEM files.
    ///
    /// # Errors
    /// A file cannot be read or is malformed, or the key is not the certificate's.
    pub fn from_files(certificate: &Path, key: &Path) -> Result<Self, String> {
        let fault = |path: &Path, error: &dyn ToString| {
            format!("{}: {}", path.display(), error.to_string())
        };
        let chain = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| fault(certificate, &error))?;
        if chain.is_empty() {
            return Err(fault(certificate, &"there is no certificate in it"));
        }
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| fault(key, &error))?;

        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(DEFAULT_VERSIONS)
            .map_err(|error| error.to_string())?
            .with_no_client_auth()
            .with_single_cert(chain, secret)
            .map_err(|error| fault(certificate, &error))?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Shakes hands with a client.
    ///
    /// # Errors
    /// The client does not speak TLS, or does not offer HTTP/2.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let stream = self.0.accept(stream).await?;
        // A client that offers no protocol at all is not refused by the handshake.
        if stream.get_ref().1.alpn_protocol() != Some(PROTOCOL) {
            return Err(io::Error::other("the client does not offer h2"));
        }
        Ok(stream)
    }
}
