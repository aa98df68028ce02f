//! Certificates of servers and clients, and an authority that issues them.

use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion,
};

use crate::server::Server;

/// The time limit of each read.
const TIMEOUT: Duration = Duration::from_secs(60);

/// An authority, and a server's certificate of it, in files.
pub struct Authority {
    folder: TempDir,
    issuer: Mutex<Issuer>,
}

type Issuer = CertifiedIssuer<'static, KeyPair>;

impl Authority {
    /// Makes an authority and the certificate of a server.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Self { folder, issuer: Mutex::new(issuer()) };
        authority.renew();
        authority
    }

    /// Makes a new authority and a new certificate, in the same files.
    pub fn renew(&self) {
        *self.issuer.lock().unwrap() = issuer();
        fs::write(self.path("ca.pem"), self.issuer.lock().unwrap().pem()).unwrap();
        let names = ["127.0.0.1", "localhost"].map(str::to_owned).to_vec();
        self.issue("server", CertificateParams::new(names).unwrap());
    }

    /// Makes a certificate and its key, in `<name>.pem` and `<name>.key`.
    pub fn issue(&self, name: &str, params: CertificateParams) {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &*self.issuer.lock().unwrap()).unwrap();
        fs::write(self.path(&format!("{name}.pem")), certificate.pem()).unwrap();
        fs::write(self.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }

    /// The path of a file.
    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Starts a server with sample users and TLS.
    pub fn serve(&self) -> Server {
        let (certificate, key) = (self.path("server.pem"), self.path("server.key"));
        Server::start(&["--sample", "--tls-cert", &certificate, "--tls-key", &key])
    }

    /// Shakes hands as a client with these versions and protocols, and returns the protocol.
    pub fn greet(
        &self,
        server: &Server,
        versions: &[&'static SupportedProtocolVersion],
        protocols: &[&str],
    ) -> Result<Option<Vec<u8>>, std::io::Error> {
        let (client, _) = self.handshake(server, versions, protocols)?;
        Ok(client.alpn_protocol().map(<[u8]>::to_vec))
    }

    /// Shakes hands and returns the connection.
    pub fn handshake(
        &self,
        server: &Server,
        versions: &[&'static SupportedProtocolVersion],
        protocols: &[&str],
    ) -> Result<(ClientConnection, TcpStream), std::io::Error> {
        let mut roots = RootCertStore::empty();
        let ca = CertificateDer::from_pem_file(PathBuf::from(self.path("ca.pem"))).unwrap();
        roots.add(ca).unwrap();
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let name = "localhost".try_into().unwrap();
        let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut stream = TcpStream::connect(server.url.trim_start_matches("https://")).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        while client.is_handshaking() {
            client.complete_io(&mut stream)?;
        }
        Ok((client, stream))
    }
}

fn issuer() -> Issuer {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}
