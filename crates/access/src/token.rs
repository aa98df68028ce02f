//! Bearer tokens, `pn_<id>_<secret>`, and the hashes that a server stores instead.
//!
//! The secret has 256 random bits. A fast hash suffices: no search can try that many.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::SecretString;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The prefix of every token, for scanners of leaked secrets.
const PREFIX: &str = "pn_";
/// The prefix of every hash of a token.
pub const HASH_PREFIX: &str = "sha256:";
/// The length of a secret: 256 bits in base64url (RFC 4648, section 5) without padding.
const SECRET_CHARS: usize = 43;
/// The length of the id of a new token, and the maximum length of an id.
const ID_CHARS: usize = 10;
const MAX_ID_CHARS: usize = 32;
const ID_ALPHABET: &[u8; 32] = b"abcdefghijkmnopqrstuvwxyz0123456";

/// A bearer token. Its secret is never printed.
#[derive(Clone, Copy)]
pub struct Token<'a> {
    id: &'a str,
    secret: &'a str,
}

impl<'a> Token<'a> {
    /// Parses a token; none if the text is not one.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let is_base64 = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        let is_valid = is_id(id) && secret.len() == SECRET_CHARS && secret.bytes().all(is_base64);
        is_valid.then_some(Self { id, secret })
    }

    /// The public id of the token.
    pub const fn id(self) -> &'a str {
        self.id
    }

    /// The hash for the credentials file.
    pub fn hash(self) -> TokenHash {
        TokenHash { id: self.id.to_owned(), digest: self.digest() }
    }

    fn digest(self) -> [u8; 32] {
        Sha256::digest(self.secret.as_bytes()).into()
    }
}

impl fmt::Debug for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Generates a token.
///
/// # Errors
/// The operating system has no source of random bytes.
pub fn generate() -> Result<SecretString, String> {
    let mut random = [0; 32 + ID_CHARS];
    getrandom::fill(&mut random).map_err(|error| format!("cannot read random bytes: {error}"))?;
    let (secret, id_bytes) = random.split_at(32);
    let letter = |byte: &u8| char::from(ID_ALPHABET[usize::from(byte % 32)]);
    let id: String = id_bytes.iter().map(letter).collect();
    Ok(format!("{PREFIX}{id}_{}", URL_SAFE_NO_PAD.encode(secret)).into())
}

fn is_id(text: &str) -> bool {
    (1..=MAX_ID_CHARS).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

/// The hash of a token: `sha256:<id>:<64 hexadecimal digits>`.
#[derive(Clone, Debug)]
pub struct TokenHash {
    id: String,
    digest: [u8; 32],
}

impl TokenHash {
    /// Parses a hash; none if the text is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let (id, hex) = text.strip_prefix(HASH_PREFIX)?.split_once(':')?;
        let mut digest = [0; 32];
        if !is_id(id) || hex.len() != 64 || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        for (n, byte) in digest.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hex[2 * n..2 * n + 2], 16).ok()?;
        }
        Some(Self { id: id.to_owned(), digest })
    }

    /// The id of the token.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether this is the hash of the token. Compares in constant time.
    pub fn matches(&self, token: Token<'_>) -> bool {
        self.id == token.id && bool::from(self.digest.ct_eq(&token.digest()))
    }
}

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{HASH_PREFIX}{}:", self.id)?;
        self.digest.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn a_token_matches_only_its_own_hash() {
        let secrets = [generate().unwrap(), generate().unwrap()];
        let [text, other_text] = secrets.each_ref().map(|secret| secret.expose_secret());
        let other = Token::parse(other_text).unwrap();
        let token = Token::parse(text).unwrap();
        let hash = TokenHash::parse(&token.hash().to_string()).unwrap();
        assert!(hash.matches(token));
        assert!(!hash.matches(other));
        let end = if text.ends_with('A') { "B" } else { "A" };
        let changed = format!("{}{end}", &text[..text.len() - 1]);
        assert!(!hash.matches(Token::parse(&changed).unwrap()), "another last character");
        assert_eq!(text.len(), PREFIX.len() + ID_CHARS + 1 + SECRET_CHARS);
        assert!(!format!("{token:?}").contains(token.secret));
    }

    #[test]
    fn malformed_tokens_are_rejected() {
        let good = generate().unwrap().expose_secret().to_owned();
        for wrong in [
            String::new(),
            good[1..].to_owned(),
            good[..good.len() - 1].to_owned(),
            format!("{good}x"),
            format!(" {good}"),
            good.replacen("pn_", "pn__", 1),
            good.replacen("pn_", "pn_A", 1),
            format!("pn_{}_{}", "a".repeat(33), "a".repeat(43)),
            format!("pn_a_{}é", "a".repeat(41)),
        ] {
            assert!(Token::parse(&wrong).is_none(), "{wrong}");
        }
        for wrong in ["", "sha256:a:", "md5:a:00", &format!("sha256:a:{}", "é".repeat(32))] {
            assert!(TokenHash::parse(wrong).is_none(), "{wrong}");
        }
    }
}
