//! The key with which the servers of a store encrypt tokens.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use sha2::{Digest, Sha256};

use crate::error::Error;

/// The size of a nonce (draft-irtf-cfrg-xchacha).
const NONCE_BYTES: usize = 24;
/// The maximum size of a token.
const MAX_TOKEN_BYTES: usize = 32 << 10;

/// A secret of a store, the same for all of its servers. Tokens are encrypted, because positions
/// reveal how much other tenants change, and authenticated, so that nobody can forge a position.
#[derive(Clone)]
pub struct TokenKey {
    bytes: [u8; Self::BYTES],
    cipher: XChaCha20Poly1305,
}

impl TokenKey {
    /// The size of a key.
    pub const BYTES: usize = 32;

    /// The key with these bytes.
    pub fn new(bytes: [u8; Self::BYTES]) -> Self {
        Self { bytes, cipher: XChaCha20Poly1305::new(&bytes.into()) }
    }

    /// A new key.
    ///
    /// # Errors
    /// [`Error::Internal`] if the operating system has no random bytes.
    pub fn random() -> Result<Self, Error> {
        let mut bytes = [0; Self::BYTES];
        getrandom::fill(&mut bytes).map_err(|error| Error::Internal(error.into()))?;
        Ok(Self::new(bytes))
    }

    /// The bytes, to store them.
    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.bytes
    }

    /// Encrypts a message of this kind, as text. Equal messages have equal texts: the nonce is a
    /// hash of the key and the message, as a synthetic initialization vector (RFC 5297) is.
    pub(crate) fn seal(&self, kind: u64, message: &[u8]) -> String {
        let aad = kind.to_le_bytes();
        let hasher = Sha256::new().chain_update(self.bytes).chain_update(aad).chain_update(message);
        let hash: [u8; 32] = hasher.finalize().into();
        let mut nonce = [0; NONCE_BYTES];
        nonce.copy_from_slice(&hash[..NONCE_BYTES]);

        let payload = Payload { msg: message, aad: &aad };
        // Only a message of 256 GiB is too long.
        let sealed = self.cipher.encrypt(&XNonce::from(nonce), payload).unwrap_or_default();
        URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat())
    }

    /// Reads the output of [`TokenKey::seal`]; none for any other text.
    pub(crate) fn open(&self, kind: u64, text: &str) -> Option<Vec<u8>> {
        if text.len() > MAX_TOKEN_BYTES {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_BYTES>()?;
        let payload = Payload { msg: sealed, aad: &kind.to_le_bytes() };
        self.cipher.decrypt(&XNonce::from(*nonce), payload).ok()
    }
}

/// Shows no secret.
impl std::fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_key_and_kind_open_a_token() {
        let key = TokenKey::new([7; 32]);
        let token = key.seal(1, b"event 4711");
        assert_eq!(key.open(1, &token).as_deref(), Some(&b"event 4711"[..]));
        assert_eq!((key.open(2, &token), TokenKey::new([8; 32]).open(1, &token)), (None, None));
        assert_eq!(token, key.seal(1, b"event 4711"));
    }

    #[test]
    fn tokens_of_near_positions_have_nothing_in_common() {
        let key = TokenKey::random().unwrap();
        let [one, other] = [b"event 4711", b"event 4712"].map(|message| key.seal(1, message));
        let same = one.bytes().zip(other.bytes()).filter(|(one, other)| one == other).count();
        assert!(same < one.len() / 4, "{one} {other}");
    }
}
