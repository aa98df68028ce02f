//! Page tokens.

use locality_uuid::LocalityId;
use proptest::prelude::*;

use super::filter;
use crate::error::{Error, Invalid};
use crate::model::tenant::Tenant;
use crate::model::timestamp::Timestamp;
use crate::search::{Lead, PageToken, Position, Scalar, query_hash};

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
const DAY: i64 = 24 * 60 * 60 * 1_000;

fn token(text: &str) -> PageToken {
    let lead = filter(text).leads().into_iter().next().unwrap_or(Lead::All);
    let value = Some(Scalar::Double(0.5));
    PageToken { lead, position: Position { value, id: LocalityId::from([9; 16]) } }
}

#[track_caller]
fn refused(text: &str, query: u64, now: Timestamp, words: &str) {
    match PageToken::decode(text, query, now) {
        Err(Error::Invalid { what: Invalid::PageToken, field, message }) => {
            assert_eq!(field, "page_token");
            assert!(message.contains(words), "{message}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_token_comes_back() {
    for text in [
        "",
        "attributes.a = 1",
        "attributes.\"a b\" > 0.5",
        "attributes.a = x*",
        "attributes.a:*",
        "state = DELETED",
        "create_time > 2026-01-01T00:00:00Z",
        "display_name:*",
        "identities.email = joe@example.com",
        "identities.url = http*",
        "attributes.a >= true",
    ] {
        let token = token(text);
        let encoded = token.encode(7, NOW);
        assert!(encoded.len() < 300, "{encoded}");
        assert_eq!(PageToken::decode(&encoded, 7, NOW).unwrap(), token, "{text}");
    }
}

#[test]
fn a_token_is_of_one_search_and_one_day() {
    let acme = Tenant::parse("acme").unwrap();
    let query = query_hash(&Tenant::DEFAULT, "state:*", "");
    let text = token("attributes.a:*").encode(query, NOW);
    for other in [
        query_hash(&acme, "state:*", ""),
        query_hash(&Tenant::DEFAULT, "", "state:*"),
        query_hash(&Tenant::DEFAULT, "state:* ", ""),
    ] {
        refused(&text, other, NOW, "another search");
    }
    let later = |millis: i64| Timestamp::from_millis(NOW.as_millis() + millis);
    assert!(PageToken::decode(&text, query, later(DAY)).is_ok());
    refused(&text, query, later(DAY + 1), "expired");
}

#[test]
fn others_are_refused() {
    for text in ["x", "AAAA", "****", "é", &"A".repeat(100_000), "default"] {
        refused(text, 7, NOW, "begin again");
    }
}

proptest! {
    #[test]
    fn a_token_changed_by_hand_is_refused(at: prop::sample::Index, to in "[A-Za-z0-9_-]") {
        let text = token("attributes.a > 1").encode(7, NOW);
        let at = at.index(text.len());
        let changed = format!("{}{to}{}", &text[..at], &text[at + 1..]);
        prop_assume!(changed != text);
        prop_assert!(PageToken::decode(&changed, 7, NOW).is_err());
        prop_assert!(PageToken::decode(&text[..at], 7, NOW).is_err());
    }
}
