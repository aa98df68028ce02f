//! Sign-ins that have begun: what must come back with the answer of the provider. The browser keeps
//! it, sealed, so that the answer counts in that browser alone and the server keeps nothing.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::Aead;
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use serde::{Deserialize, Serialize};

use crate::fault::Fault;

/// The time that somebody has at the provider.
pub const PENDING_TIME: Duration = Duration::from_secs(10 * 60);
/// The maximum bytes of a sealed text: several fit beside other cookies in the head of a request.
const MAX_SEALED_BYTES: usize = 1_600;
/// The size of a nonce (draft-irtf-cfrg-xchacha).
const NONCE_BYTES: usize = 24;

/// A sign-in that has begun.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Pending {
    /// The value that comes back with the code.
    pub(crate) state: String,
    /// The value that comes back in the ID token.
    pub(crate) nonce: String,
    /// The secret whose hash the provider has (RFC 7636).
    pub(crate) verifier: String,
    /// The provider.
    pub(crate) issuer: String,
    /// The seconds since 1970 at which it is too old.
    pub(crate) expires: u64,
    /// Where to lead afterwards.
    pub next: String,
    /// The id of a form to send again; empty for none.
    pub kept: String,
}

impl Pending {
    /// Whether the answer with this state is the one to this sign-in, and in time.
    pub fn is_answered_by(&self, state: &str) -> bool {
        self.state == state && seconds(SystemTime::now()) < self.expires
    }
}

/// The seconds since 1970.
pub fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Seals what browsers keep. The key lives as long as the program, as sessions do.
pub struct Seal(XChaCha20Poly1305);

impl Seal {
    /// A seal with a new key.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn random() -> Result<Self, Fault> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|_| Fault::NoRandomBytes)?;
        Ok(Self(XChaCha20Poly1305::new(&key.into())))
    }

    /// Encrypts and authenticates a sign-in that has begun.
    ///
    /// # Errors
    /// It is too long for a cookie, or the system has no random bytes.
    pub fn seal(&self, pending: &Pending) -> Result<String, Fault> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).map_err(|_| Fault::NoRandomBytes)?;
        let text = serde_json::to_vec(pending).unwrap_or_default();
        let sealed = self.0.encrypt(&XNonce::from(nonce), &*text).unwrap_or_default();
        let text = URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat());
        if text.len() <= MAX_SEALED_BYTES { Ok(text) } else { Err(Fault::TooLarge) }
    }

    /// Reads the output of [`Seal::seal`]; none for any other text.
    pub fn open(&self, text: &str) -> Option<Pending> {
        if text.len() > MAX_SEALED_BYTES {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_BYTES>()?;
        let text = self.0.decrypt(&XNonce::from(*nonce), sealed).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(expires: u64) -> Pending {
        Pending {
            state: "0.state".to_owned(),
            nonce: "nonce".to_owned(),
            verifier: "verifier".to_owned(),
            issuer: "https://sso.example".to_owned(),
            expires,
            next: "/console/".to_owned(),
            kept: String::new(),
        }
    }

    #[test]
    fn only_an_unchanged_seal_of_this_server_is_opened() {
        let (seal, other) = (Seal::random().unwrap(), Seal::random().unwrap());
        let text = seal.seal(&pending(u64::MAX)).unwrap();
        assert!(!text.contains("verifier"));
        assert!(seal.open(&text).unwrap().is_answered_by("0.state"));
        assert!(!seal.open(&text).unwrap().is_answered_by("1.state"));
        assert!(other.open(&text).is_none());
        let first = if text.starts_with('A') { "B" } else { "A" };
        for wrong in ["", "AAAA", &text[1..], &format!("{first}{}", &text[1..])] {
            assert!(seal.open(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn an_answer_has_a_time_and_a_size() {
        assert!(!pending(seconds(SystemTime::now())).is_answered_by("0.state"));
        let long = Pending { next: "a".repeat(1_200), ..pending(0) };
        assert_eq!(Seal::random().unwrap().seal(&long), Err(Fault::TooLarge));
    }
}
