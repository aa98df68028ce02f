//! Page tokens.

use locality_uuid::LocalityId;
use proptest::prelude::*;

use super::filter;
use crate::error::{Error, Invalid};
use crate::model::tenant::Tenant;
use crate::search::{AccessPath, PageToken, Position, Scalar, query_hash};
use crate::timestamp::Timestamp;
use crate::tokens::key::TokenKey;

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
const DAY: i64 = 24 * 60 * 60 * 1_000;

fn key() -> TokenKey {
    TokenKey::new([7; 32])
}

fn token(text: &str) -> PageToken {
    let path = filter(text).access_paths().into_iter().next().unwrap_or(AccessPath::All);
    let value = Some(Scalar::Double(0.5));
    PageToken { path, position: Position { value, id: LocalityId::from([9; 16]) } }
}

#[track_caller]
fn assert_rejected(text: &str, query: u64, now: Timestamp, words: &str) {
    match PageToken::decode(&key(), text, query, now) {
        Err(Error::Invalid { what: Invalid::PageToken, field, message }) => {
            assert_eq!(field, "page_token");
            assert!(message.contains(words), "{message}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_token_round_trips() {
    for text in [
        "",
        "attributes.a = 1",
        "attributes.\"a b\" > 0.5",
        "attributes.a = x*",
        "attributes.a:*",
        "state = DELETED",
        "create_time > 2026-01-01T00:00:00Z",
        "display_name:*",
        "display_name:joe",
        "display_name:\"jo*\"",
        "display_name:\"o brien\"",
        "attributes.a = é*",
        "identities.email = *.org",
        "identities.email = joe@example.com",
        "identities.url = http*",
        "attributes.a >= true",
    ] {
        let token = token(text);
        let encoded = token.encode(&key(), 7, NOW);
        assert!(encoded.len() < 300, "{encoded}");
        assert_eq!(PageToken::decode(&key(), &encoded, 7, NOW).unwrap(), token, "{text}");
    }
}

#[test]
fn a_token_is_bound_to_its_search_and_expires_after_a_day() {
    let acme = Tenant::parse("acme").unwrap();
    let query = query_hash(&Tenant::DEFAULT, "state:*", "");
    let text = token("attributes.a:*").encode(&key(), query, NOW);
    for other in [
        query_hash(&acme, "state:*", ""),
        query_hash(&Tenant::DEFAULT, "", "state:*"),
        query_hash(&Tenant::DEFAULT, "state:* ", ""),
    ] {
        assert_rejected(&text, other, NOW, "another search");
    }
    let later = |millis: i64| Timestamp::from_millis(NOW.as_millis() + millis);
    assert!(PageToken::decode(&key(), &text, query, later(DAY)).is_ok());
    assert_rejected(&text, query, later(DAY + 1), "expired");
}

#[test]
fn malformed_tokens_are_rejected() {
    for text in ["x", "AAAA", "****", "é", &"A".repeat(100_000), "default"] {
        assert_rejected(text, 7, NOW, "begin again");
    }
}

proptest! {
    #[test]
    fn a_changed_token_is_rejected(at: prop::sample::Index, to in "[A-Za-z0-9_-]") {
        let text = token("attributes.a > 1").encode(&key(), 7, NOW);
        let offset = at.index(text.len());
        let changed = format!("{}{to}{}", &text[..offset], &text[offset + 1..]);
        prop_assume!(changed != text);
        prop_assert!(PageToken::decode(&key(), &changed, 7, NOW).is_err());
        prop_assert!(PageToken::decode(&key(), &text[..offset], 7, NOW).is_err());
    }
}
