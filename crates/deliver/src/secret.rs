//! Secrets, and the signatures of Standard Webhooks by them.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// In front of a secret's text.
const PREFIX: &str = "whsec_";
/// The bytes of a secret.
const MIN_BYTES: usize = 24;
const MAX_BYTES: usize = 64;
/// The form of a secret, for errors.
const FORM: &str = "write whsec_ and the base64 of 24 to 64 random bytes";

/// A secret that a server and a receiver share. It is in no log.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Reads the text of a secret.
    ///
    /// # Errors
    /// It has another form. The error does not repeat it.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let encoded = text.strip_prefix(PREFIX).ok_or(FORM)?;
        // A longer text is not decoded.
        if encoded.len() > MAX_BYTES.div_ceil(3) * 4 {
            return Err(FORM);
        }
        let bytes = STANDARD.decode(encoded).map_err(|_| FORM)?;
        match (MIN_BYTES..=MAX_BYTES).contains(&bytes.len()) {
            true => Ok(Self(bytes)),
            false => Err(FORM),
        }
    }

    /// The signature of a message.
    fn sign(&self, message_id: &str, timestamp: i64, body: &[u8]) -> Option<String> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        mac.update(format!("{message_id}.{timestamp}.").as_bytes());
        mac.update(body);
        Some(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The header `webhook-signature` of a message: one signature by each secret.
pub fn signatures(secrets: &[Secret], message_id: &str, timestamp: i64, body: &[u8]) -> String {
    let signed = secrets.iter().filter_map(|secret| secret.sign(message_id, timestamp, body));
    signed.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification of Standard Webhooks.
    const EXAMPLE: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    #[test]
    fn a_signature_is_that_of_the_specification() {
        let secret = Secret::parse(EXAMPLE).unwrap();
        let (id, body) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", br#"{"test": 2432232314}"#);
        let expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(signatures(std::slice::from_ref(&secret), id, 1_614_265_330, body), expected);
        let other = Secret::parse(&format!("{PREFIX}{}", STANDARD.encode([7; 32]))).unwrap();
        let both = signatures(&[other, secret], id, 1_614_265_330, body);
        let both: Vec<_> = both.split(' ').collect();
        assert!(both.len() == 2 && both[0] != expected && both[1] == expected, "{both:?}");
    }

    #[test]
    fn secrets_have_one_form_and_are_not_shown() {
        let of = |bytes: usize| format!("{PREFIX}{}", STANDARD.encode(vec![1; bytes]));
        for bytes in [24, 32, 64] {
            assert!(Secret::parse(&of(bytes)).is_ok(), "{bytes}");
        }
        let without_prefix = EXAMPLE.replace(PREFIX, "");
        let bad = [of(0), of(23), of(65), of(9_000), without_prefix, format!("{EXAMPLE}!")];
        for bad in bad.iter().map(String::as_str).chain(["", PREFIX, "whsec_a", "WHSEC_AAAA"]) {
            assert_eq!(Secret::parse(bad), Err(FORM), "{bad}");
        }
        assert_eq!(format!("{:?}", Secret::parse(EXAMPLE)), "Ok(Secret)");
    }
}
