//! The other side of a connection: the certificate that it showed, and the place that its caller
//! takes.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use tonic::Status;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::protocol;
use super::strangers::Stranger;
use crate::access::{Caller, Usage};

/// A client's certificate, which a trusted authority has signed.
#[derive(Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// Its subject alternative names (RFC 5280, section 4.2.1.6): `uri:…` and `dns:…`.
    pub names: Vec<String>,
    /// The time at which it expires.
    pub expires: SystemTime,
}

impl ClientCertificate {
    /// Reads a certificate in DER; none where it is malformed.
    pub fn parse(der: &[u8]) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let name = |name: &GeneralName<'_>| match name {
            GeneralName::URI(uri) => Some(format!("uri:{uri}")),
            GeneralName::DNSName(host) => Some(format!("dns:{host}")),
            _ => None,
        };
        let names = certificate.subject_alternative_name().ok()?;
        let names = names.map(|names| names.value.general_names.iter().filter_map(name).collect());
        let expires = u64::try_from(certificate.validity().not_after.timestamp()).unwrap_or(0);
        Some(Self {
            names: names.unwrap_or_default(),
            expires: SystemTime::UNIX_EPOCH + Duration::from_secs(expires),
        })
    }
}

/// The other side of a connection.
pub struct Peer {
    certificate: Option<ClientCertificate>,
    /// Whether the certificate counts no longer.
    is_over: AtomicBool,
    /// The connection's place among those of callers that are not known yet.
    stranger: Stranger,
    /// The connection's place among those of its caller: that of its certificate, else of its first
    /// call.
    place: OnceLock<Place>,
    /// The calls without a valid credential.
    refused: AtomicU32,
}

/// The delay of refusals for want of a credential, at first and after [`FEW`] of them. It bounds
/// the tokens that a connection can try, and hides how far a token got.
const DELAYS: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];
const FEW: u32 = 200;

impl Peer {
    pub const fn new(certificate: Option<ClientCertificate>, stranger: Stranger) -> Self {
        Self {
            certificate,
            is_over: AtomicBool::new(false),
            stranger,
            place: OnceLock::new(),
            refused: AtomicU32::new(0),
        }
    }

    /// Counts a call without a valid credential. Returns the delay of its refusal.
    pub fn refusal_delay(&self) -> Duration {
        let before = self.refused.fetch_add(1, Ordering::Relaxed);
        if before < FEW { DELAYS[0] } else { DELAYS[1] }
    }

    /// The names of the client's certificate, while it counts.
    pub fn names(&self) -> &[String] {
        match &self.certificate {
            Some(certificate) if !self.is_over.load(Ordering::Relaxed) => &certificate.names,
            _ => &[],
        }
    }

    /// Counts the connection for a caller, which may have its share of the server's `all`
    /// connections. A connection that belongs to a caller already stays that one's.
    ///
    /// # Errors
    /// The caller has as many connections as it may have.
    pub fn belongs_to(&self, caller: &Caller, all: usize) -> Result<(), Status> {
        if self.place.get().is_some() {
            return Ok(());
        }
        let place = Place::take(caller, all).ok_or_else(protocol::too_many_connections)?;
        // Where two first calls are under way at once, one place is given back.
        let _ = self.place.set(place);
        self.stranger.leave();
        Ok(())
    }

    /// Returns once the certificate has expired. From then on it does not count.
    pub async fn expired(&self) {
        let Some(certificate) = &self.certificate else { return std::future::pending().await };
        // The wall clock may be set while this waits.
        while let Ok(left) = certificate.expires.duration_since(SystemTime::now()) {
            tokio::time::sleep(left.min(CLOCK_CHECK)).await;
        }
        self.distrust();
    }

    /// Ends the certificate's use.
    pub fn distrust(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Returns once the connection must make room for others, as it has made no valid call.
    pub async fn evicted(&self) {
        self.stranger.evicted().await;
    }
}

/// The pause between two looks at the wall clock.
const CLOCK_CHECK: Duration = Duration::from_secs(10);

/// A connection's place among those of its caller.
struct Place(Arc<Usage>);

impl Place {
    fn take(caller: &Caller, all: usize) -> Option<Self> {
        let is_free = caller.usage.connections.add(caller.share(all));
        is_free.then(|| Self(caller.usage.clone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.connections.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_extension_and_not_the_subject() {
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
