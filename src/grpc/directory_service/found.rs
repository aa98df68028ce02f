//! The answer of FindUsers.

use super::read_mask::ReadMask;
use crate::grpc::raw_response::{self, FoundUsers};
use polynym_directory::{FindPage, FindReading, FindWay, FoundUser};
use polynym_proto::v1;

/// The message for a page.
pub fn message(page: FindPage, mask: ReadMask) -> FoundUsers {
    let found = |found: FoundUser| raw_response::FoundUser {
        user: mask.encode(found.user),
        reasons: readings(found.reasons),
        merged_from: found.merged_from.map(|id| id.to_string()).unwrap_or_default(),
    };
    FoundUsers {
        matches: page.matches.into_iter().map(found).collect(),
        tried: readings(page.tried),
        suggestions: page.suggestions,
        next_page_token: page.next_page_token,
        unreadable_user_ids: page.unreadable.iter().map(ToString::to_string).collect(),
    }
}

fn readings(readings: Vec<FindReading>) -> Vec<v1::FindReading> {
    let message = |reading: FindReading| v1::FindReading {
        way: way(reading.way).into(),
        value: reading.value,
        region: reading.region,
        attribute: reading.attribute,
    };
    readings.into_iter().map(message).collect()
}

const fn way(way: FindWay) -> v1::FindWay {
    match way {
        FindWay::Identifier => v1::FindWay::Identifier,
        FindWay::Held => v1::FindWay::HeldIdentifier,
        FindWay::UserId => v1::FindWay::UserId,
        FindWay::Attribute => v1::FindWay::Attribute,
        FindWay::AttributeStart => v1::FindWay::AttributeStart,
        FindWay::Name => v1::FindWay::Name,
        FindWay::PhoneEnd => v1::FindWay::PhoneEnd,
        FindWay::EmailStart => v1::FindWay::EmailStart,
        FindWay::EmailDomain => v1::FindWay::EmailDomain,
        FindWay::SimilarName => v1::FindWay::SimilarName,
    }
}
