//! Fuzz targets of authentication. `cargo test` runs each briefly with random bytes; `cargo bolero
//! test` runs them guided by coverage.

use std::time::{Duration, SystemTime};

use super::file::bearer_token;
use super::{CallerStates, Credentials, RateLimits};

const FUZZ_TIME: Duration = Duration::from_millis(500);

/// Fragments of a credentials file that random bytes rarely produce.
const FRAGMENTS: [&str; 31] = [
    "[[caller]]\n",
    "[caller]\n",
    "name = ",
    "role = ",
    "tenants = ",
    "token = ",
    "certificate = ",
    "rate = ",
    "expires = ",
    "\"billing\"\n",
    "\"anonymous\"\n",
    "\"resolver\"\n",
    "\"admin\"\n",
    "[\"*\"]\n",
    "[\"default\", \"eu-*\"]\n",
    "\"sha256:a:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"\n",
    "\"sha256:b:E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855\"\n",
    "\"sha256:a:00\"\n",
    "\"dns:a.b\"\n",
    "\"uri:spiffe://a/b\"\n",
    "{ calls = 5, misses = 1 }\n",
    "{ calls = -1 }\n",
    "2030-01-01T00:00:00Z\n",
    "99999-13-41T99:00:00Z\n",
    "[oidc]\n",
    "[[oidc.grant]]\n",
    "issuer = ",
    "client_id = ",
    "client_secret = ",
    "group = ",
    "\"https://sso.example\"\n",
];
/// A valid file, to which fragments are appended.
const VALID_FILE: &str = "[[caller]]\nname = \"a\"\nrole = \"admin\"\ntenants = [\"*\"]\n\
    token = \"sha256:a:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"\n";

fn text(bytes: &[u8]) -> String {
    let mut text = String::new();
    for &byte in bytes {
        match byte.checked_sub(128) {
            None => text.push(char::from(byte)),
            Some(fragment) => text.push_str(FRAGMENTS[usize::from(fragment) % FRAGMENTS.len()]),
        }
    }
    text
}

/// A valid file grants nothing without a credential, and errors show no hash.
#[test]
fn fuzz_credentials_file() {
    bolero::check!().with_test_time(FUZZ_TIME).for_each(|bytes: &[u8]| {
        for text in [text(bytes), format!("{VALID_FILE}{}", text(bytes))] {
            match Credentials::parse(&text, RateLimits::default(), &CallerStates::default()) {
                Ok(credentials) => {
                    let now = SystemTime::UNIX_EPOCH;
                    assert!(credentials.caller(None, &[], now).is_none());
                    for credential in credentials.list() {
                        assert!(credential.token.is_some() || credential.certificate.is_some());
                        assert_ne!(credential.caller.name, "anonymous");
                    }
                }
                Err(fault) => {
                    assert!(!fault.to_string().to_lowercase().contains("e3b0c442"), "{fault}");
                }
            }
        }
    });
}

/// A valid header is `Bearer`, a space and the token, and nothing else.
#[test]
fn fuzz_authorization_header() {
    let good = format!("Bearer pn_a_{}", "A".repeat(43));
    bolero::check!().with_test_time(FUZZ_TIME).for_each(|bytes: &[u8]| {
        let position = bytes.first().map_or(0, |byte| usize::from(*byte) % good.len());
        let changed = [&good.as_bytes()[..position], bytes, &good.as_bytes()[position..]].concat();
        for header in [bytes, &changed] {
            let Some(token) = bearer_token(header) else { continue };
            let text = String::from_utf8(header.to_vec()).unwrap();
            let (scheme, rest) = text.split_once(' ').unwrap();
            assert!(scheme.eq_ignore_ascii_case("bearer"));
            assert!(rest.starts_with(&format!("pn_{}_", token.id())));
            assert_eq!(rest.len(), "pn__".len() + token.id().len() + 43);
        }
    });
}
