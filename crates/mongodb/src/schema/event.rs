//! Events as they are stored: in their wire form, in which the path of an attribute is its token
//! in decimal digits. An attribute without a token has its name, after `attributes.`: no other path
//! is a number.

use polynym_directory::{Event, encoded::event::encode_event};
use polynym_store_common::attribute_names::{AttributeId, KnownNames};

/// The start of the path of an attribute.
const ATTRIBUTE: &str = "attributes.";

/// The stored form of an event. Attributes that `names` has are stored by their tokens.
pub fn encode_stored_event(mut event: Event, names: &KnownNames) -> Vec<u8> {
    for change in &mut event.changes.fields {
        let name = change.path.strip_prefix(ATTRIBUTE);
        if let Some(token) = name.and_then(|name| names.id(name)) {
            change.path = token.to_string();
        }
    }
    encode_event(&event)
}

/// The greatest token in events that were decoded from their stored form.
pub fn last_token<'e>(events: impl IntoIterator<Item = &'e Event>) -> Option<AttributeId> {
    let fields = events.into_iter().flat_map(|event| &event.changes.fields);
    fields.filter_map(|change| token(&change.path)).max()
}

/// Replaces the tokens in events by names. An attribute whose name is gone with its tenant gets its
/// token after `#`.
pub fn restore_names(events: &mut [Event], names: &KnownNames) {
    for change in events.iter_mut().flat_map(|event| &mut event.changes.fields) {
        let Some(token) = token(&change.path) else { continue };
        change.path = match names.name(token) {
            Some(name) => format!("{ATTRIBUTE}{name}"),
            None => format!("{ATTRIBUTE}#{token}"),
        };
    }
}

fn token(path: &str) -> Option<AttributeId> {
    path.parse().ok()
}
