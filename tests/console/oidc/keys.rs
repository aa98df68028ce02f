//! Keys that are generated, and what they sign.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use p256::ecdsa::signature::Signer;
use rsa::pkcs1v15;
use rsa::sha2::{Digest, Sha256};
use rsa::signature::SignatureEncoding;
use rsa::traits::PublicKeyParts;
use serde_json::{Value, json};

/// Bytes in base64url.
pub fn base64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A key of a provider.
pub struct Key {
    pub id: String,
    secret: Secret,
}

enum Secret {
    Rsa(Box<rsa::RsaPrivateKey>),
    P256(p256::ecdsa::SigningKey),
}

impl Key {
    pub fn rsa(id: &str) -> Self {
        let key = rsa::RsaPrivateKey::new(&mut rsa::rand_core::OsRng, 2_048).unwrap();
        Self { id: id.to_owned(), secret: Secret::Rsa(Box::new(key)) }
    }

    pub fn p256(id: &str) -> Self {
        let key = p256::ecdsa::SigningKey::random(&mut rsa::rand_core::OsRng);
        Self { id: id.to_owned(), secret: Secret::P256(key) }
    }

    pub const fn algorithm(&self) -> &'static str {
        match self.secret {
            Secret::Rsa(_) => "RS256",
            Secret::P256(_) => "ES256",
        }
    }

    /// The public half (RFC 7517).
    pub fn public(&self) -> Value {
        match &self.secret {
            Secret::Rsa(key) => json!({
                "kty": "RSA", "use": "sig", "kid": self.id,
                "n": base64(key.n().to_bytes_be()), "e": base64(key.e().to_bytes_be()),
            }),
            Secret::P256(key) => {
                let point = key.verifying_key().to_encoded_point(false);
                json!({
                    "kty": "EC", "use": "sig", "kid": self.id, "crv": "P-256",
                    "x": base64(point.x().unwrap()), "y": base64(point.y().unwrap()),
                })
            }
        }
    }

    /// The signature of a text.
    pub fn sign(&self, text: &[u8]) -> Vec<u8> {
        match &self.secret {
            Secret::Rsa(key) => {
                let key = pkcs1v15::SigningKey::<Sha256>::new(rsa::RsaPrivateKey::clone(key));
                Signer::sign(&key, text).to_vec()
            }
            Secret::P256(key) => {
                let signature: p256::ecdsa::Signature = key.sign(text);
                signature.to_bytes().to_vec()
            }
        }
    }
}

/// The code of a text by HMAC with SHA-256 (RFC 2104).
pub fn hmac(secret: &[u8], text: &[u8]) -> Vec<u8> {
    let mut key = [0; 64];
    match secret.len() {
        0..=64 => key[..secret.len()].copy_from_slice(secret),
        _ => key[..32].copy_from_slice(&Sha256::digest(secret)),
    }
    let inner = Sha256::new().chain_update(key.map(|byte| byte ^ 0x36)).chain_update(text);
    let outer = Sha256::new().chain_update(key.map(|byte| byte ^ 0x5c));
    outer.chain_update(inner.finalize()).finalize().to_vec()
}

/// The hash of a text by SHA-256.
pub fn sha256(text: &str) -> Vec<u8> {
    Sha256::digest(text).to_vec()
}
