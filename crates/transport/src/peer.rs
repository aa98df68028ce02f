//! The client of a connection: its certificate, and its caller's permit for the connection.

use std::net::SocketAddr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use tonic::Status;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::eviction::EvictionEntry;
use crate::protocol;
use polynym_access::{Caller, Permit};

/// A client's certificate, signed by a trusted authority.
#[derive(Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The subject alternative names (RFC 5280, section 4.2.1.6): `uri:…` and `dns:…`.
    pub names: Vec<String>,
    /// The expiry time.
    pub expires: SystemTime,
}

impl ClientCertificate {
    /// Parses a certificate in DER; none if it is malformed.
    pub fn parse(der: &[u8]) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let extension = certificate.subject_alternative_name().ok()?;
        let names = extension.iter().flat_map(|names| &names.value.general_names);
        let expires = u64::try_from(certificate.validity().not_after.timestamp()).unwrap_or(0);
        Some(Self {
            names: names.filter_map(prefixed_name).collect(),
            expires: SystemTime::UNIX_EPOCH + Duration::from_secs(expires),
        })
    }
}

fn prefixed_name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::URI(uri) => Some(format!("uri:{uri}")),
        GeneralName::DNSName(host) => Some(format!("dns:{host}")),
        _ => None,
    }
}

/// The client of a connection.
pub struct Peer {
    /// The address of the client, or of a proxy.
    address: Option<SocketAddr>,
    certificate: Option<ClientCertificate>,
    /// Whether the certificate is no longer valid.
    is_distrusted: AtomicBool,
    /// The entry among the connections without a valid call so far.
    unauthenticated: EvictionEntry,
    /// The permit of the connection's caller: that of its certificate, else of its first call.
    permit: OnceLock<Permit<1>>,
    /// The number of calls without a valid credential.
    refusals: AtomicU32,
}

/// The delay before a call without a valid credential is refused. It bounds the tokens that a
/// connection can try, and hides how much of a token matched.
const REFUSAL_DELAY: Duration = Duration::from_millis(100);
/// The delay after [`MAX_FAST_REFUSALS`].
const LONG_REFUSAL_DELAY: Duration = Duration::from_secs(1);
const MAX_FAST_REFUSALS: u32 = 200;

impl Peer {
    pub const fn new(
        address: Option<SocketAddr>,
        certificate: Option<ClientCertificate>,
        unauthenticated: EvictionEntry,
    ) -> Self {
        Self {
            address,
            certificate,
            is_distrusted: AtomicBool::new(false),
            unauthenticated,
            permit: OnceLock::new(),
            refusals: AtomicU32::new(0),
        }
    }

    /// The address of the client, or of a proxy.
    pub const fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Counts a call without a valid credential. Returns the delay of its refusal.
    pub fn refusal_delay(&self) -> Duration {
        let before = self.refusals.fetch_add(1, Ordering::Relaxed);
        if before < MAX_FAST_REFUSALS { REFUSAL_DELAY } else { LONG_REFUSAL_DELAY }
    }

    /// The names of the client's certificate, while it is valid.
    pub fn names(&self) -> &[String] {
        match &self.certificate {
            Some(certificate) if self.is_trusted() => &certificate.names,
            _ => &[],
        }
    }

    /// Assigns the connection to a caller, within its share of the server's `max_connections`. A
    /// connection is assigned once.
    ///
    /// # Errors
    /// The caller has its share of connections.
    pub fn assign_to(&self, caller: &Caller, max_connections: usize) -> Result<(), Status> {
        if self.permit.get().is_some() {
            return Ok(());
        }
        let counts = [(&caller.state.connections, caller.share(max_connections))];
        let permit = Permit::take(counts).map_err(|_| protocol::too_many_connections())?;
        // If two first calls arrive at once, one permit is returned.
        let _ = self.permit.set(permit);
        self.unauthenticated.remove();
        Ok(())
    }

    /// Waits until the certificate expires, then ends its use.
    pub async fn expired(&self) {
        let Some(certificate) = &self.certificate else { return std::future::pending().await };
        // The wall clock may be set meanwhile.
        while let Ok(left) = certificate.expires.duration_since(SystemTime::now()) {
            tokio::time::sleep(left.min(CLOCK_CHECK_INTERVAL)).await;
        }
        self.distrust();
    }

    /// Whether the certificate, if there is one, is valid.
    pub fn is_trusted(&self) -> bool {
        !self.is_distrusted.load(Ordering::Relaxed)
    }

    /// Ends the certificate's use.
    pub fn distrust(&self) {
        self.is_distrusted.store(true, Ordering::Relaxed);
    }

    /// Waits until the connection, without a valid call so far, must make room for another.
    pub async fn evicted(&self) {
        self.unauthenticated.evicted().await;
    }
}

/// The interval at which the wall clock is read.
const CLOCK_CHECK_INTERVAL: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_the_extension_and_not_the_subject() {
        let mut params = rcgen::CertificateParams::new(["billing.corp".to_owned()]).unwrap();
        let uri = "spiffe://corp/billing".try_into().unwrap();
        params.subject_alt_names.push(rcgen::SanType::URI(uri));
        params.distinguished_name.push(rcgen::DnType::CommonName, "admin.corp");
        params.not_after = rcgen::date_time_ymd(2031, 2, 3);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let parsed = ClientCertificate::parse(certificate.der()).unwrap();
        assert_eq!(parsed.names, ["dns:billing.corp", "uri:spiffe://corp/billing"]);
        let expires = humantime::parse_rfc3339("2031-02-03T00:00:00Z").unwrap();
        assert_eq!(parsed.expires, expires);
        assert_eq!(ClientCertificate::parse(b"x"), None);
    }
}
